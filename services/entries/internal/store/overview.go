package store

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

// Overview returns an overview as JSON, and how many intervals it has. If there are more than [insight.MaxCounts]
// intervals, body may lack some of them.
func (s *Store) Overview(ctx context.Context, q insight.OverviewQuestion) (intervals int, body []byte, err error) {
	bounds := q.Bounds()
	var after any // null: there is no earlier period
	both := q.Selection
	earlier, hasEarlier := q.Earlier()
	if hasEarlier {
		after = pgdb.Timestamp(earlier)
		both.Conditions = slices.Clone(both.Conditions)
		for i := range both.Conditions {
			if c := &both.Conditions[i]; c.Parameter == "created_after" {
				c.Value = earlier
			}
		}
	}
	var answer insight.Overview
	var groups []insight.Group
	err = s.query(ctx, insightOf(overviewSQL, q.Selection, both, bounds, after), func(r pgx.Rows) error {
		answer, groups = insight.Overview{}, nil
		if hasEarlier {
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
