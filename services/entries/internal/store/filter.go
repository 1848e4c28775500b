package store

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// statement is SQL with its arguments, which a list or an insight builds for the conditions of a request. Each set of filters
// has SQL of its own. With a condition such as ($2 IS NULL OR contact_id = $2), Postgres could not use the index of a column.
type statement struct {
	sql  string
	args []any
}

// arg adds an argument and returns its parameter.
func (s *statement) arg(value any) string {
	s.args = append(s.args, value)
	return "$" + strconv.Itoa(len(s.args))
}

// operators are those of the kinds of filters.
var operators = map[entry.Kind]string{entry.Equal: " = ", entry.After: " > ", entry.Before: " < ", entry.Is: " = "}

// derived has the fields of an entry that are no columns of entries. Postgres looks at a subquery of one value once for each
// entry that it passes. So the list keeps its index, while a join might begin with all progress of the project.
var derived = map[string]string{
	"completed": `coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), false)`,
}

// selected returns the condition for the rows that a selection selects. It leaves out the conditions on the field except, which
// a list has as its range. The tables entries and progress have the same columns for it.
func (s *statement) selected(by entry.Selection, except string) string {
	if s.args == nil {
		s.arg(by.ProjectID)
	}
	sql := "project_id = $1"
	for _, c := range by.Conditions {
		if c.Field == except {
			continue
		}
		value := c.Value
		if at, ok := value.(int64); ok {
			value = pgdb.Timestamp(at)
		}
		sql += " AND " + cmp.Or(derived[c.Field], c.Field) + operators[c.Kind] + s.arg(value)
	}
	return sql
}

// indexed has the fields by which an index finds the entries of a list in its order.
var indexed = map[entry.Sort][]string{
	entry.ByUpdatedAt: {"updated_at", "contact_id", "embeddable_id"},
	entry.ByCreatedAt: {"created_at"},
}

// scans reports whether a statement of l may read any number of entries outside of its page.
func scans(l entry.List) bool {
	return slices.ContainsFunc(l.Conditions, func(c entry.Condition) bool { return !slices.Contains(indexed[l.Sort], c.Field) })
}
