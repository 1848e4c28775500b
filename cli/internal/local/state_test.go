package local

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/golden"
)

// TestUpgrades checks that the keys in the folder of lectern up stay those of each released version.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "state.json")
	content := func(s *state, err error) string {
		t.Helper()
		err = errors.Join(err, s.save())
		text, readErr := os.ReadFile(path)
		if err = errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	golden.EachVersion(t, "state.json", func() string {
		s, err := openState(folder)
		s.APIKey, s.APIKeyScopes, s.DemoLoaded = "rk_1", "entries:read", true
		return content(s, err)
	}, func(t *testing.T, stored string) {
		if err := os.WriteFile(path, []byte(stored), 0o600); err != nil {
			t.Fatal(err)
		}
		var was, now map[string]any
		if err := errors.Join(json.Unmarshal([]byte(stored), &was), json.Unmarshal([]byte(content(openState(folder))), &now)); err != nil {
			t.Fatal(err)
		}
		for name, v := range was {
			if now[name] != v {
				t.Errorf("%s is %v; want %v", name, now[name], v)
			}
		}
	})
}
