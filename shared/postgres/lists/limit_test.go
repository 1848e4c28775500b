package lists

import (
	"context"
	"math"
	"slices"
	"testing"
)

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
