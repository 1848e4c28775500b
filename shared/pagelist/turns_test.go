package pagelist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
)

// turnstile counts.
type turnstile struct {
	entered, left, taken, given int

	light  int   // of those given: statements on an index alone
	closed error // what who enters gets
	ends   int   // the turn with which waiting ends in an error; 0: none
	short  bool  // every turn is to be
}

var errWaited = errors.New("waited in vain")

func (s *turnstile) Enter(context.Context) (Turn, error) {
	if s.closed != nil {
		return nil, s.closed
	}
	s.entered++
	return s, nil
}

func (s *turnstile) Take(context.Context) (bool, error) {
	if s.taken+1 == s.ends {
		return false, errWaited
	}
	s.taken++
	return s.short, nil
}

func (s *turnstile) Give(light bool) {
	s.given++
	if light {
		s.light++
	}
}

func (s *turnstile) Leave() { s.left++ }

// stepped is a list of the numbers up to rows, which notes how many records each statement asks for: on the way to
// a page's end, and of a chunk.
type stepped struct {
	rows   int64
	steps  []int
	chunks []int
}

func (s *stepped) Chunk(_ context.Context, sink *Sink, after, end Position, limit int) error {
	s.chunks = append(s.chunks, limit)
	for n := max(0, after.Key+1); n < min(s.rows, end.Key) && limit > 0; n, limit = n+1, limit-1 {
		if sink.Begin(n, nil) == Stop {
			break
		}
		sink.End()
	}
	return nil
}

func (s *stepped) Settle(_ context.Context, after, _ Position, n int) (Position, bool, bool, error) {
	s.steps = append(s.steps, n)
	left := s.rows - 1 - after.Key
	if left <= 0 {
		return Position{}, false, false, nil
	}
	return Position{Key: after.Key + min(int64(n), left)}, true, left > int64(n), nil
}

func rows(n int) *table {
	f := &table{rows: map[string]int64{}}
	for i := range n {
		f.rows[fmt.Sprintf("%07d", i)] = int64(i / 3)
	}
	return f
}

func TestOnlyListsOfManyChunksAskForTurns(t *testing.T) {
	for _, tt := range []struct {
		name         string
		rows, limit  int
		enters       bool
		leastOfTurns int
	}{
		{"empty", 0, 10, false, 0},
		{"ten of many", 3000, 10, false, 0},
		{"the largest first chunk", 3000, firstRecords - 1, false, 0},
		{"all of a few", 300, All, false, 0},
		{"many", 3000, 3000, true, 3},
		{"all of many", 3000, All, true, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s turnstile
			page := whole
			page.Limit = tt.limit
			list, err := Open(WithTurns(t.Context(), &s), rows(tt.rows), page)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range list.Chunks() {
				if err != nil {
					t.Fatal(err)
				}
			}
			if s.left != 0 {
				t.Error("left before it was closed")
			}
			list.Close()
			list.Close()
			if s.light != s.entered {
				t.Errorf("%d light statements", s.light)
			}
			if (s.entered == 1) != tt.enters || s.left != s.entered || s.given != s.taken || s.taken < tt.leastOfTurns {
				t.Errorf("%+v", s)
			}
		})
	}
}

// endless is a list whose second chunk takes until it is left.
type endless struct {
	*table
	begun chan struct{}
}

func (e endless) Chunk(ctx context.Context, sink *Sink, after, end Position, limit int) error {
	if e.chunks == 0 {
		return e.table.Chunk(ctx, sink, after, end, limit)
	}
	close(e.begun)
	<-ctx.Done()
	return ctx.Err()
}

// A list that is left in the middle of a statement keeps nobody waiting for it.
func TestALeftTurnIsLight(t *testing.T) {
	var s turnstile
	page := whole
	page.Limit = 3000
	src := endless{rows(3000), make(chan struct{})}
	list, err := Open(WithTurns(t.Context(), &s), src, page)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range list.Chunks() {
		if err != nil {
			t.Fatal(err)
		}
		<-src.begun
		break
	}
	list.Close()
	if s.taken != 2 || s.given != 2 || s.light != 2 { // the page's end, and the chunk
		t.Errorf("%+v", s)
	}
}

