package pagelist

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table is a list in memory, ascending.
type table struct {
	rows   map[string]int64
	size   int    // bytes of padding in each record
	before func() // called before each chunk
	fail   error  // the error of the next chunk
	chunks int
	most   int // bytes of the largest chunk
}

func less(a, b Position) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), strings.Compare(a.ID, b.ID))
}

func (f *table) between(after, end Position) []Position {
	var ps []Position
	for id, key := range f.rows {
		if p := (Position{key, id}); less(p, after) > 0 && less(p, end) <= 0 {
			ps = append(ps, p)
		}
	}
	slices.SortFunc(ps, less)
	return ps
}

func (f *table) Chunk(_ context.Context, sink *Sink, after, end Position, limit int) error {
	if f.before != nil {
		f.before()
	}
	f.chunks++
	if f.fail != nil && f.chunks > 1 {
		return f.fail
	}
	defer func() { f.most = max(f.most, len(sink.Bytes())) }()
	for i, p := range f.between(after, end) {
		if i == limit {
			break
		}
		switch sink.Begin(p.Key, []byte(p.ID)) {
		case Skip:
			continue
		case Stop:
			return nil
		}
		sink.SetBytes(fmt.Appendf(sink.Bytes(), `{"id":%q,"pad":%q}`, p.ID, strings.Repeat("x", f.size)))
		sink.End()
	}
	return nil
}

func (f *table) Settle(_ context.Context, after, end Position, n int) (Position, bool, bool, error) {
	ps := f.between(after, end)
	if len(ps) == 0 {
		return Position{}, false, false, nil
	}
	return ps[min(n, len(ps))-1], true, len(ps) > n, nil
}

var whole = Page{After: Position{Key: math.MinInt64}, End: Position{Key: math.MaxInt64}, Moves: true}

// get reads a page and returns its ids.
func get(t interface{ Fatalf(string, ...any) }, f Source, page Page) (ids []string, next *Position) {
	l, err := Open(context.Background(), f, page)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer l.Close()
	var body bytes.Buffer
	for chunk, err := range l.Chunks() {
		if err != nil {
			t.Fatalf("chunk: %v", err)
		}
		body.Write(chunk)
	}
	var records []struct{ ID string }
	if page.Format == NDJSON {
		dec := json.NewDecoder(&body)
		for dec.More() {
			var r struct{ ID string }
			if err := dec.Decode(&r); err != nil {
				t.Fatalf("line: %v", err)
			}
			records = append(records, r)
		}
	} else if err := json.Unmarshal(body.Bytes(), &records); err != nil {
		t.Fatalf("body is not an array: %v\n%.200s", err, body.String())
	}
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return ids, l.Next()
}

func TestWalk(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 11, 499, 500, 501, 2500} {
		f := &table{rows: map[string]int64{}}
		for i := range n {
			f.rows[fmt.Sprintf("%05d", i)] = int64(i / 7)
		}
		for _, limit := range []int{1, 10, 499, 500, 501, 2499, 2500, 100000} {
			if limit == 1 && n > 1000 {
				continue
			}
			for _, format := range []Format{JSON, NDJSON} {
				page := whole
				page.Limit, page.Format = limit, format
				var all []string
				for {
					ids, next := get(t, f, page)
					if len(ids) > limit {
						t.Fatalf("n %d limit %d: a page of %d", n, limit, len(ids))
					}
					all = append(all, ids...)
					if next == nil {
						break
					}
					if len(ids) != limit {
						t.Fatalf("n %d limit %d: a page of %d that has a next one", n, limit, len(ids))
					}
					page.After = *next
				}
				if len(all) != n || !slices.IsSorted(all) || len(slices.Compact(all)) != n {
					t.Fatalf("n %d limit %d format %d: walk gave %d records", n, limit, format, len(all))
				}
			}
		}
	}
}

