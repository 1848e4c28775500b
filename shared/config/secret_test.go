package config_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/config"
)

const canary = "hunter2-s3cret"

func TestSecretNeverShows(t *testing.T) {
	type holder struct {
		Key   config.Secret
		Ptr   *config.Secret
		Many  []config.Secret
		Named map[string]config.Secret
	}
	type hidden struct {
		key   config.Secret
		ptr   *config.Secret
		many  []config.Secret
		named map[string]config.Secret
		deep  holder
	}
	type element struct{ Key config.Secret }
	s := config.NewSecret(canary)
	h := holder{Key: s, Ptr: &s, Many: []config.Secret{s}, Named: map[string]config.Secret{"a": s}}

	shown := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%U", "%c", "%10s", "%-3q", "%T"} {
		shown["value "+verb] = fmt.Sprintf(verb, s)
		shown["slice "+verb] = fmt.Sprintf(verb, h.Many)
		for name, within := range map[string]any{
			"hidden":            hidden{s, &s, h.Many, h.Named, h},
			"pointer to hidden": &hidden{s, &s, h.Many, h.Named, h},
			"slice of hidden":   []any{hidden{key: s}, &hidden{key: s}},
			"URL of a server":   config.NewServerURL(canary),
		} {
			shown[name+" "+verb] = fmt.Sprintf(verb, within)
		}
		shown["struct "+verb] = fmt.Sprintf(verb, holder{Key: s, Many: h.Many, Named: h.Named})
	}
	shown["error"] = fmt.Errorf("dial %v: %w", s, errors.New("refused")).Error()
	shown["fault"] = config.Invalid("KEY", s, "rk_…").Error()
	if b, err := json.Marshal(h); err != nil {
		t.Error(err)
	} else {
		shown["json"] = string(b)
	}
	if b, err := xml.Marshal(element{Key: s}); err != nil {
		t.Error(err)
	} else {
		shown["xml"] = string(b)
	}
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"slog json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		"slog text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
	} {
		var b bytes.Buffer
		slog.New(handler(&b)).Info("starts", "key", s, "all", h, "many", h.Many)
		shown[name] = b.String()
	}
	for how, text := range shown {
		hex := fmt.Sprintf("%x", canary)
		if strings.Contains(text, canary) || strings.Contains(strings.ToLower(text), hex) {
			t.Errorf("%s shows the secret: %s", how, text)
		}
	}
	for _, how := range []string{"value %v", "value %x", "fault", "json", "xml", "slog json", "slog text"} {
		if !strings.Contains(shown[how], "[redacted]") {
			t.Errorf("%s = %s, want [redacted] in it", how, shown[how])
		}
	}
	if got := s.Reveal(); got != canary {
		t.Errorf("Reveal() = %q, want the value", got)
	}
}
