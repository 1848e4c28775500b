package command_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

func TestFailuresSayWhatToDo(t *testing.T) {
	t.Parallel()
	a := clitest.NewAPI(t, 5)
	with := func(change ...string) map[string]string {
		e := a.Environ()
		for i := 0; i < len(change); i += 2 {
			e[change[i]] = change[i+1]
		}
		return e
	}
	missing := filepath.Join(t.TempDir(), "none")
	for _, tt := range []struct {
		name    string
		environ map[string]string
		args    []string
		code    int
		want    string
	}{
		{"no key", with("LECTERN_API_KEY", ""), []string{"get", "entries"}, shell.ExitUsage, "set LECTERN_API_KEY"},
		{"no ingest key", with("LECTERN_INGEST_API_KEY", ""), []string{"import", "entries", "-"}, shell.ExitUsage, "set LECTERN_INGEST_API_KEY"},
		{"wrong key", with("LECTERN_API_KEY", "rk_2"), []string{"get", "entries"}, shell.ExitFailure, "check the key"},
		{"no such entry", with(), []string{"get", "entry", "e9"}, shell.ExitFailure, "entry_not_found"},
		{"no such file", with(), []string{"import", "entries", missing}, shell.ExitFailure, "no such file"},
		{"template", with(), []string{"import", "entries", "--format", "csv", "--set", "entry_id={x}", "-"}, shell.ExitFailure, "no column"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := clitest.Run(t, "a,b\n", tt.environ, tt.args...)
			if r.Code != tt.code {
				t.Errorf("exit code %d, want %d", r.Code, tt.code)
			}
			if !strings.Contains(r.Err, tt.want) || r.Out != "" {
				t.Errorf("said %q and printed %q, want %q", r.Err, r.Out, tt.want)
			}
			if strings.Count(r.Err, "\n") != 1 || !strings.HasPrefix(r.Err, "lectern: ") {
				t.Errorf("not one line: %q", r.Err)
			}
		})
	}
}

func TestEnvFile(t *testing.T) {
	a := clitest.NewAPI(t, 3)
	file := filepath.Join(t.TempDir(), "demo.env")
	content := fmt.Sprintf("# variables\nLECTERN_URL='%s'\nexport LECTERN_PROJECT_ID=\"pr_1\"\nLECTERN_API_KEY='rk_'\\''1'\n", a.URL)
	clitest.Write(t, file, content)
	// The file's key is wrong, and the environment's wins.
	if r := clitest.Run(t, "", map[string]string{"LECTERN_API_KEY": "rk_1"}, "get", "entries", "--env-file", file); r.Code != 0 {
		t.Error(r)
	}
	if r := clitest.Run(t, "", nil, "get", "entries", "--env-file", file); r.Code != shell.ExitFailure || !strings.Contains(r.Err, "unauthorized") {
		t.Error(r)
	}
	// An empty variable is none.
	t.Setenv("LECTERN_PROJECT_ID", "")
	t.Setenv("LECTERN_API_KEY", "rk_1")
	s := shell.ProcessSession(t.Context())
	if r := clitest.RunIn(t, *s, "get", "entries", "--env-file", file); r.Code != 0 {
		t.Error(r)
	}
	// And a flag wins over both.
	if r := clitest.Run(t, "", map[string]string{"LECTERN_API_KEY": "rk_0"}, "get", "entries", "--env-file", file, "--api-key", "rk_1"); r.Code != 0 {
		t.Error(r)
	}
}
