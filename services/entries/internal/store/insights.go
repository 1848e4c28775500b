package store

import (
	"context"
	_ "embed" // for the statements
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/insert"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

// The statements of the insights, each whole in a file. These statements have the parameters $1 to $7 in common, except
// pageKeysSQL. See [insightOf]. The limits and the years in the files are those of package insight.
var (
	//go:embed insights/counts.sql
	countsSQL string
	//go:embed insights/overview.sql
	overviewSQL string
	//go:embed insights/funnel.sql
	funnelSQL string
	//go:embed insights/answers.sql
	answersSQL string
	//go:embed insights/page_keys.sql
	pageKeysSQL string
)

// places has the filters whose values are the parameters $2 to $7 of the statements of insights.
var places = []string{"embeddable_id", "created_after", "created_before", "updated_after", "updated_before", "version"}

// The marks in the files where the filters outside of [places] belong.
const (
	onEntries    = "/* further filters */"                              // a condition on the table entries
	onProgress   = "/* further filters of progress */"                  // a condition on the table progress
	fromProgress = "progress /* of the entries with further filters */" // the table progress
)

// insightOf returns the statement in the file sql for the entries that by selects. $1 is the project. Without a value,
// a parameter in [places] is null. more has the parameters after $7. wide selects at least the entries that the
// statement reads, with the other filters.
//
// Postgres plans each statement for its arguments, so a condition whose argument is null costs nothing. With other filters,
// the statement selects entries, and then reads the progress of each entry. OFFSET 0 keeps Postgres from another order. For a
// project without statistics of its own, Postgres expects few entries, and would join each row of progress with all of them.
func insightOf(sql string, by, wide entry.Selection, more ...any) statement {
	s := statement{args: make([]any, 1+len(places))}
	s.args[0] = by.ProjectID
	others := false
	for _, c := range by.Conditions {
		i := slices.Index(places, c.Parameter)
		if i < 0 {
			others = true
			continue
		}
		s.args[1+i] = c.Value
		if c.Kind == entry.After || c.Kind == entry.Before {
			s.args[1+i] = pgdb.Timestamp(c.Value.(int64))
		}
	}
	s.args = append(s.args, more...)
	s.sql = sql
	if others {
		condition := s.selected(wide, "version")
		s.sql = strings.NewReplacer(
			onEntries, "AND "+condition,
			onProgress, "AND (SELECT "+condition+" FROM entries WHERE entries.project_id = $1 AND entries.entry_id = progress.entry_id)",
			fromProgress, `(SELECT entry_id AS id FROM entries WHERE `+condition+`) e
    CROSS JOIN LATERAL (
        SELECT project_id, entry_id, part, version, several, embeddable_id, created_at, updated_at, furthest, ended, completed_after, cells
        FROM progress p
        WHERE p.project_id = $1 AND p.entry_id = e.id
        OFFSET 0
    ) progress`,
		).Replace(sql)
	}
	return s
}

// query runs the statement of an insight, and passes its rows to read. The statement waits for its turn among the large
// reads. The error is a QuestionTooLarge if Postgres ends the statement by its time-out, or if read fails with
// [insight.ErrTooMany].
//
// If the statement fails for a temporary reason after its first row, query calls read again with all rows of the
// primary. Postgres plans the statement for its arguments, because the best plan for a day differs from the best plan
// for a year. Numbers, booleans and bytes come in their binary form.
func (s *Store) query(ctx context.Context, q statement, read func(pgx.Rows) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var seen pgdb.WatchedRows
	var readErr error
	run := func(pool pgdb.Querier) error {
		return pool.Query(ctx, func(r pgx.Rows) error {
			seen.Rows = r
			if readErr = read(&seen); errors.Is(readErr, insight.ErrTooMany) {
				cancel() // instead of reading the rest
			}
			return readErr
		}, q.sql, append([]any{pgx.QueryExecModeCacheDescribe}, q.args...)...)
	}
	err := lists.Limited(ctx, func() error {
		err := run(s.pool)
		if seen.Seen && lists.Retryable(err) && !pgdb.TimedOut(err) {
			err = run(s.primary)
		}
		return err
	})
	if errors.Is(readErr, insight.ErrTooMany) {
		return tooLong(readErr)
	}
	return tooLarge(err)
}

// Version returns the number of the project's newest change, or 0 if there is none. Version reads from pool, which can
// be a standby that lags.
func (s *Store) Version(ctx context.Context, projectID string) (int64, error) {
	return newest(ctx, s.pool, projectID)
}

// Pinned returns a Store for one request, whose statements read from the same database while that database answers. If
// a standby fails, the primary repeats the statement. So no insight is older than the result of an earlier call of
// Version.
func (s *Store) Pinned() *Store { return &Store{pool: pgdb.Pinned(s.pool), primary: s.primary} }

// countsOf returns the statement whose rows are the [insight.Group] values for q.
func countsOf(q insight.CountsQuestion, bounds []time.Time) statement {
	if q.AtMost > 0 {
		return atMostOf(q.Selection, q.AtMost)
	}
	return insightOf(countsSQL, q.Selection, q.Selection, bounds, string(q.By))
}

// atMostOf returns the statement whose only row is an [insight.Group] of the interval [insight.All]. The statement stops
// at the number most of entries.
func atMostOf(by entry.Selection, most int) statement {
	var s statement
	s.sql = `SELECT NULL::int, NULL::text, NULL::bigint, count(1), count(p.entry_id), count(p.completed_after), 0,
       min(e.created_at) FILTER (WHERE e.created_at >= '2000-01-01 00:00Z' AND e.created_at < '2101-01-01 00:00Z'),
       max(e.created_at) FILTER (WHERE e.created_at >= '2000-01-01 00:00Z' AND e.created_at < '2101-01-01 00:00Z')
FROM (SELECT entry_id, created_at FROM entries WHERE ` + s.selected(by, "") + ` LIMIT ` + s.arg(most) + `) e
LEFT JOIN LATERAL (
    SELECT entry_id, completed_after FROM progress WHERE project_id = $1 AND entry_id = e.entry_id AND part = 0 LIMIT 1
) p ON true`
	return s
}

// Counts returns counts as JSON, the oldest first, and how many rows they have. If there are more than
// [insight.MaxCounts] rows, body may lack some of them.
func (s *Store) Counts(ctx context.Context, q insight.CountsQuestion) (rows int, body []byte, err error) {
	bounds := q.Bounds()
	var groups []insight.Group
	err = s.query(ctx, countsOf(q, bounds), func(r pgx.Rows) (err error) {
		groups, err = pgx.CollectRows(r, pgx.RowToStructByPos[insight.Group])
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	counts := q.Counts(bounds, groups)
	body, err = json.Marshal(counts)
	return len(counts), append(body, '\n'), err
}

// Funnels returns the funnel of all entries, or of each version, as JSON. rows counts the funnels and their pages. If
// rows is more than [insight.MaxFunnelRows], body is nil. The error is an Unavailable if removals disturb the reading
// three times.
func (s *Store) Funnels(ctx context.Context, q insight.FunnelQuestion) (rows int, body []byte, err error) {
	for range 3 {
		answer, err := s.funnels(ctx, q)
		var pages []*insight.FunnelPage
		for _, f := range answer {
			pages = append(pages, f.Pages...)
		}
		rows = len(answer) + len(pages)
		if rows > insight.MaxFunnelRows { // even if the memory did not suffice for the rest
			return rows, nil, nil
		}
		named := false
		if err == nil {
			named, err = s.namePages(ctx, q.ProjectID, pages)
		}
		if err != nil {
			return 0, nil, err
		}
		if named {
			body, err = json.Marshal(answer)
			return rows, append(body, '\n'), err
		}
	}
	return 0, nil, apierr.NotAvailable(errors.New("entries were removed again and again while their funnel was read"))
}

// funnels returns the funnels for q, without the keys of their pages. With an error, the funnels cover only the rows
// that were read before the error.
func (s *Store) funnels(ctx context.Context, q insight.FunnelQuestion) (answer []*insight.Funnel, err error) {
	err = s.query(ctx, insightOf(funnelSQL, q.Selection, q.Selection), func(r pgx.Rows) error {
		funnels := insight.NewFunnels(q.ByVersion)
		row := pgdb.NewRaw(r)
		var tooMany error
		for tooMany == nil && r.Next() {
			row.Next(r)
			if row.Null(0) {
				funnels.SetEntries(int(row.Int(1)))
				continue
			}
			p := insight.Progress{Several: row.Bool(2), Furthest: row.Int(4), Ended: row.Bool(5), Cells: row.Text(7)}
			version, completed := row.Int(3), row.Int(6)
			if !row.Null(3) {
				p.Version = &version
			}
			if !row.Null(6) {
				p.CompletedAfter = &completed
			}
			tooMany = funnels.Add(row.Text(0), row.Int(1) == 0, p)
		}
		answer = funnels.Answer()
		return tooMany
	})
	return answer, err
}

// namePages sets the keys of pages. all is false if a key was not found, because a removal has deleted its page views
// in the meantime.
func (s *Store) namePages(ctx context.Context, projectID string, pages []*insight.FunnelPage) (all bool, err error) {
	found := 0
	err = s.query(ctx, statement{pageKeysSQL, []any{
		projectID,
		insert.Column(pages, func(p **insight.FunnelPage) string { return (*p).EntryID }),
		insert.Column(pages, func(p **insight.FunnelPage) int64 { return (*p).Version }),
		insert.Column(pages, func(p **insight.FunnelPage) int64 { return (*p).Index }),
	}}, func(r pgx.Rows) error {
		row := pgdb.NewRaw(r)
		for found = 0; r.Next(); found++ {
			row.Next(r)
			pages[row.Int(0)-1].Key = string(row.Text(1))
		}
		return nil
	})
	return found == len(pages), err
}
