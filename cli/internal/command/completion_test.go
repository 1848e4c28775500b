package command_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		in   []string
		want []string
	}{
		{"commands", []string{""}, []string{"up", "console", "demo", "get", "export", "changes", "sync", "singer", "airbyte", "listen", "mcp", "region", "api", "import", "erase", "purge", "login", "logout", "whoami", "context", "keys", "proxy", "check", "databases", "restored", "migrate-to-citus", "completion", "version"}},
		{"begun", []string{"ke"}, []string{"keys"}},
		{"below", []string{"keys", ""}, []string{"mint", "grant", "list", "rotate", "revoke"}},
		{"get what", []string{"get", "e"}, []string{"entries", "entry", "events", "embeddables", "embeddable", "experiments", "experiment"}},
		{"import what", []string{"import", "embeddable"}, []string{"embeddables", "embeddable-versions"}},
		{"statuses", []string{"export", "experiments", "--status", ""}, []string{"completed", "discarded", "draft", "paused", "running", "winner_picked"}},
		{"flags", []string{"export", "entries", "--up"}, []string{"--updated-after", "--updated-before"}},
		{"choices of a flag", []string{"export", "entries", "--output", ""}, []string{"csv", "ndjson", "parquet"}},
		{"files of a flag", []string{"export", "entries", "--out", ""}, []string{clitest.FilesLine}},
		{"a folder of a flag", []string{"proxy", "check", "--manifests", ""}, []string{clitest.FilesLine}},
		{"files", []string{"import", "entries", "--quiet", ""}, []string{clitest.FilesLine}},
		{"choices of an argument", []string{"completion", ""}, []string{"bash", "fish", "zsh"}},
		{"destinations", []string{"sync", "--to", ""}, []string{"postgres://", "file:///", "s3://", "https://"}},
		{"copies", []string{"erase", "--wait=s"}, []string{"--wait=s3://"}},
		{"nothing for free text", []string{"get", "entry", "--project", ""}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := clitest.Run(t, "", nil, append([]string{clitest.CompleteWord}, tt.in...)...)
			var got []string
			for line := range strings.Lines(r.Out) {
				word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
				got = append(got, word)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each line is typed into the real shell, completed by a tab and printed as it then stands.
func TestLongShellsComplete(t *testing.T) {
	needs.Long(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := errors.Join(os.Symlink(exe, filepath.Join(folder, "lectern")), os.WriteFile(filepath.Join(folder, "a file.csv"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	lines := []struct{ in, want string }{
		{"lectern keys ro", "lectern keys rotate"},
		{"lectern import entries --format c", "lectern import entries --format csv"},
		{"lectern import entries --format=c", "lectern import entries --format=csv"},
		{"lectern import entries a", `lectern import entries a\ file.csv`},
		{"lectern export entries --out=a", `lectern export entries --out=a\ file.csv`},
		{"lectern export entries -q --updated-b", "lectern export entries -q --updated-before"},
		{"lectern get entry --project a", "lectern get entry --project a"},
	}
	// Control-A goes to the line's start and Control-E to its end. zsh gives itself and fish a terminal.
	const shown = "\t\x01echo '[\x05]'\n"
	inTerminal := func(program, load string) string {
		input := "zmodload zsh/zpty; zpty shell " + program + "\nzpty -w shell '" + load + "'\n"
		for _, line := range lines {
			input += "zpty -w -n shell '" + line.in + strings.ReplaceAll(shown, "'", `'\''`) + "'\n"
		}
		return input + "zpty -w shell exit; while zpty -r shell line; do print -r -- $line; done\n"
	}
	inBash := "PS1=; source <(lectern completion bash)\n"
	for _, line := range lines {
		inBash += line.in + shown
	}
	for shell, run := range map[string]struct{ driver, input string }{
		"bash": {"bash --norc --noprofile -i", inBash},
		"zsh":  {"zsh -f", inTerminal("zsh -f -i", "autoload -U compinit; compinit -D -u; source <(lectern completion zsh)")},
		"fish": {"zsh -f", inTerminal("fish --no-config", "set fish_autosuggestion_enabled 0; lectern completion fish | source")},
	} {
		t.Run(shell, func(t *testing.T) {
			args := strings.Fields(run.driver)
			for _, program := range []string{shell, args[0]} {
				needs.Program(t, "run scripts/setup shells", program)
			}
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Dir, cmd.Stdin = folder, strings.NewReader(run.input)
			cmd.Env = append(os.Environ(), clitest.AsCommand+"=1", "TERM=dumb", "HOME="+folder, "PATH="+folder+":"+os.Getenv("PATH"))
			said, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			for _, line := range lines {
				if want := regexp.MustCompile(`(?m)^\[` + regexp.QuoteMeta(line.want) + ` ?\]`); !want.Match(said) {
					t.Errorf("%q did not become %q", line.in, line.want)
				}
			}
			if t.Failed() {
				t.Logf("%q", said)
			}
		})
	}
}
