package access_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/testing/golden"
)

// TestUpgrades checks that the contexts of each released version go on: one with a key, and one with a login that has
// expired. The files have other addresses than the servers of a test.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	keys, _ := newKeyAPI(t, "pr_2", "rk_2")
	p := newProvider(t)
	stored, here := strings.NewReplacer(keys, "http://keys", p.URL, "http://provider"), strings.NewReplacer("http://keys", keys, "http://provider", p.URL)
	m := clitest.Machine{Folder: t.TempDir()}
	file := filepath.Join(m.Folder, "contexts.json")
	golden.EachVersion(t, "contexts.json", func() string {
		a := m.Run(t, "", "", nil, "login", "--url", p.URL, "-p", "pr_1", "--issuer", p.URL, "--client-id", "cli", "--audience", "lectern")
		b := m.Run(t, "rk_2\n", "", nil, "login", "--url", keys, "-p", "pr_2", "--name", "shop")
		content, err := os.ReadFile(file)
		if a.Code != shell.ExitOK || b.Code != shell.ExitOK || err != nil {
			t.Fatalf("%+v, %+v, %v", a, b, err)
		}
		return strings.Replace(stored.Replace(string(content)), `"expires_at": "20`, `"expires_at": "19`, 1)
	}, func(t *testing.T, content string) {
		p.set(func(p *provider) { p.refresh = 1 })
		if err := errors.Join(os.MkdirAll(m.Folder, 0o700), os.WriteFile(file, []byte(here.Replace(content)), 0o600)); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"whoami", "--context", "pr_1"}, {"whoami"}, {"logout", "pr_1"}, {"whoami", "--context", "shop"}} {
			if r := m.Run(t, "", "", nil, command...); r.Code != shell.ExitOK {
				t.Errorf("%q: %+v", command, r)
			}
		}
		if now, err := os.ReadFile(file); err != nil || !strings.Contains(string(now), `"rk_2"`) || strings.Contains(string(now), "refresh-") {
			t.Errorf("stored %s, %v", now, err)
		}
	})
}
