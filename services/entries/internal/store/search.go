package store

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// carefulData is an SQL expression for the parsed entry_data of an entry, or null if Postgres cannot parse the data.
// entry_json returns that null, but takes several times as long as parse_entry. So entry_json parses only data that
// may fail: with \u escapes, a great exponent, or many digits or levels.
const carefulData = `CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END`

// answers returns the SQL condition for entries with an answer that equals a JSON value. Answers are the top-level
// values of entry_data and the elements of top-level arrays. If key is not nil, only the answers of that key count.
func (s *statement) answers(json string, key any) string {
	sql := ""
	if text, isText := strings.CutPrefix(json, `"`); isText && !strings.Contains(json, `\`) {
		// Data without an escape contains a text unchanged. So Postgres need not parse most entries.
		sql = "(strpos(entry_data, " + s.arg(`"`+text) + "::text) > 0 OR strpos(entry_data, '\\') > 0) AND "
	}
	sql += "EXISTS (SELECT FROM jsonb_each(" + carefulData + ") f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = " + s.arg(json) + "::text::jsonb"
	if key != nil {
		sql += " AND f.key = " + s.arg(key) + "::text"
	}
	return sql + ")"
}

// contains returns the SQL condition for entries with an answer that contains text in any letter case. Only answers
// that are texts or numbers count.
func (s *statement) contains(text string) string {
	pattern := s.arg(foldPattern(text)) + "::text"
	// Data without an escape or an exponent contains an answer unchanged. So Postgres need not parse most entries.
	return "(entry_data ~ " + pattern + " OR entry_data ~ '\\\\|[0-9][eE]') AND EXISTS (SELECT FROM jsonb_each(" + carefulData +
		") f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND (v #>> '{}') COLLATE \"C\" ~ " + pattern + ")"
}

// foldPattern returns a regular expression of Postgres for a text in any letter case, by Unicode's simple folding.
// The function lower() of Postgres folds no more than ASCII in some databases.
func foldPattern(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.SimpleFold(r) == r {
			b.WriteString(regexp.QuoteMeta(string(r)))
			continue
		}
		b.WriteRune('[')
		b.WriteRune(r)
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			b.WriteRune(other)
		}
		b.WriteRune(']')
	}
	return b.String()
}

// searches reports whether l has a condition on entry_data, for which Postgres may have to parse the data of many
// entries.
func searches(l entry.List) bool {
	return slices.ContainsFunc(l.Conditions, func(c entry.Condition) bool { return c.Field == "entry_data" })
}

// tooLarge returns a QuestionTooLarge with the cause err if a statement ran longer than it may, and otherwise err.
func tooLarge(err error) error {
	if pgdb.TimedOut(err) {
		return tooLong(err)
	}
	return err
}

func tooLong(cause error) error {
	return apierr.New(apierr.QuestionTooLarge, "This takes longer than the server allows. Narrow the period with created_after and created_before, or ask for one embeddable_id.").
		Because(cause)
}