func TestTurnsThatDoNotCome(t *testing.T) {
	page := whole
	page.Limit = 3000
	full := turnstile{closed: errWaited}
	if _, err := Open(WithTurns(t.Context(), &full), rows(3000), page); !errors.Is(err, errWaited) {
		t.Errorf("one too many: %v", err)
	}
	for ends := 1; ends <= 3; ends++ {
		s := turnstile{ends: ends}
		list, err := Open(WithTurns(t.Context(), &s), rows(3000), page)
		if ends == 1 {
			if !errors.Is(err, errWaited) {
				t.Errorf("the first turn: %v", err)
			}
		} else {
			var last error
			for _, err := range list.Chunks() {
				last = err
			}
			list.Close()
			if !errors.Is(last, errWaited) {
				t.Errorf("turn %d: the list ended with %v", ends, last)
			}
		}
		if s.left != 1 || s.given != s.taken {
			t.Errorf("turn %d: %+v", ends, s)
		}
	}
}

// The way to the end of a long page is gone in steps, and leads where one statement would.
func TestSettlesInSteps(t *testing.T) {
	const all = 2*settleRecords + 10_000
	for _, tt := range []struct {
		name  string
		limit int
		steps int
		next  int64 // key of the page's last record; 0: there is no next page
	}{
		{"one step", settleRecords, 1, settleRecords - 1},
		{"two steps", settleRecords + firstRecords + 1, 2, settleRecords + firstRecords},
		{"up to the end", all, 3, 0},
		{"behind the end", All - 1, 3, 0},
		{"all", All, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := &stepped{rows: all}
			list, err := Open(t.Context(), src, Page{After: Position{Key: -1}, End: Position{Key: math.MaxInt64}, Limit: tt.limit})
			if err != nil {
				t.Fatal(err)
			}
			defer list.Close()
			if len(src.steps) != tt.steps || slices.Max(src.steps) > settleRecords && tt.limit != All {
				t.Errorf("steps %v", src.steps)
			}
			got := int64(0)
			if list.Next() != nil {
				got = list.Next().Key
			}
			if got != tt.next {
				t.Errorf("the page ends at %d, want %d", got, tt.next)
			}
		})
	}
}

// Short turns read the same list, by more statements of fewer records each.
func TestShortTurns(t *testing.T) {
	const all = settleRecords + 10_000
	for _, limit := range []int{all - 1, All} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			read := func(short bool) (body []byte, next *Position, src *stepped, turns int) {
				s := turnstile{short: short}
				src = &stepped{rows: all}
				page := Page{After: Position{Key: -1}, End: Position{Key: math.MaxInt64}, Limit: limit}
				list, err := Open(WithTurns(t.Context(), &s), src, page)
				if err != nil {
					t.Fatal(err)
				}
				defer list.Close()
				for chunk, err := range list.Chunks() {
					if err != nil {
						t.Fatal(err)
					}
					body = append(body, chunk...)
				}
				return body, list.Next(), src, s.taken
			}
			want, wantNext, _, few := read(false)
			got, gotNext, src, many := read(true)
			if !bytes.Equal(want, got) || !reflect.DeepEqual(wantNext, gotNext) {
				t.Errorf("%d bytes up to %v, want %d up to %v", len(got), gotNext, len(want), wantNext)
			}
			if many < 10*few {
				t.Errorf("%d turns, of which %d were long", many, few)
			}
			if most := slices.Max(src.steps); limit != All && most > settleRecords/shortBy {
				t.Errorf("a step of %d on the way to the page's end", most)
			}
			if most := slices.Max(src.chunks[1:]); most > mostRecords/shortBy {
				t.Errorf("a chunk of %d", most)
			}
		})
	}
}
