package store

import (
	"slices"
	"strconv"

	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// statement is SQL with its arguments, which a list or an insight builds for the conditions of a request. Each set of
// filters has SQL of its own. With a condition such as ($2 IS NULL OR contact_id = $2), Postgres could not use an
// index of contact_id.
type statement struct {
	sql  string
	args []any
}

// arg adds an argument and returns its placeholder in SQL, such as $2.
func (s *statement) arg(value any) string {
	s.args = append(s.args, value)
	return "$" + strconv.Itoa(len(s.args))
}

// operators has the SQL operators of the kinds of filters that compare a field with one value.
var operators = map[entry.Kind]string{entry.Equal: " = ", entry.After: " > ", entry.Before: " < ", entry.Is: " = ", entry.Number: " = "}

// derived has the fields of an entry that are no columns of the table entries. of is an expression over p, a row of
// progress of the entry. otherwise is the value if the entry has no such row.
var derived = map[string]struct{ of, otherwise string }{
	"version":   {"p.version", "NULL"},
	"completed": {"p.completed_after IS NOT NULL", "false"},
	"furthest":  {"p.furthest", "NULL"},
}

// selected returns the SQL condition for the entries that a selection selects. selected leaves out the conditions on
// the field except, because a list applies these as its range.
//
// A derived field is a subquery of one value, which Postgres runs once for each entry that it passes. So Postgres
// keeps using the index of the list. A join might instead begin with all progress of the project.
func (s *statement) selected(by entry.Selection, except string) string {
	if s.args == nil {
		s.arg(by.ProjectID)
	}
	var key, version any // nil for any
	for _, c := range by.Conditions {
		switch {
		case c.Kind == entry.AnswerKey:
			key = c.Value
		case c.Field == "version":
			version = c.Value
		}
	}
	sql := "project_id = $1"
	for _, c := range by.Conditions {
		switch {
		case c.Field == except, c.Kind == entry.AnswerKey:
			continue
		case c.Kind == entry.Answers:
			sql += " AND " + s.answers(c.Value.(string), key)
			continue
		case c.Kind == entry.Contains:
			sql += " AND " + s.contains(c.Value.(string))
			continue
		}
		field, value := c.Field, c.Value
		if d, ok := derived[field]; ok {
			row := "p.part = 0" // of all page views
			if version != nil {
				row = "p.version = " + s.arg(version) + " AND (p.part > 0 OR NOT p.several)"
			}
			field = `coalesce((
    SELECT ` + d.of + `
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND ` + row + `
), ` + d.otherwise + `)`
		}
		if c.Kind == entry.After || c.Kind == entry.Before {
			value = pgdb.Timestamp(value.(int64))
		}
		sql += " AND " + field + operators[c.Kind] + s.arg(value)
	}
	return sql
}

// indexed has the fields for which an index finds the entries of a list in the order of the list.
var indexed = map[entry.Sort][]string{
	entry.ByUpdatedAt: {"updated_at", "contact_id", "embeddable_id"},
	entry.ByCreatedAt: {"created_at"},
}

// scans reports whether a statement of l may read any number of entries outside of its page, because no index covers
// a condition.
func scans(l entry.List) bool {
	return slices.ContainsFunc(l.Conditions, func(c entry.Condition) bool { return !slices.Contains(indexed[l.Sort], c.Field) })
}
