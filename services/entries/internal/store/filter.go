package store

import (
	"strconv"
	"strings"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// idFilter is a set of the columns in idColumns. A list compares each column in the set with one id. Each set has
// statements of its own. With a condition such as ($2 IS NULL OR contact_id = $2), Postgres could not use the index
// of a column.
type idFilter byte

// idColumns are the columns by which a list can be filtered. Bit n of an idFilter represents column n.
var idColumns = [...]string{"embeddable_id", "contact_id", "group_id"}

// eachIDFilter returns the results of of for each set of filters.
func eachIDFilter[T any](of func(idFilter) T) (all [1 << len(idColumns)]T) {
	for ids := range all {
		all[ids] = of(idFilter(ids))
	}
	return all
}

// idFilterOf returns the filters of l, and the ids in the order of their parameters.
func idFilterOf(l entry.List) (ids idFilter, values []any) {
	for n, id := range [len(idColumns)]string{l.EmbeddableID, l.ContactID, l.GroupID} {
		if id != "" {
			ids |= 1 << n
			values = append(values, id)
		}
	}
	return ids, values
}

// columns returns the columns of the set.
func (ids idFilter) columns() (names []string) {
	for n, name := range idColumns {
		if ids&(1<<n) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// where returns the condition of the set, as an addition to another condition. Its parameters begin with $2.
func (ids idFilter) where() string {
	var sql strings.Builder
	for n, name := range ids.columns() {
		sql.WriteString(" AND " + name + " = $" + strconv.Itoa(2+n))
	}
	return sql.String()
}