// TestWalkUnderChange reads pages while records change. No page has a record twice, and an unchanged record comes
// exactly once in all pages.
func TestWalkUnderChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1000).Draw(t, "n")
		f := &table{rows: map[string]int64{}, size: rapid.SampledFrom([]int{0, 100, 12000}).Draw(t, "size")}
		if f.size == 12000 {
			n /= 2
		}
		for i := range n {
			f.rows[fmt.Sprint(i)] = int64(rapid.IntRange(0, 50).Draw(t, "key"))
		}
		changed := map[string]bool{}
		f.before = func() {
			for range rapid.IntRange(0, 20).Draw(t, "changes") {
				id := fmt.Sprint(rapid.IntRange(0, n+50).Draw(t, "id"))
				changed[id] = true
				if rapid.Bool().Draw(t, "delete") {
					delete(f.rows, id)
				} else {
					f.rows[id] = int64(rapid.IntRange(0, 60).Draw(t, "new key"))
				}
			}
		}
		page := whole
		page.Limit = rapid.SampledFrom([]int{300, 600, 900, 5000}).Draw(t, "limit")
		seen := map[string]int{}
		for pages := 0; ; pages++ {
			if pages > 100 {
				t.Fatalf("the walk does not end")
			}
			ids, next := get(t, f, page)
			if unique := slices.Compact(slices.Sorted(slices.Values(ids))); len(unique) != len(ids) {
				t.Fatalf("a record came twice in a page of %d", len(ids))
			}
			for _, id := range ids {
				seen[id]++
			}
			if next == nil {
				break
			}
			if less(*next, page.After) <= 0 {
				t.Fatalf("the next page does not lie ahead: %v after %v", *next, page.After)
			}
			page.After = *next
		}
		for i := range n {
			if id := fmt.Sprint(i); !changed[id] && seen[id] != 1 {
				t.Fatalf("unchanged record %s came %d times", id, seen[id])
			}
		}
	})
}

func TestChunksAreBounded(t *testing.T) {
	f := &table{rows: map[string]int64{}, size: 50_000}
	for i := range 2000 {
		f.rows[fmt.Sprintf("%05d", i)] = 1
	}
	page := whole
	page.Limit = 2000
	ids, next := get(t, f, page)
	if len(ids) != 2000 || next != nil {
		t.Errorf("%d records, next %v", len(ids), next)
	}
	if f.most > mostBytes+60_000 {
		t.Errorf("a chunk of %d bytes", f.most)
	}
}

func TestFaultInTheMiddle(t *testing.T) {
	f := &table{rows: map[string]int64{}, fail: errors.New("gone")}
	for i := range 2000 {
		f.rows[fmt.Sprintf("%05d", i)] = 1
	}
	page := whole
	page.Limit = 2000
	l, err := Open(t.Context(), f, page)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var body []byte
	for chunk, e := range l.Chunks() {
		body, err = append(body, chunk...), e
	}
	if !errors.Is(err, f.fail) || json.Valid(body) {
		t.Errorf("error %v, body looks complete: %v", err, json.Valid(body))
	}
}

// TestLeave checks that no goroutine keeps running after a client disconnects or a request is cancelled. TestMain finds
// the remaining ones.
func TestLeave(t *testing.T) {
	f := &table{rows: map[string]int64{}}
	for i := range 20000 {
		f.rows[fmt.Sprintf("%05d", i)] = 1
	}
	page := whole
	page.Limit = 20000
	ctx, cancel := context.WithCancel(t.Context())
	l, err := Open(ctx, f, page)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range l.Chunks() {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	l.Close()
	if l, err = Open(ctx, f, page); err != nil {
		t.Fatal(err)
	}
	cancel()
	last := error(nil)
	for _, err := range l.Chunks() {
		last = err
	}
	l.Close()
	if !errors.Is(last, context.Canceled) {
		t.Errorf("a list of an ended request ended with %v", last)
	}
}

// TestAll checks that a page without a limit has no next page and has its whole range. The range ends where it ended at
// the start.
func TestAll(t *testing.T) {
	for _, n := range []int{0, 1, firstRecords - 1, firstRecords, firstRecords + 1, 3 * mostRecords} {
		src := &table{rows: map[string]int64{}}
		for i := range n {
			src.rows[fmt.Sprintf("%06d", i)] = int64(i)
		}
		page := whole
		page.Limit = All
		list, err := Open(t.Context(), src, page)
		if err != nil {
			t.Fatal(err)
		}
		src.rows["later"] = int64(n)
		var body bytes.Buffer
		for chunk, err := range list.Chunks() {
			if err != nil {
				t.Fatal(err)
			}
			body.Write(chunk)
		}
		var got []any
		if err := json.Unmarshal(body.Bytes(), &got); err != nil || len(got) != n || list.Next() != nil {
			t.Errorf("of %d: %d, %v, next %v", n, len(got), err, list.Next())
		}
		list.Close()
	}
}
