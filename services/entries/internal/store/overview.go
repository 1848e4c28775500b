package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

// Overview returns an overview as JSON, and how many intervals it has. If there are more than [insight.MaxCounts]
// intervals, body may lack some of them.
func (s *Store) Overview(ctx context.Context, q insight.OverviewQuestion) (intervals int, body []byte, err error) {
	bounds := q.Bounds()
	both, after := withEarlier(q.CountsQuestion, q.Now)
	var answer insight.Overview
	var groups []insight.Group
	err = s.query(ctx, insightOf(overviewSQL, q.Selection, both, bounds, after), func(r pgx.Rows) error {
		answer, groups = insight.Overview{}, nil
		if after != nil {
			answer.Previous = &insight.Totals{}
		}
		var g insight.Group
		var embeddables json.RawMessage
		_, err := pgx.ForEachRow(r, []any{&g.Interval, &g.Entries, &g.Started, &g.Completed, &g.First, &g.Last, &embeddables}, func() error {
			switch {
			case embeddables != nil:
				answer.Embeddables = embeddables
			case g.Interval != nil && *g.Interval == 0:
				answer.Previous = &insight.Totals{Entries: g.Entries, Started: g.Started, Completed: g.Completed}
			default:
				groups = append(groups, g)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	answer.Intervals = q.Counts(bounds, groups)
	body, err = json.Marshal(answer)
	return len(answer.Intervals), append(body, '\n'), err
}

// withEarlier returns the selection of q together with the period before. after is a parameter of a statement: the time
// after which the period before begins, or nil if there is none. now ends a period that has no end.
func withEarlier(q insight.CountsQuestion, now time.Time) (both entry.Selection, after any) {
	both = q.Selection
	earlier, ok := q.Earlier(now)
	if !ok {
		return both, nil
	}
	both.Conditions = slices.Clone(both.Conditions)
	for i := range both.Conditions {
		if c := &both.Conditions[i]; c.Parameter == "created_after" {
			c.Value = earlier
		}
	}
	return both, pgdb.Timestamp(earlier)
}
