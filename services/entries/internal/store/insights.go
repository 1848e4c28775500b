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

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/pagelist"
	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

// statement is the SQL of an insight with its arguments. Each set of filters has SQL of its own.
type statement struct {
	sql  string
	args []any
}

// arg adds an argument and returns its parameter.
func (s *statement) arg(value any) string {
	s.args = append(s.args, value)
	return "$" + strconv.Itoa(len(s.args))
}

// selected returns the condition for the rows that f selects. The tables entries and progress have the same columns
// for it.
func (s *statement) selected(f insight.Filter) string {
	sql := "project_id = " + s.arg(f.ProjectID)
	if f.EmbeddableID != "" {
		sql += " AND embeddable_id = " + s.arg(f.EmbeddableID)
	}
	for _, bound := range []struct {
		condition string
		micros    int64
	}{
		{"created_at > ", f.CreatedAfter}, {"created_at < ", f.CreatedBefore},
		{"updated_at > ", f.UpdatedAfter}, {"updated_at < ", f.UpdatedBefore},
	} {
		if bound.micros != wire.BeforeAll && bound.micros != wire.AfterAll {
			sql += " AND " + bound.condition + s.arg(pgdb.Timestamp(bound.micros))
		}
	}
	return sql
}

// Rows of progress: those of whole entries, and those of versions.
const (
	ofEntries  = "part = 0"
	ofVersions = "(part > 0 OR versions IS NULL)"
)

// progressOf returns the condition for the rows of progress that f selects.
func (s *statement) progressOf(f insight.Filter) string {
	sql := s.selected(f)
	if f.Version != nil {
		n := s.arg(*f.Version)
		sql += " AND (version = " + n + " OR " + n + " = ANY(versions))"
	}
	return sql
}

// answer runs an insight in its turn among the large reads. The statement returns a number of rows and the body as JSON. It
// is planned for its arguments: the best plan for a day is not that for a year.
func (s *Store) answer(ctx context.Context, q statement) (rows int, body []byte, err error) {
	err = pagelist.Limited(ctx, func() error {
		return s.pool.Query(ctx, func(r pgx.Rows) error {
			for r.Next() {
				if err := r.Scan(&rows, &body); err != nil {
					return err
				}
			}
			return nil
		}, q.sql, append([]any{pgx.QueryExecModeCacheDescribe}, q.args...)...)
	})
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && pg.Code == "57014", errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil: // query_canceled, by its time-out
		err = apierr.New(apierr.Unavailable, "This takes longer than the server allows. Narrow the period with created_after and created_before.").
			After(time.Second).Because(err)
	case ok && pg.Code == "22023": // invalid_parameter_value
		err = apierr.BadParameter("timezone", "a name that the database does not know", "an IANA time zone such as Europe/Berlin").Because(err)
	}
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

// countsOf returns the statement of counts. Entries with a clock outside of the years have a row without an interval, except
// among all. Without a further split, intervals without entries have a row.
func countsOf(q insight.CountsQuestion) statement {
	var s statement
	rows, embeddable, version := ofEntries, "NULL::text", "NULL::bigint"
	switch q.By {
	case insight.ByEmbeddable:
		embeddable = "embeddable_id"
	case insight.ByVersion:
		rows, embeddable, version = ofVersions, "embeddable_id", "version"
	}
	condition := s.progressOf(q.Filter) + " AND " + rows
	zone := s.arg(q.Timezone) + "::text"
	// The day is local. 00:00 may come twice where clocks go back: a day begins with the first.
	utc := func(local string) string {
		at := local + " AT TIME ZONE " + zone
		return "CASE WHEN (" + at + " - interval '1 hour') AT TIME ZONE " + zone + " = " + local + " THEN " + at + " - interval '1 hour' ELSE " + at + " END"
	}
	const sums = `sum(entries)::bigint AS entries, sum(started)::bigint AS started, sum(completed)::bigint AS completed`
	sql := `WITH days AS (
    SELECT CASE WHEN created_at >= '2000-01-01Z' AND created_at < '2101-01-01Z' THEN date_trunc('day', created_at AT TIME ZONE ` + zone + `) END AS day,
           ` + embeddable + ` AS embeddable_id, ` + version + ` AS version,
           count(1) AS entries, count(furthest) AS started, count(completed_after) AS completed
    FROM progress
    WHERE ` + condition + `
    GROUP BY 1, 2, 3
), `
	if q.Interval == "all" {
		sql += `filled AS (
    SELECT (SELECT min(day) FROM days) AS local, (SELECT max(day) FROM days) + interval '1 day' AS following, embeddable_id, version, ` + sums + `
    FROM days
    GROUP BY embeddable_id, version
)`
	} else {
		step := s.arg(q.Interval) + "::text"
		sql += `counted AS (
    SELECT date_trunc(` + step + `, day) AS local, embeddable_id, version, ` + sums + `
    FROM days
    GROUP BY 1, 2, 3
), filled AS (
    SELECT local, local + ('1 ' || ` + step + `)::interval AS following, embeddable_id, version, entries, started, completed
    FROM counted`
		if q.By == insight.ByNone {
			sql += `
    UNION ALL
    SELECT g, g + ('1 ' || ` + step + `)::interval, NULL, NULL, 0, 0, 0
    FROM generate_series((SELECT min(local) FROM counted), (SELECT max(local) FROM counted), ('1 ' || ` + step + `)::interval) g
    WHERE NOT EXISTS (SELECT FROM counted WHERE local = g)`
		}
		sql += `
)`
	}
	const text = `'YYYY-MM-DD"T"HH24:MI:SS"Z"'`
	s.sql = sql + `
SELECT count(1), coalesce(json_agg(json_build_object(
           'from', to_char(c.start, ` + text + `), 'to', to_char(c.finish, ` + text + `), 'embeddable_id', c.embeddable_id, 'version_number', c.version,
           'entries', c.entries, 'started', c.started, 'completed', c.completed
       ) ORDER BY c.start, c.embeddable_id, c.version), '[]')::text
FROM (SELECT f.start, f.finish, f.embeddable_id, f.version, f.entries, f.started, f.completed
      FROM (SELECT ` + utc("local") + ` AS start, ` + utc("following") + ` AS finish, embeddable_id, version, entries, started, completed FROM filled) f
      WHERE f.entries > 0 OR f.start < f.finish
      LIMIT ` + strconv.Itoa(insight.MaxCounts+1) + `) c`
	return s
}

