package store

import (
	"bytes"
	"context"
	_ "embed" // for the statements
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
	//go:embed insights/page_keys.sql
	pageKeysSQL string
)

// places has the filters whose values are the parameters $2 to $7 of the statements of insights.
var places = []string{"embeddable_id", "created_after", "created_before", "updated_after", "updated_before", "version"}

// further marks in the files where the condition of the other filters belongs.
const further = "/* further filters */"

// insightOf returns the statement in the file sql for the entries that by selects. $1 is the project. Without a value,
// a parameter in [places] is null. more has the parameters after $7. wide selects at least the entries that the
// statement reads, with the further filters.
//
// Postgres plans each statement for its arguments, so a condition whose argument is null costs nothing.
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
	condition := ""
	if others {
		condition = "AND entry_id IN (SELECT entry_id FROM entries WHERE " + s.selected(wide, "") + ")"
	}
	s.sql = strings.ReplaceAll(sql, further, condition)
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

// answer runs the statement of an insight that returns one row: a number of rows, and the body as JSON. The result is
// compact JSON with a line feed at its end.
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
LEFT JOIN progress p ON p.project_id = $1 AND p.entry_id = e.entry_id AND p.part = 0`
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

// fields has the parts of SQL that the statements about entry_data have in common.
type fields struct {
	with       string // common table expressions, each with a comma after it
	from       string // FROM and WHERE of the fields of all entries, as e (key, value)
	entries    string // an expression for the number of entries
	unreadable string // an expression for the number of entries whose data Postgres cannot parse
}

// fieldsOf returns the SQL for the fields in the data of the selected entries. If careful is false, Postgres works in
// parallel, but the statement fails if Postgres cannot parse the data of one entry. If careful is true, such data has
// no fields, and one process reads all entries.
func (s *statement) fieldsOf(i entry.Selection, careful bool) fields {
	selected := s.selected(i, "")
	if !careful {
		return fields{"", "entries, jsonb_each(parse_entry(entry_data)) e WHERE " + selected, "(SELECT count(1) FROM entries WHERE " + selected + ")", "0"}
	}
	return fields{
		with: `parsed AS MATERIALIZED (
    SELECT ` + carefulData + ` AS data
    FROM entries WHERE ` + selected + `
), `,
		from:       "parsed, jsonb_each(data) e WHERE true",
		entries:    "(SELECT count(1) FROM parsed)",
		unreadable: "(SELECT count(1) FROM parsed WHERE data IS NULL)",
	}
}

// keyList is a common table expression, named key. keyList selects the 1000 most frequent keys of counted, with the
// place of each key.
const keyList = `key AS (
    SELECT key, sum(entries) AS entries, jsonb_object_agg(type, entries) AS types,
           row_number() OVER (ORDER BY sum(entries) DESC, key COLLATE "C") AS place
    FROM counted
    GROUP BY key
    ORDER BY place
    LIMIT 1000
)`

// keysOf returns the statement for the most frequent keys of entry_data, without values. For careful, see
// [statement.fieldsOf].
func keysOf(i entry.Selection, careful bool) statement {
	var s statement
	f := s.fieldsOf(i, careful)
	s.sql = `WITH ` + f.with + `counted AS (
    SELECT e.key COLLATE "C" AS key, jsonb_typeof(e.value) AS type, count(1) AS entries
    FROM ` + f.from + ` AND octet_length(e.key) <= 256
    GROUP BY 1, 2
), ` + keyList + `
SELECT 1, json_build_object(
    'entries', ` + f.entries + `, 'unreadable', ` + f.unreadable + `,
    'keys', coalesce((SELECT json_agg(json_build_object('key', key, 'entries', entries, 'types', types) ORDER BY place) FROM key), '[]')
)::text`
	return s
}

// keyValuesOf returns the statement for the most frequent keys of entry_data. Each of the first
// [insight.MaxKeysWithValues] keys has its most frequent values, up to the number most. For careful, see
// [statement.fieldsOf].
func keyValuesOf(i entry.Selection, most int, careful bool) statement {
	var s statement
	f := s.fieldsOf(i, careful)
	s.sql = `WITH ` + f.with + `field AS MATERIALIZED (
    SELECT e.key COLLATE "C" AS key, e.value, count(1) AS entries
    FROM ` + f.from + ` AND octet_length(e.key) <= 256
    GROUP BY 1, 2
), counted AS (
    SELECT key, jsonb_typeof(value) AS type, sum(entries) AS entries
    FROM field
    GROUP BY 1, 2
), ` + keyList + `, ` + s.valuesIn("field WHERE key IN (SELECT key FROM key WHERE place <= "+strconv.Itoa(insight.MaxKeysWithValues)+")",
		"(SELECT key, value, entries, alone, row_number() OVER (PARTITION BY key ORDER BY entries DESC, value) AS place FROM value) v WHERE place <= "+s.arg(most)) + `, whole AS MATERIALIZED (SELECT ` + f.entries + ` AS entries, ` + f.unreadable + ` AS unreadable)
