package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const source = `package app

import (
	"time"

	"github.com/lectern-dev/lectern/shared/config"
	web "github.com/lectern-dev/lectern/shared/httpserver"
)

// Config is what it reads.
type Config struct {
	// The longest page,
	// in records.
	MaxLimit int ` + "`env:\"MAX_LIMIT\" envDefault:\"1000000\"`" + `

	Key config.Secret ` + "`env:\"KEY,required\"`" + ` // Opens the door | the window.

	Pool Pool
	Server web.Config
	Wait time.Duration ` + "`env:\"WAIT\"`" + ` // How long, in seconds.
	Now func() time.Time ` + "`env:\"-\"`" + `
	started time.Time
}

type Pool struct {
	Keys []config.Secret ` + "`env:\"KEYS\"`" + ` // More keys.
	Again int ` + "`env:\"MAX_LIMIT\"`" + ` // The same.
}
`

// folderWith creates the folder of a package in this module, so that its imports can be resolved. ./... ignores the
// folder because of its name.
func folderWith(t *testing.T, source string) string {
	t.Helper()
	folder, err := os.MkdirTemp(".", "_folder")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.WriteFile(filepath.Join(folder, "app.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// mark returns a document with the markers of a table of the programs' settings.
func mark(programs ...string) string {
	return "before\n<!-- configdoc\n" + strings.Join(programs, "\n") + "\n-->\nstale\n<!-- configdoc end -->\nafter\n"
}

func TestFill(t *testing.T) {
	folder := folderWith(t, source)
	got, err := fill(t.Context(), mark("one: "+folder+" Config", "two: "+folder+" Pool"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(got) {
		rows = append(rows, strings.TrimSuffix(line, "\n"))
	}
	for _, want := range []string{
		"before", "after", "| Setting | Read by | Default | Meaning |",
		"| `MAX_LIMIT` | one | `1000000` | The longest page, in records. |",
		"| `MAX_LIMIT` | two | – | The same. |",
		"| `KEY` (secret) | one | required | Opens the door \\| the window. |",
		"| `KEYS` (secret) | one, two | – | More keys. |",
		"| `WAIT` | one | – | How long, in seconds. |",
		"| `LISTEN_PUBLIC` | one | `:8080` | The address of the documented paths: host:port. An empty host is all addresses of the machine. |",
	} {
		if n := count(rows, want); n != 1 {
			t.Errorf("%q stands %d times in\n%s", want, n, got)
		}
	}
	if strings.Contains(got, "stale") {
		t.Errorf("the old table is still there:\n%s", got)
	}
	again, err := fill(t.Context(), got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("filled again it changes:\n%s", diff)
	}
}

func count(rows []string, want string) int {
	n := 0
	for _, row := range rows {
		if row == want {
			n++
		}
	}
	return n
}

func TestFillFaults(t *testing.T) {
	folder := folderWith(t, "package app\n\ntype Config struct {\n\tA int `env:\"A\"`\n}\n")
	for _, tc := range []struct{ name, in, want string }{
		{"no comment", mark("one: " + folder + " Config"), "A has no comment"},
		{"no type", mark("one: " + folder + " Settings"), "no struct type Settings"},
		{"no program", mark(folder + " Config"), "does not have the form"},
		{"no type named", mark("one: " + folder), "does not have the form"},
		{"no begin", "<!-- configdoc end -->\n", "is missing"},
		{"no end of the mark", "<!-- configdoc\none: . variable\n", "is missing after"},
		{"no end", "<!-- configdoc\none: . variable\n-->\n", "end -->\" is missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := fill(t.Context(), tc.in); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("fill: %v, want %q", err, tc.want)
			}
		})
	}
}

func TestCheckChangesNothingAndFails(t *testing.T) {
	folder := folderWith(t, source)
	file := filepath.Join(t.TempDir(), "doc.md")
	text := mark("one: " + folder + " Config")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), true, []string{file}); err == nil || !strings.Contains(err.Error(), "out of date") {
		t.Errorf("run -check: %v", err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != text {
		t.Errorf("-check changed the file: %s, %v", got, err)
	}
	for _, check := range []bool{false, true} {
		if err := run(t.Context(), check, []string{file}); err != nil {
			t.Errorf("run(%v): %v", check, err)
		}
	}
}
