package store

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

// careful turns the file answers.sql into a statement that counts data which Postgres cannot parse as unreadable. One
// process reads all entries for that statement.
var careful = strings.NewReplacer(
	"CASE WHEN starts_with(entry_data, '{') THEN entry_data::jsonb ELSE parse_entry(entry_data) END", carefulData,
	"NOT MATERIALIZED", "MATERIALIZED",
	"0 AS unreadable", "count(1) FILTER (WHERE current AND data IS NULL) AS unreadable",
)

// answersOf returns the statement about q, which is answersSQL or its careful form in sql. bounds is nil if q has no
// intervals.
func answersOf(sql string, q insight.AnswersQuestion, bounds []time.Time) statement {
	both, after := q.Selection, any(nil)
	if !q.Now.IsZero() {
		both, after = withEarlier(q.CountsQuestion, q.Now)
	}
	var key any
	if q.Key != "" {
		key, q.Values = q.Key, insight.MaxValues
	}
	return insightOf(sql, q.Selection, both, key, q.Values, insight.WhiteSpace, after, bounds)
}

// Answers returns as JSON the keys of entry_data, or the values of q.Key if q has a key, and how many intervals the
// answer has. If there are more than [insight.MaxCounts] intervals, body may lack some of them. If Postgres cannot parse
// the data of an entry, Answers repeats the question with a slower statement.
func (s *Store) Answers(ctx context.Context, q insight.AnswersQuestion) (intervals int, body []byte, err error) {
	bounds := q.Bounds()
	var rows []answerRow
	read := func(r pgx.Rows) (err error) {
		rows, err = pgx.CollectRows(r, pgx.RowToStructByPos[answerRow])
		return err
	}
	err = s.query(ctx, answersOf(answersSQL, q, bounds), read)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (pg.Code[:2] == "22" || pg.Code[:2] == "54") { // data_exception, program_limit_exceeded
		err = s.query(ctx, answersOf(careful.Replace(answersSQL), q, bounds), read)
	}
	if err != nil {
		return 0, nil, err
	}
	answer := answerIn(rows, q, bounds)
	body, err = json.Marshal(answer)
	return len(answer.Intervals), append(body, '\n'), err
}

// answerRow is a row of answers.sql. Numbers has the entries of each interval, by the number of the interval. The fields
// that are nil without a key come first.
type answerRow struct {
	Key                  *string
	InKey                *int // the entries that have the key
	Types                json.RawMessage
	Many                 *bool
	Entries              int // and the rest are about all entries
	Unreadable, Previous int
	Numbers              map[int]int

	None, Multiple, Others int
	Values                 []struct {
		insight.Value
		Numbers map[int]int
	}
	Statistics json.RawMessage
}

// answerIn returns the answer to q that the rows of answers.sql have. There is at least one row.
func answerIn(rows []answerRow, q insight.AnswersQuestion, bounds []time.Time) insight.Answers {
	all := rows[0]
	answer := insight.Answers{Key: q.Key, Entries: all.Entries, Unreadable: all.Unreadable}
	if _, ok := q.Earlier(q.Now); ok && !q.Now.IsZero() {
		answer.Previous = &all.Previous
	}
	first, last := 1, 0
	if bounds != nil {
		answer.Intervals = []insight.Interval{}
		for number := range all.Numbers {
			if last == 0 {
				first = number
			}
			first, last = min(first, number), max(last, number)
		}
		for number := first; number <= last && len(answer.Intervals) <= insight.MaxCounts; number++ {
			answer.Intervals = append(answer.Intervals, insight.Interval{From: bounds[number-1], To: bounds[number], Entries: all.Numbers[number]})
		}
	}
	given := func(row answerRow) *insight.Distribution {
		d := &insight.Distribution{None: row.None, Multiple: row.Multiple, Others: row.Others, Values: []insight.Value{}, Numbers: row.Statistics}
		for _, v := range row.Values {
			for i := range answer.Intervals {
				v.ByInterval = append(v.ByInterval, v.Numbers[first+i])
			}
			d.Values = append(d.Values, v.Value)
		}
		return d
	}
	if q.Key != "" {
		answer.Distribution = given(all)
		return answer
	}
	answer.Keys = []insight.AnswerKey{}
	for place, row := range rows {
		if row.Key == nil {
			break // no entry has a key
		}
		key := insight.AnswerKey{Key: *row.Key, Entries: *row.InKey, Types: row.Types}
		if q.Values > 0 && place < insight.MaxKeysWithValues {
			if key.Distribution = given(row); *row.Many {
				key.Distinct = "many"
			}
		}
		answer.Keys = append(answer.Keys, key)
	}
	return answer
}
