package pagelist

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

// counter is a Limiter that counts its calls.
type counter struct {
	entered, left, acquired, released int

	closed error // the error of Enter
	fails  int   // the number of the failing call of Acquire; 0: none
}

var errWaited = errors.New("waited in vain")

func (s *counter) Enter(context.Context) (Semaphore, error) {
	if s.closed != nil {
		return nil, s.closed
	}
	s.entered++
	return s, nil
}

func (s *counter) Acquire(context.Context) error {
	if s.acquired+1 == s.fails {
		return errWaited
	}
	s.acquired++
	return nil
}

func (s *counter) Release() { s.released++ }

func (s *counter) Leave() { s.left++ }

// stepped is a list of the numbers below rows. It records the number of records that each statement requests. steps has
// the statements that look for the page's end, and chunks those that read.
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

func TestOnlyListsOfSeveralChunksAreLimited(t *testing.T) {
	for _, tt := range []struct {
		name        string
		rows, limit int
		enters      bool
		least       int
	}{
		{"empty", 0, 10, false, 0},
		{"ten of many", 3000, 10, false, 0},
		{"the largest first chunk", 3000, firstRecords - 1, false, 0},
		{"all of a few", 300, All, false, 0},
		{"many", 3000, 3000, true, 3},
		{"all of many", 3000, All, true, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s counter
			page := whole
			page.Limit = tt.limit
			list, err := Open(WithLimiter(t.Context(), &s), rows(tt.rows), page)
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
			if (s.entered == 1) != tt.enters || s.left != s.entered || s.released != s.acquired || s.acquired < tt.least {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestLimiterErrors(t *testing.T) {
	page := whole
	page.Limit = 3000
	full := counter{closed: errWaited}
	if _, err := Open(WithLimiter(t.Context(), &full), rows(3000), page); !errors.Is(err, errWaited) {
		t.Errorf("one too many: %v", err)
	}
	for fails := 1; fails <= 3; fails++ {
		s := counter{fails: fails}
		list, err := Open(WithLimiter(t.Context(), &s), rows(3000), page)
		if fails == 1 {
			if !errors.Is(err, errWaited) {
				t.Errorf("the first statement: %v", err)
			}
		} else {
			var last error
			for _, err := range list.Chunks() {
				last = err
			}
			list.Close()
			if !errors.Is(last, errWaited) {
				t.Errorf("statement %d: the list ended with %v", fails, last)
			}
		}
		if s.left != 1 || s.released != s.acquired {
			t.Errorf("statement %d: %+v", fails, s)
		}
	}
}

// TestSettlesInSteps checks that the end of a long page is found in steps, and equals the end that one statement would
// find.
func TestSettlesInSteps(t *testing.T) {
	const all = 2*settleRecords + 10_000
	for _, tt := range []struct {
		name  string
		limit int
		steps int
		next  int64 // key of the page's last record; 0: no next page
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
