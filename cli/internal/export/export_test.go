package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
)

var errCut = errors.New("cut")

// server serves a list of total entries. Its cutAt-th page breaks in the middle.
type server struct {
	total int
	cutAt int
	once  bool // the same fetch then sends the whole page
	pages int
}

func record(i int) string {
	views := ""
	for v := range i % 4 {
		if v > 0 {
			views += ","
		}
		views += fmt.Sprintf(`{"timestamp":"2024-01-01T00:00:%02dZ","page_id":"p%d","page_key":"k, \"%d\"","page_index":%d,"url":null}`, v, v, v, v)
	}
	return fmt.Sprintf(`{"entry_id":"e%d","group_id":"g","project_id":"p","embeddable_id":"m","contact_id":"c","created_at":"2024-01-01T00:00:00.1Z","updated_at":"2024-01-02T00:00:00Z","entry_data":"{\"a\":\"x\\ny\",\"n\":1.50}","page_views":[%s]}`+"\n", i, views)
}

func (s *server) fetch(_ context.Context, cursor string, limit int, receive func(client.RawPage) error) error {
	from, _ := strconv.Atoi(cursor)
	to := min(from+limit, s.total)
	s.pages++
	var body strings.Builder
	for i := from; i < to; i++ {
		body.WriteString(record(i))
	}
	page := client.RawPage{Body: strings.NewReader(body.String())}
	if to < s.total {
		page.NextCursor = strconv.Itoa(to)
	}
	if s.pages == s.cutAt {
		half := page
		half.Body = &breaking{strings.NewReader(body.String()[:body.Len()/2])}
		if err := receive(half); !errors.Is(err, errCut) || !s.once {
			return err
		}
	}
	return receive(page)
}

type breaking struct{ r *strings.Reader }

func (b *breaking) Read(p []byte) (int, error) {
	if n, err := b.r.Read(p); err == nil {
		return n, nil
	}
	return 0, errCut
}

func query(kind Kind, format Format) Query {
	return Query{URL: "http://h", List: "/projects/p/entries", Kind: kind, Format: format}
}

func TestBrokenTransferIsForgotten(t *testing.T) {
	for _, path := range []string{"", filepath.Join(t.TempDir(), "f")} {
		var stream bytes.Buffer
		s := &server{total: 25, cutAt: 2, once: true}
		if _, err := Run(t.Context(), Options{Query: query(Entries, NDJSON), Fetch: s.fetch, PageSize: 10, Path: path, Stream: &stream}); err != nil {
			t.Fatal(err)
		}
		got := stream.String()
		if path != "" {
			b, _ := os.ReadFile(path)
			got = string(b)
		}
		var want strings.Builder
		for i := range 25 {
			want.WriteString(record(i))
		}
		if diff := cmp.Diff(want.String(), got); diff != "" {
			t.Errorf("to %q: %s", path, diff)
		}
	}
}

func TestLimit(t *testing.T) {
	for _, limit := range []int{1, 10, 15, 20, 100} {
		q := query(Entries, NDJSON)
		q.Limit = limit
		var b bytes.Buffer
		s := &server{total: 57}
		if _, err := Run(t.Context(), Options{Query: q, Fetch: s.fetch, PageSize: 10, Stream: &b}); err != nil {
			t.Fatal(err)
		}
		if got := bytes.Count(b.Bytes(), []byte("\n")); got != min(limit, 57) {
			t.Errorf("limit %d: %d records", limit, got)
		}
	}
}

func TestPartOfAnotherQueryIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	o := Options{Query: query(Entries, NDJSON), Fetch: (&server{total: 57, cutAt: 3}).fetch, PageSize: 10, Path: path}
	if _, err := Run(t.Context(), o); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	o.Query.List, o.Fetch = "/projects/p/entries?direction=ASC", (&server{total: 57}).fetch
	_, err := Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), `its list is "/projects/p/entries", not "/projects/p/entries?direction=ASC"`) {
		t.Fatalf("got %v, want one that names both lists", err)
	}
	o.Restart = true
	if result, err := Run(t.Context(), o); err != nil || result.Resumed {
		t.Errorf("restarted: %+v, %v", result, err)
	}
}

func TestTwoExportsOfOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	o := Options{Query: query(Entries, NDJSON), PageSize: 10, Path: path}
	o.Fetch = func(ctx context.Context, cursor string, limit int, receive func(client.RawPage) error) error {
		second := o
		second.Fetch = (&server{total: 5}).fetch
		if _, err := Run(ctx, second); err == nil || !strings.Contains(err.Error(), "another export") {
			t.Errorf("the second: %v", err)
		}
		return (&server{total: 5}).fetch(ctx, cursor, limit, receive)
	}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func TestEndlessListIsRefused(t *testing.T) {
	fetch := func(_ context.Context, _ string, _ int, receive func(client.RawPage) error) error {
		return receive(client.RawPage{Body: strings.NewReader(record(1)), NextCursor: "same"})
	}
	_, err := Run(t.Context(), Options{Query: query(Entries, NDJSON), Fetch: fetch, PageSize: 1, Stream: &bytes.Buffer{}})
	if err == nil || !strings.Contains(err.Error(), "never end") {
		t.Errorf("got %v", err)
	}
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A record that a proxy cut off is not left out without a word.
func TestLineWithoutEndIsRefused(t *testing.T) {
	var lines []string
	err := eachLine(strings.NewReader("{}\n{\"entry_id\":"), 1<<20, func(line []byte) error { lines = append(lines, string(line)); return nil })
	if err == nil || err.Error() != "the answer ends within a line" || len(lines) != 1 {
		t.Errorf("%v after %q", err, lines)
	}
}

func TestEndlessLineIsRefused(t *testing.T) {
	lines := 0
	err := eachLine(io.MultiReader(strings.NewReader("{}\n"), endless{}), 1<<20, func([]byte) error { lines++; return nil })
	if err == nil || !strings.Contains(err.Error(), "longer than 1 MiB") || lines != 1 {
		t.Errorf("%v after %d lines", err, lines)
	}
}
