package httpapi

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func TestQuery(t *testing.T) {
	with := func(name string, value any) map[string]any {
		m := map[string]any{"limit": 10, "desc": true, "sort": "a", "after": int64(-1), "urls": false}
		m[name] = value
		return m
	}
	tests := []struct {
		in    string
		want  map[string]any
		fault string // a part of the message: the parameter, its value and the allowed values
	}{
		{in: "", want: with("limit", 10)},
		{in: "limit=1", want: with("limit", 1)},
		{in: "limit=1000", want: with("limit", 1000)},
		{in: "&&limit=5&", want: with("limit", 5)},
		{in: "l%69mit=5", want: with("limit", 5)},
		{in: "limit=0", fault: `"limit" was given as "0"; allowed: an integer from 1 to 1000`},
		{in: "limit=1001", fault: `"1001"`},
		{in: "limit=-1", fault: `"-1"`},
		{in: "limit=", fault: `given as ""`},
		{in: "limit", fault: `given as ""`},
		{in: "limit=1.5", fault: `"1.5"`},
		{in: "limit=99999999999999999999", fault: "99999999999999999999"},
		{in: "limit=ten", fault: `"ten"`},
		{in: "limit=5&limit=5", fault: `"limit" was given as "5"; allowed: to be given once`},
		{in: "direction=asc", want: with("desc", false)},
		{in: "direction=DeSc", want: with("desc", true)},
		{in: "direction=", fault: "ASC or DESC"},
		{in: "direction=up", fault: `"up"; allowed: ASC or DESC`},
		{in: "sort=b", want: with("sort", "b")},
		{in: "sort=B", fault: "a, b"},
		{in: "after=1970-01-01T00:00:01Z", want: with("after", int64(1e6))},
		{in: "after=1970-01-01T02:00:01%2B02:00", want: with("after", int64(1e6))},
		{in: "after=1970-01-01T02:00:01+02:00", want: with("after", int64(1e6))},
		{in: "after=soon", fault: "RFC 3339"},
		{in: "urls=true", want: with("urls", true)},
		{in: "urls=1", fault: "true or false"},
		{in: "Limit=5", fault: `"Limit"`},
		{in: "nope=5", fault: "limit, direction, sort, after, urls"},
		{in: "limit=%zz", fault: "percent-encoded"},
		{in: "limit=%ff", fault: "percent-encoded"},
		{in: "%ff=1", fault: "%ff"},
		{in: "limit=5;direction=ASC", fault: "5;direction=ASC"},
		{in: "x=" + strings.Repeat("y", 5000), fault: "x"},
		{in: "sort=" + strings.Repeat("y", 5000), fault: "yyyy…"},
	}
	for _, tt := range tests {
		t.Run(tt.in[:min(len(tt.in), 40)], func(t *testing.T) {
			got, err := read(tt.in)
			if tt.fault == "" {
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
				return
			}
			if err == nil {
				t.Fatalf("no fault; got %v", got)
			}
			e := apierr.From(err)
			if e.Code() != apierr.InvalidParameter || !e.Has("parameter") || !strings.Contains(e.Message(), tt.fault) {
				t.Errorf("got %v, want it to say %s", err, tt.fault)
			}
			if len(e.Message()) > 400 {
				t.Errorf("a message of %d bytes", len(e.Message()))
			}
		})
	}
}

func TestCursor(t *testing.T) {
	b := Binding{Project: "p", List: "entries", Sort: "updated_at", Descending: true, Filters: []string{"1", "2"}, Least: wire.MinTime, Most: wire.MaxTime}
	at := pagelist.Position{Key: 1_700_000_000_000_000, ID: "en_é/1"}
	open := func(b Binding, cursor string) (pagelist.Position, error) {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.RawQuery = "cursor=" + cursor
		q := ParseQuery(r, "cursor")
		p := b.Position(q, pagelist.Position{})
		return p, q.Err()
	}
	cursor := b.Cursor(at)
	if got, err := open(b, cursor); err != nil || got != at {
		t.Fatalf("round trip: %v, %v", got, err)
	}
	for name, other := range map[string]Binding{
		"project":   {Project: "q", List: b.List, Sort: b.Sort, Descending: true, Filters: b.Filters},
		"list":      {Project: b.Project, List: "events", Sort: b.Sort, Descending: true, Filters: b.Filters},
		"of":        {Project: b.Project, List: b.List, Of: "x", Sort: b.Sort, Descending: true, Filters: b.Filters},
		"sort":      {Project: b.Project, List: b.List, Sort: "created_at", Descending: true, Filters: b.Filters},
		"direction": {Project: b.Project, List: b.List, Sort: b.Sort, Filters: b.Filters},
		"filter":    {Project: b.Project, List: b.List, Sort: b.Sort, Descending: true, Filters: []string{"1", "3"}},
		"shifted":   {Project: b.Project, List: b.List, Sort: b.Sort, Descending: true, Filters: []string{"12", ""}},
	} {
		other.Least, other.Most = wire.MinTime, wire.MaxTime
		if got, err := open(other, cursor); err == nil {
			t.Errorf("taken with another %s: %v", name, got)
		}
	}
	for i := range len(cursor) {
		for _, c := range []byte("A_z9") {
			altered := []byte(cursor)
			if altered[i] == c {
				continue
			}
			altered[i] = c
			if got, err := open(b, string(altered)); err == nil {
				t.Fatalf("altered at %d: taken as %v", i, got)
			}
		}
		if got, err := open(b, cursor[:i]); err == nil {
			t.Fatalf("cut at %d: taken as %v", i, got)
		}
	}
	// A client can compute the checksum. Even then, the cursor must contain a valid position.
	for _, p := range []pagelist.Position{{Key: wire.MinTime - 1, ID: "x"}, {Key: wire.MaxTime + 1}, {Key: 1, ID: "a\x00b"}, {Key: 1, ID: "\xff"}, {Key: 1, ID: strings.Repeat("x", 257)}} {
		if got, err := open(b, b.Cursor(p)); err == nil {
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
		p := b.Position(q, pagelist.Position{})
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
