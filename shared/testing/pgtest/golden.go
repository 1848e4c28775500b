package pgtest

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/statements.sql anew")

// CheckGolden fails t unless testdata/statements.sql has the SQL of statements, sorted by name. With the flag -update
// it writes that file. The benchmarks also read it, so that they run the service's statements.
func CheckGolden(t *testing.T, statements map[string]string) {
	t.Helper()
	const file = "testdata/statements.sql"
	var text strings.Builder
	text.WriteString("-- All statements of the store. Written by: go test . -run Golden -update\n")
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		text.WriteString("\n-- name: " + name + "\n" + strings.TrimSpace(statements[name]) + "\n")
	}
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), text.String()); diff != "" {
		t.Errorf("%s (-file +store; write it with -update):\n%s", file, diff)
	}
}