SELECT 1, json_build_object('entries', w.entries, 'unreadable', w.unreadable, 'keys', coalesce((
    SELECT json_agg(CASE WHEN place <= ` + strconv.Itoa(insight.MaxKeysWithValues) + `
        THEN json_build_object('key', k.key, 'entries', k.entries, 'types', k.types, ` + keyValues + `)
        ELSE json_build_object('key', k.key, 'entries', k.entries, 'types', k.types) END ORDER BY place)
    FROM key k LEFT JOIN total t USING (key) LEFT JOIN list l USING (key) LEFT JOIN covered c USING (key)), '[]'))::text
FROM whole w`
	return s
}

// answersOf returns the statement for the [insight.MaxValues] most frequent values of a key in the data of the entries
// that i selects. For careful, see [statement.fieldsOf].
func answersOf(i entry.Selection, key string, careful bool) statement {
	var s statement
	f := s.fieldsOf(i, careful)
	name := s.arg(key) + "::text"
	s.sql = `WITH ` + f.with + `field AS (
    SELECT e.key COLLATE "C" AS key, e.value, count(1) AS entries
    FROM ` + f.from + ` AND e.key = ` + name + `
    GROUP BY 1, 2
), ` + s.valuesIn("field", "value ORDER BY entries DESC, value LIMIT "+strconv.Itoa(insight.MaxValues)) + `, whole AS MATERIALIZED (SELECT ` + f.entries + ` AS entries, ` + f.unreadable + ` AS unreadable)
SELECT 1, json_build_object('key', k.key, 'entries', w.entries, 'unreadable', w.unreadable, ` + keyValues + `)::text
FROM whole w CROSS JOIN (SELECT ` + name + ` COLLATE "C" AS key) k LEFT JOIN total t USING (key) LEFT JOIN list l USING (key) LEFT JOIN covered c USING (key)`
	return s
}

// valuesIn returns the common table expressions that [keyValues] reads. fields is a FROM with the columns key, value
// and entries, which is how many entries have that field. frequent is a FROM that selects the values to list from the
// table value.
//
// An entry answers with the different elements of an array, or else with one value. Null and white space are no
// answers. fields has equal fields only once, so Postgres looks at each different field once.
//
// Two bins together are a step of 1, 2 or 5 times a power of ten. The step is the least of which ten hold all numbers.
func (s *statement) valuesIn(fields, frequent string) string {
	white := s.arg(insight.WhiteSpace) + "::text"
	answered := func(v string) string {
		return "jsonb_typeof(" + v + ") <> 'null' AND NOT (jsonb_typeof(" + v + ") = 'string' AND btrim(" + v + " #>> '{}', " + white + ") = '')"
	}
	return `answer AS MATERIALIZED (
    SELECT key, value, entries, jsonb_typeof(value) = 'array' AS multiple, CASE
        WHEN jsonb_typeof(value) = 'array' THEN (SELECT array_agg(DISTINCT v) FROM jsonb_array_elements(value) v WHERE ` + answered("v") + `)
        WHEN ` + answered("value") + ` THEN ARRAY[value]
    END AS answers
    FROM ` + fields + `
), value AS (
    SELECT key, v AS value, sum(entries) AS entries, coalesce(sum(entries) FILTER (WHERE NOT multiple), 0) AS alone
    FROM answer, unnest(answers) v
    WHERE octet_length(v::text) <= 1000
    GROUP BY 1, 2
), frequent AS MATERIALIZED (
    SELECT key, value, entries, alone
    FROM ` + frequent + `
), list AS MATERIALIZED (
    SELECT key, array_agg(value) AS listed, sum(alone) AS alone
    FROM frequent
    GROUP BY key
), total AS (
    SELECT key, sum(entries) AS answered, sum(entries) FILTER (WHERE multiple) AS multiple
    FROM answer
    WHERE answers IS NOT NULL
    GROUP BY key
), covered AS (
    SELECT key, sum(entries) AS entries
    FROM answer JOIN list USING (key)
    WHERE multiple AND answers <@ listed
    GROUP BY key
), number AS (
    SELECT key, n::float8 AS n, entries AS weight
    FROM (SELECT key, CASE WHEN jsonb_typeof(value) = 'number' THEN value::numeric END AS n, entries FROM answer) v
    WHERE n = 0 OR abs(n) BETWEEN 1e-300 AND 1e300
), summary AS (
    SELECT key, count(1) AS entries, min(n) AS low, max(n) AS high,
           percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY n) AS quartiles
    FROM number CROSS JOIN LATERAL generate_series(1, weight)
    GROUP BY key
), bounded AS (
    SELECT key, CASE WHEN high > low THEN (
        SELECT ARRAY(SELECT (floor(least / step) * step + i * step / 2)::float8 FROM generate_series(0, 20) i)
        FROM (SELECT low::text::numeric AS least, high::text::numeric AS most) d
        CROSS JOIN LATERAL (SELECT (times || 'e' || floor(log((most - least) / 10)))::numeric AS step FROM unnest(ARRAY[1, 2, 5, 10, 20]) times) r
        WHERE floor(most / step) - floor(least / step) < 10
        ORDER BY step
        LIMIT 1
    ) ELSE ARRAY[low, high] END AS bounds
    FROM summary
), bin AS (
    SELECT key, greatest(width_bucket(n, bounds[:cardinality(bounds) - 1]), 1) AS bin, sum(weight) AS entries
    FROM number JOIN bounded USING (key)
    GROUP BY 1, 2
)`
}

// keyValues is SQL for the part of an answer about the values of one key. keyValues needs the key as the row k, and
// the rows of that key in total, list and covered as t, l and c. The row w has the numbers of all entries.
const keyValues = `
    'none', w.entries - w.unreadable - coalesce(t.answered, 0), 'multiple', coalesce(t.multiple, 0), 
    'others', coalesce(t.answered, 0) - coalesce(l.alone, 0) - coalesce(c.entries, 0),
    'values', coalesce((SELECT json_agg(json_build_object('value', value, 'entries', entries) ORDER BY entries DESC, value) FROM frequent WHERE key = k.key), '[]'),
    'numbers', (
        SELECT json_build_object(
            'entries', s.entries, 'minimum', s.low, 'lower_quartile', s.quartiles[1], 'median', s.quartiles[2], 'upper_quartile', s.quartiles[3],
            'maximum', s.high, 'bins', (
                SELECT json_agg(json_build_object('from', bounds[i], 'to', bounds[i + 1], 'entries', coalesce(b.entries, 0)) ORDER BY i)
                FROM bounded r CROSS JOIN generate_series(1, cardinality(bounds) - 1) i LEFT JOIN bin b ON b.key = r.key AND b.bin = i
                WHERE r.key = s.key))
        FROM summary s WHERE s.key = k.key)`

// Answers returns as JSON the keys of entry_data, or the values of q.Key if q has a key. If Postgres cannot parse the
// data of an entry, Answers repeats the question with a slower statement.
func (s *Store) Answers(ctx context.Context, q insight.AnswersQuestion) (body []byte, err error) {
	for _, careful := range []bool{false, true} {
		var ask statement
		switch {
		case q.Key != "":
			ask = answersOf(q.Selection, q.Key, careful)
		case q.Values > 0:
			ask = keyValuesOf(q.Selection, q.Values, careful)
		default:
			ask = keysOf(q.Selection, careful)
		}
		_, body, err = s.answer(ctx, ask)
		pg, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || pg.Code[:2] != "22" && pg.Code[:2] != "54" { // data_exception, program_limit_exceeded
			break
		}
	}
	return body, err
}
