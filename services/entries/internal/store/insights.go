package store

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
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

// read runs an insight in its turn among the large reads. It is planned for its arguments: the best plan for a day is not
// that for a year.
func (s *Store) read(ctx context.Context, q statement, read func(rows pgx.Rows) error) error {
	err := pagelist.Limited(ctx, func() error {
		return s.pool.Query(ctx, read, q.sql, append([]any{pgx.QueryExecModeCacheDescribe}, q.args...)...)
	})
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && pg.Code == "57014", ok && pg.Code == "53400", errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return apierr.New(apierr.Unavailable, "This takes longer than the server allows. Narrow the period with created_after and created_before.").
			After(time.Second).Because(err)
	case ok && pg.Code == "22023": // invalid_parameter_value
		return apierr.BadParameter("timezone", "a name that the database does not know", "an IANA time zone such as Europe/Berlin").Because(err)
	}
	return err
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
	sql += `
SELECT f.start, f.finish, f.embeddable_id, f.version, f.entries, f.started, f.completed
FROM (SELECT ` + utc("local") + ` AS start, ` + utc("following") + ` AS finish, embeddable_id, version, entries, started, completed FROM filled) f
WHERE f.entries > 0 OR f.start < f.finish
ORDER BY f.start, f.embeddable_id, f.version
LIMIT ` + strconv.Itoa(insight.MaxCounts+1)
	s.sql = sql
	return s
}

// Counts returns counts, the oldest first. It returns one more than an answer may have if there are more.
func (s *Store) Counts(ctx context.Context, q insight.CountsQuestion) (counts []insight.Count, err error) {
	at := func(t *time.Time) *string {
		if t == nil {
			return nil
		}
		text := strings.Trim(string(wire.AppendTime(nil, t.UnixMicro())), `"`)
		return &text
	}
	err = s.read(ctx, countsOf(q), func(rows pgx.Rows) error {
		counts = []insight.Count{}
		var c insight.Count
		var from, to *time.Time
		_, err := pgx.ForEachRow(rows, []any{&from, &to, &c.EmbeddableID, &c.Version, &c.Entries, &c.Started, &c.Completed}, func() error {
			c.From, c.To = at(from), at(to)
			counts = append(counts, c)
			return nil
		})
		return err
	})
	return counts, err
}

// noVersion is the version of views without one, in a statement. No version has this number.
const noVersion = "-9223372036854775808"

// funnelOf returns the statement of funnels. Its rows are the totals of a version, and then its pages. It counts how many
// entries have each cell, in parallel. A median is found in these counts, because Postgres would sort the times of all
// entries in one process.
func funnelOf(q insight.FunnelQuestion) statement {
	var s statement
	rows, version := ofEntries, "NULL::bigint"
	if q.ByVersion {
		rows, version = ofVersions, "version"
	}
	selected := s.progressOf(q.Filter)
	key := "coalesce(" + version + ", " + noVersion + ")"
	bits := strconv.Itoa(insight.CellBits)
	s.sql = `WITH total AS (
    SELECT ` + key + ` AS version, count(1) AS entries, count(furthest) AS started, count(completed_after) AS completed,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY completed_after) AS median
    FROM progress
    WHERE ` + selected + ` AND ` + rows + `
    GROUP BY 1
), stop AS (
    SELECT ` + key + ` AS version, furthest AS page, count(1) AS entries, count(1) FILTER (WHERE NOT ended) AS dropped
    FROM progress
    WHERE ` + selected + ` AND ` + rows + ` AND furthest IS NOT NULL
    GROUP BY 1, 2
), cell AS MATERIALIZED (
    SELECT v.version, v.of, v.cell >> ` + bits + ` AS page, v.cell & ((1::bigint << ` + bits + `) - 1) AS time,
           count(1) FILTER (WHERE v.counts) AS entries, max(v.entry_id) FILTER (WHERE v.names) AS entry_id
    FROM (SELECT ` + key + ` AS version, version AS of, entry_id, ` + rows + ` AS counts, ` + ofVersions + ` AS names, unnest(cells) AS cell
          FROM progress
          WHERE ` + selected + `) v
    GROUP BY v.version, v.of, v.cell
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
)
SELECT t.version, NULL::bigint AS page, t.entries, t.started, t.completed, t.median::float8, NULL::text AS page_key
FROM total t
UNION ALL
SELECT r.version, r.page, r.reached::bigint, r.dropped::bigint, 0, m.time::float8,
       (SELECT v.page_key FROM events v
        WHERE v.project_id = $1 AND v.entry_id = p.entry_id AND v.event_type = 'flowpage.viewed' AND v.page_index = p.page
          AND v.embeddable_version_number IS NOT DISTINCT FROM p.of
        ORDER BY v."timestamp" DESC, v.arrival DESC LIMIT 1)
FROM (SELECT version, page, reached, dropped, row_number() OVER (PARTITION BY version ORDER BY page) AS n FROM reached WHERE shown) r
JOIN page p ON p.version = r.version AND p.page = r.page
LEFT JOIN median m ON m.version = r.version AND m.page = r.page
WHERE r.n <= ` + strconv.Itoa(insight.MaxPages) + `
ORDER BY 1, 2 NULLS FIRST
LIMIT ` + strconv.Itoa(insight.MaxFunnelRows+1)
	return s
}

