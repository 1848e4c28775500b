package command_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/testing/golden"
)

// wrongInputs has command lines, each with its answer.
const wrongInputs = "testdata/wrong-inputs.txt"

// Each wrong command line is answered by one line that names what was given. The line names what is allowed, or the help that does. The flag -update writes the answers into the file.
func TestWrongInputs(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile(wrongInputs)
	if err != nil {
		t.Fatal(err)
	}
	parser := regexp.MustCompile(`unexpected (flag|token)|must be one of|expected (one of|a |an |duration|bool|int)|missing (flags|value|positional)|strconv|envar|can't be used`)
	var got strings.Builder
	for line := range strings.Lines(string(file)) {
		input, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok {
			continue
		}
		environ := map[string]string{
			"LECTERN_PROJECT_ID": "pr_1", "LECTERN_API_KEY": "rk_1", "LECTERN_INTERNAL_API_KEY": "ik_1", "LECTERN_INGEST_API_KEY": "gk_1", "LECTERN_ADMIN_API_KEY": "ak_1",
		}
		words := strings.Fields(input)
		for ; words[0] != "lectern"; words = words[1:] {
			name, value, _ := strings.Cut(words[0], "=")
			environ[name] = value
		}
		for i, word := range words {
			words[i] = strings.ReplaceAll(word, "''", "")
		}
		r := clitest.Run(t, "a,b\n1,2\n", environ, words[1:]...)
		if r.Code != shell.ExitUsage || r.Out != "" || strings.Count(r.Err, "\n") != 1 || !strings.HasPrefix(r.Err, "lectern: ") || parser.MatchString(r.Err) {
			t.Errorf("%s: %+v", input, r)
		}
		fmt.Fprintf(&got, "$ %s\n%s\n", input, r.Err)
	}
	golden.Check(t, wrongInputs, got.String())
}

// Without a command, or with a group of commands alone, the help is the answer.
func TestHelpWithoutCommand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "Usage: lectern <command>"},
		{[]string{"keys"}, "Usage: lectern keys <command>"},
		{[]string{"help"}, "Usage: lectern <command>"},
		{[]string{"help", "keys", "mint"}, "Usage: lectern keys mint"},
		{[]string{"--version"}, "lectern "},
		{[]string{"version"}, "lectern "},
	} {
		if r := clitest.Run(t, "", nil, tt.args...); r.Code != shell.ExitOK || r.Err != "" || !strings.HasPrefix(r.Out, tt.want) {
			t.Errorf("%q: %+v; want %q", tt.args, r, tt.want)
		}
	}
	if r := clitest.Run(t, "", nil); strings.Count(r.Out, ":\n") < 6 || strings.Contains(r.Out, "get entries") {
		t.Errorf("commands are not in groups: %s", r.Out)
	}
}

// Durations are read as people write them.
func TestDurations(t *testing.T) {
	t.Parallel()
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	defer keys.Close()
	for text, want := range map[string]string{"3d": "3d", "12h": "12h", "1w": "1w", "1h30m": "1h30m", "1d12h": "1d12h", "0": "0s", "1.5h": "1h30m"} {
		environ := map[string]string{"LECTERN_INTERNAL_URL": keys.URL, "LECTERN_ADMIN_API_KEY": "ak_1", "LECTERN_PROJECT_ID": "pr_1"}
		if r := clitest.Run(t, "", environ, "keys", "rotate", "old", "--overlap", text); r.Code != shell.ExitOK || !strings.Contains(r.Err, "ends in "+want+".") {
			t.Errorf("%s: %+v", text, r)
		}
	}
}
