package keyset

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// turnstile counts.
type turnstile struct {
	entered, left, taken, given int
	closed                      error // what who enters gets
	ends                        int   // the turn with which waiting ends in an error; 0: none
}

var errWaited = errors.New("waited in vain")

func (s *turnstile) Enter(context.Context) (Turn, error) {
	if s.closed != nil {
		return nil, s.closed
	}
	s.entered++
	return s, nil
}

func (s *turnstile) Take(context.Context) error {
	if s.taken+1 == s.ends {
		return errWaited
	}
	s.taken++
	return nil
}

func (s *turnstile) Give()  { s.given++ }
func (s *turnstile) Leave() { s.left++ }

// stepped notes how far each statement on the way to a page's end goes.
type stepped struct {
	*table
	steps []int
}

func (s *stepped) Settle(ctx context.Context, after, end Position, n int) (Position, bool, bool, error) {
	s.steps = append(s.steps, n)
	return s.table.Settle(ctx, after, end, n)
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
			if (s.entered == 1) != tt.enters || s.left != s.entered || s.given != s.taken || s.taken < tt.leastOfTurns {
				t.Errorf("%+v", s)
			}
		})
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
	f := rows(2*settleRecords + 10_000)
	for _, tt := range []struct {
		name  string
		limit int
		steps int
		next  bool
	}{
		{"one step", settleRecords, 1, true},
		{"two steps", settleRecords + firstRecords + 1, 2, true},
		{"behind the end", All - 1, 3, false},
		{"all", All, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := &stepped{table: f}
			page := whole
			page.Limit = tt.limit
			list, err := Open(t.Context(), src, page)
			if err != nil {
				t.Fatal(err)
			}
			defer list.Close()
			if len(src.steps) != tt.steps || (list.Next() != nil) != tt.next {
				t.Fatalf("steps %v, next %v", src.steps, list.Next())
			}
			if tt.next {
				want := f.between(page.After, page.End)[tt.limit-1]
				if *list.Next() != want {
					t.Errorf("ends at %v, want %v", *list.Next(), want)
				}
			}
		})
	}
}
