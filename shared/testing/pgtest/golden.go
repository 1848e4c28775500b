package pgtest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/golden"
)

// CheckGolden fails t unless testdata/statements.sql has the SQL of statements, sorted by name. With the flag -update
// it writes that file. The benchmarks also read it, so that they run the service's statements.
func CheckGolden(t *testing.T, statements map[string]string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("-- All statements of the store. Written by: go test . -run Golden -update\n")
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		text.WriteString("\n-- name: " + name + "\n" + strings.TrimSpace(statements[name]) + "\n")
	}
	golden.Check(t, "testdata/statements.sql", text.String())
}
