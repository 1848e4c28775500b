package secret_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/lectern-dev/lectern/proxy/secret"
)

func TestValueShowsNothing(t *testing.T) {
	const canary = "canary-3f9a1c77"
	v := secret.New([]byte(canary))
	type holder struct {
		Exported   secret.Value
		unexported secret.Value
	}
	h := holder{v, v}
	outputs := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%c", "%U", "%t", "%p", "%T"} {
		outputs[verb] = fmt.Sprintf(verb+" "+verb+" "+verb+" "+verb, v, &v, h, &h)
	}
	j, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	outputs["json"] = string(j)
	x, err := xml.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	outputs["xml"] = string(x)
	y, err := yaml.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	outputs["yaml"] = string(y)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v, "h", h)
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", v, "h", h)
	outputs["slog"] = log.String()
	outputs["error"] = fmt.Errorf("with %v: %w", v, fmt.Errorf("%s", v)).Error()
	for name, out := range outputs {
		for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), strings.Trim(fmt.Sprint([]byte(canary)), "[]")} {
			if strings.Contains(out, form) {
				t.Errorf("%s shows the value: %s", name, out)
			}
		}
	}
	if !strings.Contains(outputs["json"], secret.Redacted) || !strings.Contains(outputs["%v"], secret.Redacted) {
		t.Errorf("nothing tells that a value was there: %s, %s", outputs["json"], outputs["%v"])
	}
}
