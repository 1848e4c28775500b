package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/shared/http/apierr"
	"github.com/lectern-dev/lectern/shared/http/pagelist"
	"github.com/lectern-dev/lectern/shared/postgres/insert"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

// Rows of progress: those of whole entries, and those of versions.
const (
	ofEntries  = "part = 0"
	ofVersions = "(part > 0 OR NOT several)"
)

// progressOf returns the condition for the rows of progress that i selects.
func (s *statement) progressOf(i insight.Selection) string {
	sql := s.selected(i.Selection, "") + " AND embeddable_id IS NOT NULL"
	if i.Version != nil {
		sql += " AND " + s.versionOf(*i.Version)
	}
	return sql
}

// versionOf returns the condition for a row of progress whose entry has a view of a version.
func (s *statement) versionOf(version int64) string {
	n := s.arg(version)
	return "(version = " + n + " OR several AND EXISTS (SELECT FROM progress v WHERE v.project_id = $1 AND v.entry_id = progress.entry_id AND v.version = " + n + "))"
}

// query runs an insight in its turn among the large reads, and passes its rows to read. If the database fails in the middle
// of the rows, it passes all rows of the primary to read. The statement is planned for its arguments: the best plan for a day
// is not that for a year. Numbers, booleans and bytes come in their binary form.
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
	err := pagelist.Limited(ctx, func() error {
		err := run(s.pool)
		pg, ok := errors.AsType[*pgconn.PgError](err)
		if seen.Seen && pagelist.Retryable(err) && !errors.Is(err, context.DeadlineExceeded) && (!ok || pg.Code != "57014") {
			err = run(s.primary)
		}
		return err
	})
	if errors.Is(readErr, insight.ErrTooMany) {
		err = readErr
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && pg.Code == "57014", errors.Is(err, insight.ErrTooMany): // query_canceled, by its time-out
		return apierr.New(apierr.QuestionTooLarge, "This takes longer than the server allows. Narrow the period with created_after and created_before, or ask for one embeddable_id.").
			Because(err)
	}
	return err
}