// Funnels returns the funnel of all entries, or of each version, the least first. ok is false if there are too many
// versions and pages for an answer.
func (s *Store) Funnels(ctx context.Context, q insight.FunnelQuestion) (funnels []insight.Funnel, ok bool, err error) {
	seconds := func(tenths *float64) *float64 {
		if tenths != nil {
			*tenths /= 10
		}
		return tenths
	}
	read := 0
	err = s.read(ctx, funnelOf(q), func(rows pgx.Rows) error {
		funnels, read = []insight.Funnel{}, 0
		var number, a, b, c int64
		var page *int64
		var median *float64
		var key *string
		_, err := pgx.ForEachRow(rows, []any{&number, &page, &a, &b, &c, &median, &key}, func() error {
			read++
			if page == nil {
				f := insight.Funnel{Entries: a, Started: b, Completed: c, Seconds: seconds(median), Pages: []insight.Page{}}
				if version := number; version != math.MinInt64 {
					f.Version = &version
				}
				funnels = append(funnels, f)
				return nil
			}
			f := &funnels[len(funnels)-1]
			f.Pages = append(f.Pages, insight.Page{Index: *page, Key: key, Reached: a, Dropped: b, Seconds: seconds(median)})
			return nil
		})
		return err
	})
	if len(funnels) == 0 && !q.ByVersion {
		funnels = []insight.Funnel{{Pages: []insight.Page{}}}
	}
	return funnels, read <= insight.MaxFunnelRows, err
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

// keysOf returns the statement of keys: first a row with the totals.
func keysOf(f insight.Filter) statement {
	var s statement
	s.sql = s.dataOf(f) + `, counted AS (
    SELECT k.key, k.type, count(1) AS entries
    FROM (SELECT e.key, jsonb_typeof(e.value) AS type
          FROM data, jsonb_each(CASE WHEN jsonb_typeof(data) = 'object' THEN data END) e) k
    WHERE octet_length(k.key) <= 256
    GROUP BY 1, 2
)
SELECT NULL AS key, count(1) AS entries, count(1) FILTER (WHERE data IS NULL) AS unreadable, NULL::text AS types
FROM data
UNION ALL
(SELECT key, sum(entries)::bigint, 0, jsonb_object_agg(type, entries)::text
FROM counted
GROUP BY key
ORDER BY 2 DESC, key COLLATE "C"
LIMIT 1000)`
	return s
}

// Keys returns the keys of entry_data, the most frequent first.
func (s *Store) Keys(ctx context.Context, f insight.Filter) (keys insight.Keys, err error) {
	err = s.read(ctx, keysOf(f), func(rows pgx.Rows) error {
		keys.Keys = []insight.Key{}
		var key, types *string
		var entries, unreadable int64
		_, err := pgx.ForEachRow(rows, []any{&key, &entries, &unreadable, &types}, func() error {
			if key == nil {
				keys.Entries, keys.Unreadable = entries, unreadable
				return nil
			}
			keys.Keys = append(keys.Keys, insight.Key{Key: *key, Entries: entries, Types: json.RawMessage(*types)})
			return nil
		})
		return err
	})
	return keys, err
}

// answersOf returns the statement of a key's values: one row with all.
func answersOf(f insight.Filter, key string) statement {
	var s statement
	s.sql = s.dataOf(f) + `, answer AS MATERIALIZED (
    SELECT data -> ` + s.arg(key) + `::text AS value, data IS NULL AS unreadable
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
    SELECT count(1) AS entries, min(n) AS low, max(n) AS high,
           percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY n) AS quartiles
    FROM number
), bin AS (
    SELECT CASE WHEN high > low THEN least(floor((n - low) / (high - low) * 20), 19)::bigint ELSE 0 END AS bin, count(1) AS entries
    FROM number, summary
    GROUP BY 1
)
SELECT count(1), count(1) FILTER (WHERE unreadable), count(1) FILTER (WHERE value IS NULL AND NOT unreadable),
       coalesce((SELECT jsonb_agg(jsonb_build_array(value, entries) ORDER BY entries DESC, value) FROM frequent), '[]')::text,
       (SELECT entries FROM summary), (SELECT low FROM summary), (SELECT high FROM summary), (SELECT quartiles FROM summary),
       (SELECT array_agg(coalesce(b.entries, 0) ORDER BY g) FROM generate_series(0, 19) g LEFT JOIN bin b ON b.bin = g)
FROM answer`
	return s
}

// Answers returns the values of one key of entry_data.
func (s *Store) Answers(ctx context.Context, f insight.Filter, key string) (answers insight.Answers, err error) {
	err = s.read(ctx, answersOf(f, key), func(rows pgx.Rows) error {
		answers = insight.Answers{Key: key, Values: []insight.Value{}}
		var values string
		var numbers int64
		var least, most *float64
		var quartiles []float64
		var bins []int64
		_, err := pgx.ForEachRow(rows, []any{&answers.Entries, &answers.Unreadable, &answers.None, &values, &numbers, &least, &most, &quartiles, &bins}, func() error {
			var pairs [][2]json.RawMessage
			if err := json.Unmarshal([]byte(values), &pairs); err != nil {
				return err
			}
			answers.Others = answers.Entries - answers.Unreadable - answers.None
			for _, pair := range pairs {
				n, err := strconv.ParseInt(string(pair[1]), 10, 64)
				if err != nil {
					return err
				}
				answers.Values = append(answers.Values, insight.Value{Value: pair[0], Entries: n})
				answers.Others -= n
			}
			if numbers > 0 {
				answers.Numbers = numbersOf(numbers, *least, *most, quartiles, bins)
			}
			return nil
		})
		return err
	})
	return answers, err
}

// numbersOf returns a distribution with its bins: one if all numbers are equal.
func numbersOf(entries int64, least, most float64, quartiles []float64, bins []int64) *insight.Numbers {
	n := &insight.Numbers{
		Entries: entries, Minimum: least, LowerQuartile: quartiles[0], Median: quartiles[1], UpperQuartile: quartiles[2], Maximum: most,
	}
	if least == most {
		bins = bins[:1]
	}
	edge := func(i int) float64 {
		if i == len(bins) {
			return most
		}
		return least + (most-least)*float64(i)/float64(len(bins))
	}
	for i, count := range bins {
		n.Bins = append(n.Bins, insight.Bin{From: edge(i), To: edge(i + 1), Entries: count})
	}
	return n
}
