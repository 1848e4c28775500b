package store

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

// overviewOf returns the statement of an overview. One statement reads all of the overview, so its figures are of one
// moment. There is a row for each interval that has entries, and one for entries without an interval. The row of the
// earlier period has the number 0. Further rows have the embeddables with the most entries, up to
// [insight.MaxEmbeddables].
//
// The largest drop is the page with the largest share of dropped entries. Only pages that a tenth of the started
// entries reached count. The statement finds the key of the page as the funnel does.
func overviewOf(q insight.OverviewQuestion, bounds []time.Time) statement {
	var s statement
	both := q.WithEarlier()
	condition := s.progressOf(both)
	current := s.progressOf(q.Selection)
	believed := "created_at >= " + s.arg(insight.FirstYear) + " AND created_at < " + s.arg(insight.AfterYear)
	number := "CASE"
	if after, _, ok := q.After(); ok {
		number += " WHEN created_at <= " + s.arg(pgdb.Timestamp(after)) + " THEN 0"
	}
	if q.Interval != insight.All {
		number += " WHEN " + believed + " THEN width_bucket(created_at, " + s.arg(bounds) + "::timestamptz[])"
	} else {
		number += " WHEN false THEN 1"
	}
	number += " END"
	entries, entriesAlone := "1", ""
	if q.Version == nil {
		entries, entriesAlone = "0", `
    UNION ALL
    SELECT `+number+`, created_at, embeddable_id, 1, 0, 0, NULL, 0
    FROM entries
    WHERE `+s.selected(both.Selection, "")
	}
	s.sql = `WITH counted AS (
    SELECT ` + number + ` AS number, created_at, embeddable_id, ` + entries + ` AS entries, 1 AS started,
           (completed_after IS NOT NULL)::int AS completed, furthest, (NOT ended)::int AS dropped
    FROM progress
    WHERE ` + condition + ` AND ` + ofEntries + entriesAlone + `
), grouped AS MATERIALIZED (
    SELECT number IS NOT DISTINCT FROM 0 AS earlier, number, embeddable_id, furthest,
           sum(entries) AS entries, sum(started) AS started, sum(completed) AS completed, sum(dropped) AS dropped,
           min(created_at) FILTER (WHERE ` + believed + `) AS first, max(created_at) FILTER (WHERE ` + believed + `) AS last
    FROM counted
    GROUP BY number, embeddable_id, furthest
), embeddable AS (
    SELECT embeddable_id,
           coalesce(sum(entries) FILTER (WHERE NOT earlier), 0) AS entries, coalesce(sum(started) FILTER (WHERE NOT earlier), 0) AS started,
           coalesce(sum(completed) FILTER (WHERE NOT earlier), 0) AS completed, coalesce(sum(entries) FILTER (WHERE earlier), 0) AS earlier_entries,
           coalesce(sum(started) FILTER (WHERE earlier), 0) AS earlier_started, coalesce(sum(completed) FILTER (WHERE earlier), 0) AS earlier_completed
    FROM grouped
    GROUP BY embeddable_id
    ORDER BY 2 DESC, embeddable_id
    LIMIT ` + strconv.Itoa(insight.MaxEmbeddables) + `
), page AS (
    SELECT embeddable_id, furthest, sum(started) AS stopped, sum(dropped) AS dropped
    FROM grouped
    WHERE NOT earlier AND furthest IS NOT NULL
    GROUP BY embeddable_id, furthest
), lost AS (
    SELECT DISTINCT ON (embeddable_id) embeddable_id, furthest, reached, dropped
    FROM (
        SELECT embeddable_id, furthest, dropped, sum(stopped) OVER (PARTITION BY embeddable_id ORDER BY furthest DESC) AS reached,
               sum(stopped) OVER (PARTITION BY embeddable_id) AS started
        FROM page
    ) p
    WHERE dropped > 0 AND reached * 10 >= started
    ORDER BY embeddable_id, dropped::float8 / reached::float8 DESC, furthest
)
SELECT number, NULL AS embeddable_id, sum(entries), sum(started), sum(completed), min(first), max(last),
       NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL
FROM grouped
GROUP BY number
UNION ALL
SELECT NULL, e.embeddable_id, e.entries, e.started, e.completed, NULL, NULL, e.earlier_entries, e.earlier_started, e.earlier_completed,
       l.furthest, l.reached, l.dropped, k.page_key
FROM embeddable e
LEFT JOIN lost l USING (embeddable_id)
LEFT JOIN LATERAL (
    SELECT v.page_key
    FROM (
        SELECT entry_id, version
        FROM progress
        WHERE ` + current + ` AND embeddable_id = l.embeddable_id AND furthest >= l.furthest AND ` + ofVersions + `
        ORDER BY version DESC NULLS LAST, entry_id DESC
    ) p
    CROSS JOIN LATERAL (
        SELECT v.page_key
        FROM events v
        WHERE v.project_id = $1 AND v.entry_id = p.entry_id AND v.event_type = 'flowpage.viewed' AND v.page_index = l.furthest
          AND v.embeddable_version_number IS NOT DISTINCT FROM p.version
        ORDER BY v."timestamp" DESC, v.arrival DESC
        LIMIT 1
    ) v
    ORDER BY p.version DESC NULLS LAST, p.entry_id DESC
    LIMIT 1
) k ON true`
	return s
}

// Overview returns an overview as JSON, and how many intervals it has. If there are more than [insight.MaxCounts]
// intervals, body may lack some of them.
func (s *Store) Overview(ctx context.Context, q insight.OverviewQuestion) (intervals int, body []byte, err error) {
	bounds := q.Bounds()
	_, _, hasEarlier := q.After()
	var answer insight.Overview
	var groups []insight.Group
	err = s.query(ctx, overviewOf(q, bounds), func(r pgx.Rows) error {
		answer, groups = insight.Overview{Embeddables: []insight.OverviewEmbeddable{}}, nil
		if hasEarlier {
			answer.Previous = &insight.Totals{}
		}
		for r.Next() {
			var g insight.Group
			var entries, started, completed, page, reached, dropped *int64
			var key *string
			if err := r.Scan(&g.Interval, &g.EmbeddableID, &g.Entries, &g.Started, &g.Completed, &g.First, &g.Last,
				&entries, &started, &completed, &page, &reached, &dropped, &key); err != nil {
				return err
			}
			totals := insight.Totals{Entries: g.Entries, Started: g.Started, Completed: g.Completed}
			switch {
			case g.EmbeddableID != nil:
				e := insight.OverviewEmbeddable{EmbeddableID: *g.EmbeddableID, Totals: totals}
				if hasEarlier {
					e.Previous = &insight.Totals{Entries: int(*entries), Started: int(*started), Completed: int(*completed)}
				}
				if key != nil {
					e.LargestDrop = &insight.Drop{Index: *page, Key: *key, Reached: int(*reached), Dropped: int(*dropped)}
				}
				answer.Embeddables = append(answer.Embeddables, e)
			case g.Interval != nil && *g.Interval == 0:
				answer.Previous = &totals
			default:
				groups = append(groups, g)
			}
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	answer.Sort()
	answer.Intervals = q.Counts(bounds, groups)
	body, err = json.Marshal(answer)
	return len(answer.Intervals), append(body, '\n'), err
}
