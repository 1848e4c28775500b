package httpapi

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
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
	for _, p := range []lists.Position{{Key: wire.MinTime - 1, ID: "x"}, {Key: wire.MaxTime + 1}, {Key: 1, ID: "a\x00b"}, {Key: 1, ID: "\xff"}, {Key: 1, ID: strings.Repeat("x", 257)}} {
		q := ParseQuery(httptest.NewRequest("GET", "/?cursor="+b.Cursor(p), nil), "cursor")
		if got := b.position(q, lists.Position{}); q.Err() == nil {
			t.Errorf("%v: taken as %v", p, got)
		}
	}
}

// TestCursorsArePinned checks that this version gives out the cursors of the versions before it, and so accepts theirs. If it
// fails, clients that walk a list during an upgrade get a 400.
func TestCursorsArePinned(t *testing.T) {
	for _, tt := range []struct {
		name    string
		binding Binding
		want    string
	}{
		{"a list", Binding{Project: "p", List: "entries", Sort: "updated_at", Descending: true}, "AQAF1Hn3-WAAeJ1tyytlbYbr6o4ovNPUs0c"},
		{"ascending", Binding{Project: "p", List: "entries", Sort: "updated_at"}, "AQAF1Hn3-WAAeLo9KoaYpHEaQUQBIbiduoc"},
		{"of a record", Binding{Project: "p", List: "events", Of: "en_1", Sort: "timestamp"}, "AQAF1Hn3-WAAeOuj1Lf1iqbzUwTmXBFit9k"},
		{"a filter", Binding{Project: "p", List: "entries", Sort: "updated_at", Filters: map[string]string{"a": "1"}}, "AQAF1Hn3-WAAeEnauIhjUVCBmoHrJv7pJdg"},
		{"the name of a filter counts", Binding{Project: "p", List: "entries", Sort: "updated_at", Filters: map[string]string{"b": "1"}}, "AQAF1Hn3-WAAeKpc6Bgl5p-e9ZG_DadVgPI"},
		{"two filters", Binding{Project: "p", List: "entries", Sort: "updated_at", Filters: map[string]string{"b": "2", "a": "1"}}, "AQAF1Hn3-WAAeIBKHNVzG0BfnRObhx8CG8s"},
	} {
		if got := tt.binding.Cursor(lists.Position{Key: 1640995200000000, ID: "x"}); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func FuzzCursor(f *testing.F) {
	b := Binding{Project: "p", List: "entries", Sort: "updated_at", Least: wire.MinTime, Most: wire.MaxTime}
	f.Add(b.Cursor(lists.Position{Key: 5, ID: "x"}))
	f.Add("")
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, cursor string) {
		r := httptest.NewRequest("GET", "/", nil)
		q := ParseQuery(r, "cursor")
		q.values = map[string]string{"cursor": cursor}
		p := b.position(q, lists.Position{})
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
