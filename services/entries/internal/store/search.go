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

// identifiers is an SQL expression for the ids of an entry, each on a line.
const identifiers = `entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id`

// Words by how Postgres looks for them. A word of digits also matches digits with blanks, brackets and hyphens between
// them, as in numbers of phones.
var (
	digits = regexp.MustCompile(`^\+?[0-9]+$`)
	number = regexp.MustCompile(`^[-0-9.]+$`) // may be a part of a JSON number, which never shows an exponent
)

// contains returns the SQL condition for entries in which each word of text occurs in an answer or in an id, in any
// letter case. Only answers that are texts or numbers count.
//
// Data without an escape or an exponent contains a word unchanged. So Postgres need not parse most entries, and runs
// the cheap conditions first.
func (s *statement) contains(text string) string {
	var conditions []string
	for word := range strings.FieldsSeq(text) {
		var found func(in string) string
		if ascii := !strings.ContainsFunc(word, func(r rune) bool { return r > unicode.MaxASCII }); ascii && !digits.MatchString(word) {
			word := s.arg(strings.ToLower(word))
			found = func(in string) string { return "strpos(lower((" + in + `) COLLATE "C"), ` + word + "::text) > 0" }
		} else {
			pattern := s.arg(foldPattern(word))
			found = func(in string) string { return "(" + in + `) COLLATE "C" ~ ` + pattern + "::text" }
		}
		perhaps := found(identifiers+` || E'\n' || entry_data`) + ` OR strpos(entry_data, '\') > 0`
		if number.MatchString(word) {
			perhaps += ` OR entry_data ~ '[0-9][eE]'`
		}
		conditions = append(conditions, "("+perhaps+")", "("+found(identifiers)+" OR EXISTS (SELECT FROM jsonb_each("+carefulData+
			") f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND "+found("v #>> '{}'")+"))")
	}
	return strings.Join(conditions, " AND ")
}

// foldPattern returns a regular expression of Postgres for a word in any letter case, by Unicode's simple folding.
// ASCII letters stay ASCII. The function lower() of Postgres folds no more than ASCII in some databases.
func foldPattern(word string) string {
	var b strings.Builder
	between := ""
	if digits.MatchString(word) {
		between = "[][() \u00a0-]*"
	}
	for i, r := range word {
		if i > 0 {
			b.WriteString(between)
		}
		if unicode.SimpleFold(r) == r {
			b.WriteString(regexp.QuoteMeta(string(r)))
			continue
		}
		b.WriteRune('[')
		b.WriteRune(r)
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			if r > unicode.MaxASCII || other <= unicode.MaxASCII {
				b.WriteRune(other)
			}
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