// answer runs an insight whose statement returns a number of rows and the body as JSON.
func (s *Store) answer(ctx context.Context, q statement) (rows int, body []byte, err error) {
	err = s.query(ctx, q, func(r pgx.Rows) error {
		for r.Next() {
			if err := r.Scan(&rows, &body); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	var compact bytes.Buffer
	err = json.Compact(&compact, body)
	return rows, append(compact.Bytes(), '\n'), err
}

// Version returns the newest number of a project as the database that is read from knows it.
func (s *Store) Version(ctx context.Context, projectID string) (int64, error) {
	return newest(ctx, s.pool, projectID)
}

// Pinned returns a Store that keeps reading from one database.
func (s *Store) Pinned() *Store { return &Store{pool: pgdb.Pinned(s.pool), primary: s.primary} }

// countsOf returns the statement of groups of entries. Postgres gets the bounds of the intervals, and needs no time zone.
//
// The statement counts each entry without a version, and each row of progress with its version. An entry with rows of progress
// counts twice, which [insight.Group] corrects. So no join is needed, and Postgres groups the UNION ALL in parallel.
func countsOf(q insight.CountsQuestion, bounds []time.Time) statement {
	var s statement
	rows, split, groups := ofEntries, "NULL::text, NULL::bigint", "1"
	switch q.By {
	case insight.ByEmbeddable:
		split, groups = "embeddable_id, NULL::bigint", "1, 2"
	case insight.ByVersion:
		rows, split, groups = ofVersions, "embeddable_id, version", "1, 2, 3"
	}
	condition := s.progressOf(q.Selection)
	believed := "created_at >= " + s.arg(insight.FirstYear) + " AND created_at < " + s.arg(insight.AfterYear)
	interval, times := "NULL::int", "min(created_at) FILTER (WHERE "+believed+"), max(created_at) FILTER (WHERE "+believed+")"
	if q.Interval != insight.All {
		interval, times = "CASE WHEN "+believed+" THEN width_bucket(created_at, "+s.arg(bounds)+"::timestamptz[]) END", "NULL::timestamptz, NULL::timestamptz"
	}
	twice, entries := "0", ""
	if q.Version == nil {
		twice, entries = "("+ofEntries+")::int", `
    UNION ALL
    SELECT `+interval+`, created_at, embeddable_id, NULL, 1, 0, 0, 0
    FROM entries
    WHERE `+s.selected(q.Selection.Selection, "")
	}
	s.sql = `WITH counted AS (
    SELECT ` + interval + ` AS number, created_at, embeddable_id, version, (` + rows + `)::int AS entries, (` + rows + `)::int AS started,
           (` + rows + ` AND completed_after IS NOT NULL)::int AS completed, ` + twice + ` AS twice
    FROM progress
    WHERE ` + condition + entries + `
)
SELECT number, ` + split + `, sum(entries), sum(started), sum(completed), sum(twice), ` + times + `
FROM counted
GROUP BY ` + groups + `
LIMIT ` + strconv.Itoa(insight.MaxGroups+1)
	return s
}

// Counts returns counts as JSON, the oldest first, and how many rows they have. More rows than an answer may have are not
// complete.
func (s *Store) Counts(ctx context.Context, q insight.CountsQuestion) (rows int, body []byte, err error) {
	bounds := q.Bounds()
	var groups []insight.Group
	err = s.query(ctx, countsOf(q, bounds), func(r pgx.Rows) error {
		groups = nil
		for r.Next() {
			var g insight.Group
			if err := r.Scan(&g.Interval, &g.EmbeddableID, &g.Version, &g.Entries, &g.Started, &g.Completed, &g.Twice, &g.First, &g.Last); err != nil {
				return err
			}
			groups = append(groups, g)
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	counts := q.Counts(bounds, groups)
	body, err = json.Marshal(counts)
	return len(counts), append(body, '\n'), err
}

// funnelOf returns the statement of the rows that funnels count: a row with the number of entries, and those of progress.
func funnelOf(q insight.FunnelQuestion) statement {
	var s statement
	s.sql = `(
    SELECT entry_id, part, several, version, furthest, ended, completed_after, cells
    FROM progress
    WHERE ` + s.progressOf(q.Selection) + `
)`
	if q.Version == nil {
		s.sql += ` UNION ALL (
    SELECT NULL, count(1), NULL, NULL, NULL, NULL, NULL, NULL
    FROM entries
    WHERE ` + s.selected(q.Selection.Selection, "") + `
)`
	}
	return s
}

// pageKeys selects the newest key of pages, each of an entry's views of a version.
const pageKeys = `
SELECT u.page, v.page_key
FROM unnest($2::text[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS u (entry_id, version, page_index, page)
CROSS JOIN LATERAL (
    SELECT v.page_key
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = u.entry_id AND v.event_type = 'flowpage.viewed' AND v.page_index = u.page_index
      AND v.embeddable_version_number IS NOT DISTINCT FROM nullif(u.version, '-9223372036854775808'::bigint)
    ORDER BY v."timestamp" DESC, v.arrival DESC
    LIMIT 1
) v`

// Funnels returns the funnel of all entries, or of each version, as JSON. rows counts the versions and pages. If they are
// more than an answer may have, there is no body.
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

// funnels returns funnels without the keys of their pages. With an error, they are of the rows before it.
func (s *Store) funnels(ctx context.Context, q insight.FunnelQuestion) (answer []*insight.Funnel, err error) {
	err = s.query(ctx, funnelOf(q), func(r pgx.Rows) error {
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

// namePages sets the keys of pages. It reports whether all were found: a removal may have come since the pages were read.
func (s *Store) namePages(ctx context.Context, projectID string, pages []*insight.FunnelPage) (all bool, err error) {
	found := 0
	err = s.query(ctx, statement{pageKeys, []any{
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

// dataOf returns the query of the parsed entry_data of each entry. Postgres parses it once, and in parallel. A single text
// that it cannot parse fails the statement, unless careful: then such data is null. entry_json takes several times as long. So
// it parses only what may fail: \u0000 and half of a pair of surrogates, a great exponent, or many digits or levels.
func (s *statement) dataOf(i insight.Selection, careful bool) string {
	parsed, selected := "parse_entry(entry_data)", s.selected(i.Selection, "")
	if careful {
		parsed = `CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END`
	}
	if i.Version != nil {
		selected += " AND entry_id IN (SELECT entry_id FROM progress WHERE project_id = $1 AND version = " + s.arg(*i.Version) + ")"
	}
	return "(SELECT " + parsed + " AS data FROM entries WHERE " + selected + " OFFSET 0) d"
}

// keysOf returns the statement of keys.
func keysOf(i insight.Selection, careful bool) statement {
	var s statement
	data, with, unreadable := s.dataOf(i, careful), "", "0"
	if careful {
		with = "parsed AS MATERIALIZED (SELECT data FROM " + data + "), "
		data, unreadable = "parsed", "(SELECT count(1) FROM parsed WHERE data IS NULL)"
	}
	s.sql = `WITH ` + with + `counted AS (
    SELECT e.key, jsonb_typeof(e.value) AS type, count(1) AS entries
    FROM ` + data + `, jsonb_each(CASE WHEN jsonb_typeof(data) = 'object' THEN data END) e
    WHERE octet_length(e.key) <= 256
    GROUP BY 1, 2
), key AS (
    SELECT key, sum(entries) AS entries, jsonb_object_agg(type, entries) AS types
    FROM counted
    GROUP BY key
    ORDER BY 2 DESC, key COLLATE "C"
    LIMIT 1000
)
SELECT 1, json_build_object(
    'entries', (SELECT count(1) FROM ` + data + `), 'unreadable', ` + unreadable + `,
    'keys', coalesce((SELECT json_agg(json_build_object('key', key, 'entries', entries, 'types', types) ORDER BY entries DESC, key COLLATE "C") FROM key), '[]')
)::text`
	return s
}

// answersOf returns the statement of a key's values. An entry answers with the different elements of an array, or else with
// one value. Null and white space are no answers.
func answersOf(i insight.Selection, key string, careful bool) statement {
	var s statement
	data := s.dataOf(i, careful)
	name := s.arg(key) + "::text"
	white := s.arg(insight.WhiteSpace) + "::text"
	answered := func(v string) string {
		return "jsonb_typeof(" + v + ") <> 'null' AND NOT (jsonb_typeof(" + v + ") = 'string' AND btrim(" + v + " #>> '{}', " + white + ") = '')"
	}
	s.sql = `WITH answer AS MATERIALIZED (
    SELECT value, unreadable, CASE
        WHEN jsonb_typeof(value) = 'array' THEN (SELECT array_agg(DISTINCT v) FROM jsonb_array_elements(value) v WHERE ` + answered("v") + `)
        WHEN ` + answered("value") + ` THEN ARRAY[value]
    END AS answers
    FROM (SELECT data -> ` + name + ` AS value, data IS NULL AS unreadable FROM ` + data + ` OFFSET 0) a
), frequent AS (
    SELECT value, count(1) AS entries
    FROM (SELECT unnest(answers) AS value FROM answer) a
    WHERE octet_length(value::text) <= 1000
    GROUP BY value
    ORDER BY 2 DESC, value
    LIMIT 50
), number AS (
    SELECT n::float8 AS n
    FROM (SELECT CASE WHEN jsonb_typeof(value) = 'number' THEN value::numeric END AS n FROM answer) v
    WHERE n = 0 OR abs(n) BETWEEN 1e-300 AND 1e300
), summary AS (
    SELECT count(1) AS entries, min(n) AS low, max(n) AS high, CASE WHEN max(n) > min(n) THEN 20 ELSE 1 END AS bins,
           percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY n) AS quartiles
    FROM number
), bin AS (
    SELECT CASE WHEN high > low THEN least(floor((n - low) / (high - low) * bins), bins - 1) ELSE 0 END AS bin, count(1) AS entries
    FROM number, summary
    GROUP BY 1
)
SELECT 1, json_build_object(
    'key', ` + name + `, 'entries', count(1), 'unreadable', count(1) FILTER (WHERE unreadable),
    'none', count(1) FILTER (WHERE answers IS NULL AND NOT unreadable),
    'multiple', count(answers) FILTER (WHERE jsonb_typeof(value) = 'array'),
    'others', count(1) FILTER (WHERE NOT answers <@ coalesce((SELECT array_agg(value) FROM frequent), '{}')),
    'values', coalesce((SELECT json_agg(json_build_object('value', value, 'entries', entries) ORDER BY entries DESC, value) FROM frequent), '[]'),
    'numbers', (
        SELECT json_build_object(
            'entries', s.entries, 'minimum', s.low, 'lower_quartile', s.quartiles[1], 'median', s.quartiles[2], 'upper_quartile', s.quartiles[3],
            'maximum', s.high, 'bins', (
                SELECT json_agg(json_build_object(
                    'from', s.low + (s.high - s.low) * g / s.bins,
                    'to', CASE WHEN g + 1 = s.bins THEN s.high ELSE s.low + (s.high - s.low) * (g + 1) / s.bins END,
                    'entries', coalesce(b.entries, 0)) ORDER BY g)
                FROM generate_series(0, s.bins - 1) g LEFT JOIN bin b ON b.bin = g))
        FROM summary s WHERE s.entries > 0)
)::text
FROM answer`
	return s
}

// Answers returns the keys of entry_data, or the values of one, as JSON.
func (s *Store) Answers(ctx context.Context, q insight.AnswersQuestion) (body []byte, err error) {
	for _, careful := range []bool{false, true} {
		ask := keysOf(q.Selection, careful)
		if q.Key != "" {
			ask = answersOf(q.Selection, q.Key, careful)
		}
		_, body, err = s.answer(ctx, ask)
		pg, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || pg.Code[:2] != "22" && pg.Code[:2] != "54" { // data_exception, program_limit_exceeded
			break
		}
	}
	return body, err
}