// Counts returns counts as JSON, the oldest first, and how many rows they have. More rows than an answer may have are not
// complete.
func (s *Store) Counts(ctx context.Context, q insight.CountsQuestion) (rows int, body []byte, err error) {
	return s.answer(ctx, countsOf(q))
}

// noVersion is the version of views without one, in a statement. No version has this number.
const noVersion = "'-9223372036854775808'::bigint"

// funnelOf returns the statement of funnels. It counts how many entries have each cell, in parallel. A median is found in
// these counts, because Postgres would sort the times of all entries in one process.
func funnelOf(q insight.FunnelQuestion) statement {
	var s statement
	rows, version, of, group := ofEntries, "NULL::bigint", "NULL::bigint", ""
	if q.ByVersion {
		rows, version, of, group = ofVersions, "version", "v.of", "\n    GROUP BY 1"
	}
	selected := s.progressOf(q.Filter)
	key := "coalesce(" + version + ", " + noVersion + ")"
	bits, limit := strconv.Itoa(insight.CellBits), strconv.Itoa(insight.MaxFunnelRows+1)
	s.sql = `WITH total AS (
    SELECT ` + key + ` AS version, count(1) AS entries, count(furthest) AS started, count(completed_after) AS completed,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY completed_after) AS median
    FROM progress
    WHERE ` + selected + ` AND ` + rows + group + `
), stop AS (
    SELECT ` + key + ` AS version, furthest AS page, count(1) AS entries, count(1) FILTER (WHERE NOT ended) AS dropped
    FROM progress
    WHERE ` + selected + ` AND ` + rows + ` AND furthest IS NOT NULL
    GROUP BY 1, 2
), cell AS MATERIALIZED (
    SELECT coalesce(` + of + `, ` + noVersion + `) AS version, v.of, v.cell >> ` + bits + ` AS page, v.cell & ((1::bigint << ` + bits + `) - 1) AS time,
           count(1) FILTER (WHERE v.counts) AS entries, max(v.entry_id) FILTER (WHERE v.names) AS entry_id
    FROM (SELECT version AS of, entry_id, ` + rows + ` AS counts, ` + ofVersions + ` AS names, unnest(cells) AS cell
          FROM progress
          WHERE ` + selected + `) v
    GROUP BY v.of, v.cell
), page AS (
    SELECT DISTINCT ON (version, page) version, page, of, entry_id
    FROM (SELECT version, page, of, max(entry_id) AS entry_id FROM cell WHERE entry_id IS NOT NULL GROUP BY 1, 2, 3) n
    ORDER BY version, page, of DESC NULLS LAST
), median AS (
    SELECT version, page, (min(time) FILTER (WHERE upto > div(total - 1, 2)) + min(time) FILTER (WHERE upto > div(total, 2))) / 2.0 - 1 AS time
    FROM (SELECT version, page, time, sum(sum(entries)) OVER (PARTITION BY version, page ORDER BY time) AS upto,
                 sum(sum(entries)) OVER (PARTITION BY version, page) AS total
          FROM cell
          WHERE entries > 0 AND time > 0
          GROUP BY 1, 2, 3) t
    GROUP BY 1, 2
), reached AS (
    SELECT version, page, sum(sum(entries)) OVER (PARTITION BY version ORDER BY page DESC) AS reached, sum(dropped) AS dropped,
           bool_or(shown) AS shown
    FROM (SELECT version, page, entries, dropped, false AS shown FROM stop
          UNION ALL
          SELECT version, page, 0, 0, true FROM page) p
    GROUP BY 1, 2
), shown AS (
    SELECT r.version, json_build_object(
               'page_index', r.page, 'page_key', (
                   SELECT v.page_key FROM events v
                   WHERE v.project_id = $1 AND v.entry_id = p.entry_id AND v.event_type = 'flowpage.viewed' AND v.page_index = p.page
                     AND v.embeddable_version_number IS NOT DISTINCT FROM p.of
                   ORDER BY v."timestamp" DESC, v.arrival DESC LIMIT 1),
               'reached', r.reached, 'dropped', r.dropped, 'median_seconds', (m.time / 10)::float8) AS page, r.page AS page_index
    FROM (SELECT version, page, reached, dropped, row_number() OVER (PARTITION BY version ORDER BY page) AS n FROM reached WHERE shown) r
    JOIN page p ON p.version = r.version AND p.page = r.page
    LEFT JOIN median m ON m.version = r.version AND m.page = r.page
    WHERE r.n <= ` + strconv.Itoa(insight.MaxPages) + `
    LIMIT ` + limit + `
)
SELECT count(1) + (SELECT count(1) FROM shown), coalesce(json_agg(json_build_object(
           'version_number', nullif(t.version, ` + noVersion + `), 'entries', t.entries, 'started', t.started, 'completed', t.completed,
           'median_seconds', t.median / 10, 'pages', coalesce(p.pages, '[]')
       ) ORDER BY t.version), '[]')::text
FROM (SELECT version, entries, started, completed, median FROM total LIMIT ` + limit + `) t
LEFT JOIN (SELECT version, json_agg(page ORDER BY page_index) AS pages FROM shown GROUP BY version) p ON p.version = t.version`
	return s
}

