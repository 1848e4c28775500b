package e2e

import (
	"slices"
	"testing"
)

func TestSpansOf(t *testing.T) {
	const out = `Resource attributes:
     -> service.name: Str(edge)
Span #0
    Trace ID       : aa
    Name           : GET /x
    Attributes:
     -> http.route: Str(/x)
Span #1
    Trace ID       : bb
    Name           : other
     -> db.system: Str(redis)
Resource attributes:
     -> service.name: Str(entries)
Span #2
    Trace ID       : aa
    Name           : SELECT
     -> db.system.name: Str(postgresql)
`
	if got, want := spansOf(out, "aa"), []string{"edge: GET /x", "entries: SELECT [postgresql]"}; !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}
