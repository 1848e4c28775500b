package lists

import (
	"strconv"
	"strings"
)

// Statements are the SQL statements that read a list in one direction. Each statement takes its parameters in this
// order:
//
//   - the parameters of the list
//   - the start of the range (excluded), with a value for each column of the key
//   - the end of the range (included), also with a value for each column
//   - one parameter of its own, such as the limit; Last has none
type Statements struct {
	// Parameters is how many parameters First, Chunk and Nth take.
	Parameters int

	// First reads the first chunk and also finds out whether the parent of the list exists. Without the parent, First
	// returns no row; for an empty range, one row without a record. The own parameter of First is the limit. If First
	// is empty, Chunk reads the first chunk.
	First string

	// Chunk reads records in order. The own parameter of Chunk is the limit.
	Chunk string

	// Nth reads the position at an offset and the next position, without the other columns. The own parameter of Nth is
	// the offset.
	Nth string

	// Last reads the last position of the range, without the other columns. Last has no parameter of its own.
	Last string
}

// Orders holds the statements that read one list in ascending and in descending order.
type Orders struct{ Ascending, Descending Statements }

// In returns the statements that read the list in descending order if descending is set, and otherwise in ascending
// order.
func (o Orders) In(descending bool) Statements {
	if descending {
		return o.Descending
	}
	return o.Ascending
}

// Keyset describes a list in SQL: its table, columns and order. [Keyset.Statements] and [Keyset.Orders] build the
// statements that read the list.
type Keyset struct {
	Table   string
	Columns string // of a record, separated by commas
	Key     string // the columns that order the list, separated by commas; an index leads to them

	// Where selects the records by the parameters of the list, $1 to $Parameters.
	Where      string
	Parameters int

	// Parent selects the record that the list belongs to, by the parameters of the list. If Parent is empty, there is
	// no statement First.
	Parent string
}

// Orders returns the statements that read the list in ascending and in descending order.
func (k Keyset) Orders() Orders { return Orders{k.Statements(false), k.Statements(true)} }

// Statements returns the statements that read the list in ascending order, or in descending order if descending is set.
func (k Keyset) Statements(descending bool) Statements {
	forward, backward := "", " DESC"
	if descending {
		forward, backward = backward, forward
	}
	key := columns(k.Key)
	own := k.Parameters + 2*len(key) + 1 // the number of the limit or the offset
	limit := "$" + strconv.Itoa(own)
	from := k.from(key, descending)

	chunk := "SELECT " + k.Columns + from + orderBy("", key, forward) + " LIMIT " + limit
	first := ""
	if k.Parent != "" {
		first = "SELECT " + prefixed("v.", columns(k.Columns), "") +
			"\nFROM (" + k.Parent + ") e" +
			"\nLEFT JOIN (\n" + chunk + "\n) v ON true" +
			orderBy("v.", key, forward)
	}
	return Statements{
		Parameters: own,
		First:      first,
		Chunk:      chunk,
		Nth:        "SELECT " + k.Key + from + orderBy("", key, forward) + " OFFSET " + limit + " LIMIT 2",
		Last:       "SELECT " + k.Key + from + orderBy("", key, backward) + " LIMIT 1",
	}
}

// from returns the FROM and WHERE clauses, which select the list's records in the range.
func (k Keyset) from(key []string, descending bool) string {
	after, until := " > ", " <= "
	if descending {
		after, until = " < ", " >= "
	}
	start, end := parameters(k.Parameters+1, len(key)), parameters(k.Parameters+1+len(key), len(key))
	row := tuple(key)
	return "\nFROM " + k.Table + "\nWHERE " + k.Where + " AND " + row + after + tuple(start) + " AND " + row + until + tuple(end)
}

// columns splits a list of columns at its commas, without the spaces.
func columns(list string) []string {
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// parameters returns the names of n parameters, the first of which has the number first.
func parameters(first, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "$" + strconv.Itoa(first+i)
	}
	return names
}

// tuple returns the values as SQL compares them: "(a, b)" for several values, and "a" for one value.
func tuple(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	return "(" + strings.Join(values, ", ") + ")"
}

// orderBy returns an ORDER BY clause with the same direction, "" or " DESC", for each column of table.
func orderBy(table string, columns []string, direction string) string {
	return "\nORDER BY " + prefixed(table, columns, direction)
}

// prefixed returns the columns as a list with commas, each column between prefix and suffix.
func prefixed(prefix string, columns []string, suffix string) string {
	return prefix + strings.Join(columns, suffix+", "+prefix) + suffix
}
