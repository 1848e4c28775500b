package lists

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lectern-dev/lectern/shared/apierr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table is a list in memory, ascending.
type table struct {
	rows   map[string]int64
	size   int    // bytes of padding in each record
	before func() // called before each chunk
	fail   error  // the error of each chunk after the first
	fails  int    // how many calls fail; 0: all
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
	if f.fail != nil && f.chunks > 1 && (f.fails == 0 || f.chunks <= 1+f.fails) {
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

func TestChunksAreBounded(t *testing.T) {
	f := &table{rows: map[string]int64{}, size: 50_000}
	const records = 300
	for i := range records {
		f.rows[fmt.Sprintf("%05d", i)] = 1
	}
	page := whole
	page.Limit = records
	ids, next := get(t, f, page)
	if len(ids) != records || next != nil {
		t.Errorf("%d records, next %v", len(ids), next)
	}
	if f.most > mostBytes+60_000 {
		t.Errorf("a chunk of %d bytes", f.most)
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

// TestDatabaseFailsWithinAPage checks that a page that has begun waits for a database that fails for a moment, but not for
// ever. An error that will not pass ends the page at once.
func TestDatabaseFailsWithinAPage(t *testing.T) {
	rows := map[string]int64{}
	for n := range 2000 {
		rows[fmt.Sprintf("%04d", n)] = int64(n)
	}
	away, wrong := apierr.NotAvailable(errors.New("no connection")), errors.New("a wrong statement")
	for _, tt := range []struct {
		name  string
		fail  error
		fails int
		takes time.Duration // at least
		want  error
	}{
		{"comes back", away, 5, 5 * pause, nil},
		{"stays away", away, 0, patience, away},
		{"is wrong", wrong, 0, 0, wrong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				l, err := Open(t.Context(), &table{rows: rows, fail: tt.fail, fails: tt.fails}, Page{After: whole.After, End: whole.End, Limit: 2000})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				var last error
				var body bytes.Buffer
				for chunk, err := range l.Chunks() {
					body.Write(chunk)
					last = err
				}
				if took := time.Since(start); !errors.Is(last, tt.want) || took < tt.takes || took > tt.takes+2*pause {
					t.Errorf("ended after %v with %v", took, last)
				}
				if n := bytes.Count(body.Bytes(), []byte(`"id"`)); tt.want == nil && n != len(rows) {
					t.Errorf("%d records", n)
				}
			})
		})
	}
}

// TestPanicWhileReadingAhead checks that a panic of a source in a later chunk reaches the goroutine that serves the request,
// which recovers from it.
func TestPanicWhileReadingAhead(t *testing.T) {
	rows := map[string]int64{}
	for n := range 2000 {
		rows[fmt.Sprint(n)] = int64(n)
	}
	src := &table{rows: rows}
	src.before = func() {
		if src.chunks == 1 {
			panic("a row that nobody expects")
		}
	}
	l, err := Open(t.Context(), src, Page{After: whole.After, End: whole.End, Limit: 2000})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	defer func() {
		if fault := recover(); fault == nil || !strings.Contains(fmt.Sprint(fault), "a row that nobody expects") {
			t.Errorf("recovered %v", fault)
		}
	}()
	for _, err := range l.Chunks() {
		if err != nil {
			t.Errorf("the sequence ends with %v", err)
		}
	}
}

// TestOneChunkIsDocumented checks that the documentation has the size of a list that is read in one chunk, and so has an
// ETag.
func TestOneChunkIsDocumented(t *testing.T) {
	size := fmt.Sprintf("lists of up to %d records and %d MiB, have an `ETag`", firstRecords, mostBytes>>20)
	for _, path := range []string{"../../../docs/reference/api.md", "../../openapi/lectern.yaml"} {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), size) {
			t.Errorf("%s does not say: %s", path, size)
		}
	}
}
