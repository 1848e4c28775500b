package e2e

import (
	"slices"
	"testing"
)

func TestSpansOf(t *testing.T) {
	const out = `Span #0
    Trace ID       : aa
    Name           : GET /x
    Attributes:
     -> http.route: Str(/x)
Span #1
    Trace ID       : bb
    Name           : other
     -> db.system: Str(redis)
Span #2
    Trace ID       : aa
    Name           : SELECT
     -> db.system.name: Str(postgresql)
`
	if got, want := spansOf(out, "aa"), []string{"GET /x", "SELECT [postgresql]"}; !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}
