package httpapi

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/pagelist"
	"github.com/lectern-dev/lectern/shared/wire"
)

// read returns the values of an operation with one parameter of each kind.
func read(raw string) (got map[string]any, err error) {
	r := httptest.NewRequest("GET", "/", nil)
	r.URL.RawQuery = raw
	q := ParseQuery(r, "limit", "direction", "sort", "after", "urls")
	got = map[string]any{
		"limit": q.Limit(1000), "desc": q.Descending(), "sort": q.Enum("sort", "a", "a", "b"),
		"after": q.Time("after", -1), "urls": q.Bool("urls", false),
	}
	return got, q.Err()
}

// TestForgedCursor checks that a cursor must contain a valid position, even if the client computes its checksum.
func TestForgedCursor(t *testing.T) {
	b := Binding{Project: "p", List: "entries", Sort: "updated_at", Least: wire.MinTime, Most: wire.MaxTime}
	for _, p := range []pagelist.Position{{Key: wire.MinTime - 1, ID: "x"}, {Key: wire.MaxTime + 1}, {Key: 1, ID: "a\x00b"}, {Key: 1, ID: "\xff"}, {Key: 1, ID: strings.Repeat("x", 257)}} {
		q := ParseQuery(httptest.NewRequest("GET", "/?cursor="+b.Cursor(p), nil), "cursor")
		if got := b.position(q, pagelist.Position{}); q.Err() == nil {
			t.Errorf("%v: taken as %v", p, got)
		}
	}
}

func FuzzCursor(f *testing.F) {
	b := Binding{Project: "p", List: "entries", Sort: "updated_at", Least: wire.MinTime, Most: wire.MaxTime}
	f.Add(b.Cursor(pagelist.Position{Key: 5, ID: "x"}))
	f.Add("")
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, cursor string) {
		r := httptest.NewRequest("GET", "/", nil)
		q := ParseQuery(r, "cursor")
		q.values = map[string]string{"cursor": cursor}
		p := b.position(q, pagelist.Position{})
		if q.Err() == nil && b.Cursor(p) != cursor {
			t.Fatalf("%q stands for %v, whose cursor is %q", cursor, p, b.Cursor(p))
		}
	})
}

func FuzzQuery(f *testing.F) {
	for _, s := range []string{"limit=5&direction=asc", "after=2022-01-01+02:00", "limit=%31&&urls=true", "%=", "a=b;c", "limit"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if _, err := read(raw); err != nil && apierr.From(err).Code() != apierr.InvalidParameter {
			t.Fatalf("%q: %v", raw, err)
		}
	})
}