// Funnels returns the funnel of all entries, or of each version, as JSON. rows counts the versions and pages. More than
// an answer may have are not complete.
func (s *Store) Funnels(ctx context.Context, q insight.FunnelQuestion) (rows int, body []byte, err error) {
	return s.answer(ctx, funnelOf(q))
}

// dataOf returns the beginning of a statement about entry_data: the table data has a row for each entry. Most data is
// parsed at once. Only what Postgres might refuse takes the function that catches its error.
func (s *statement) dataOf(f insight.Filter) string {
	selected := s.selected(f)
	if f.Version != nil {
		n := s.arg(*f.Version)
		selected += ` AND entry_id IN (SELECT entry_id FROM progress WHERE project_id = $1 AND part = 0 AND (version = ` + n + ` OR ` + n + ` = ANY(versions)))`
	}
	return `WITH data AS MATERIALIZED (
    SELECT CASE WHEN strpos(entry_data, '\u') > 0 OR length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}'
                THEN entry_json(entry_data) ELSE entry_data::jsonb END AS data
    FROM entries
    WHERE ` + selected + `
)`
}

// keysOf returns the statement of keys.
func keysOf(f insight.Filter) statement {
	var s statement
	s.sql = s.dataOf(f) + `, counted AS (
    SELECT k.key, k.type, count(1) AS entries
    FROM (SELECT e.key, jsonb_typeof(e.value) AS type
          FROM data, jsonb_each(CASE WHEN jsonb_typeof(data) = 'object' THEN data END) e) k
    WHERE octet_length(k.key) <= 256
    GROUP BY 1, 2
), key AS (
    SELECT key, sum(entries) AS entries, jsonb_object_agg(type, entries) AS types
    FROM counted
    GROUP BY key
    ORDER BY 2 DESC, key COLLATE "C"
    LIMIT 1000
)
SELECT 1, json_build_object(
    'entries', count(1), 'unreadable', count(1) FILTER (WHERE data IS NULL),
    'keys', coalesce((SELECT json_agg(json_build_object('key', key, 'entries', entries, 'types', types) ORDER BY entries DESC, key COLLATE "C") FROM key), '[]')
)::text
FROM data`
	return s
}

// answersOf returns the statement of a key's values.
func answersOf(f insight.Filter, key string) statement {
	var s statement
	begin := s.dataOf(f)
	name := s.arg(key) + "::text"
	s.sql = begin + `, answer AS MATERIALIZED (
    SELECT data -> ` + name + ` AS value, data IS NULL AS unreadable
    FROM (SELECT CASE WHEN data IS NULL OR jsonb_typeof(data) = 'object' THEN data ELSE '{}'::jsonb END AS data FROM data) d
), frequent AS (
    SELECT value, count(1) AS entries
    FROM answer
    WHERE value IS NOT NULL AND octet_length(value::text) <= 1000
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
    'none', count(1) FILTER (WHERE value IS NULL AND NOT unreadable), 'others', count(value) - coalesce((SELECT sum(entries) FROM frequent), 0),
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
	statement := keysOf(q.Filter)
	if q.Key != "" {
		statement = answersOf(q.Filter, q.Key)
	}
	_, body, err = s.answer(ctx, statement)
	return body, err
}
