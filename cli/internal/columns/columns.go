// Package columns turns the top-level keys of entry_data into typed columns. A [Set] grows with the data. A new key
// adds a column. A value that does not fit its column's type makes the column text. A column is never removed, and its
// type never becomes narrower.
package columns

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Type is the type of a column.
type Type string

// The types of columns.
const (
	// Text holds strings unchanged, and all other values as JSON.
	Text Type = "text"
	// Double holds numbers that equal a float64, or its shortest decimal form such as 0.1.
	Double Type = "double"
	// Boolean holds true and false.
	Boolean Type = "boolean"
	// Timestamp holds strings in the format of RFC 3339, with years from 1 to 9999 and a precision of at most microseconds.
	Timestamp Type = "timestamp"
)

// Column is a column for a key.
type Column struct {
	// Key is the key in entry_data.
	Key string `json:"key"`
	// Name is the column's name. It differs from Key if Key is not a valid name, or is taken.
	Name string `json:"name"`
	Type Type   `json:"type"`
}

const (
	// Most bounds the columns of a Set. Postgres allows 1,600 in a view.
	Most = 1000

	// longestName is the longest name in Postgres, in bytes.
	longestName = 63

	// prefix begins the names of columns whose key is not a valid name, or is taken.
	prefix = "data_"
)

// fixed are the columns that rows of entries have in any form of a copy or export. Columns of keys get other names.
var fixed = []string{
	"entry_id", "group_id", "project_id", "embeddable_id", "contact_id", "created_at", "updated_at",
	"entry_data", "entry_data_text", "seq", "removed", "removed_at", "removal_reason",
}

// Set is the columns for some entries.
type Set struct {
	columns []Column
	closed  bool // no key is added
	byKey   map[string]int
	taken   map[string]bool // names in lower case, because DuckDB ignores case
	full    bool            // a key got no column because of Most
}

// NewSet returns a set with these columns. A closed set never adds a column.
func NewSet(columns []Column, closed bool) *Set {
	s := &Set{columns: slices.Clone(columns), closed: closed, byKey: map[string]int{}, taken: map[string]bool{}}
	for _, name := range fixed {
		s.taken[name] = true
	}
	for i, c := range s.columns {
		s.byKey[c.Key] = i
		s.taken[strings.ToLower(c.Name)] = true
	}
	return s
}

// Columns returns the columns, in the order in which their keys were first seen. The caller must not change them.
func (s *Set) Columns() []Column { return s.columns }

// Clone returns a copy of the set.
func (s *Set) Clone() *Set {
	c := NewSet(s.columns, s.closed)
	c.full = s.full
	return c
}

// Widened returns the index of the first column that has become text since the set had the columns before, and -1 for
// none.
func (s *Set) Widened(before []Column) int {
	for i, c := range before {
		if s.columns[i].Type != c.Type {
			return i
		}
	}
	return -1
}

// Full reports whether a key has no column because the set has [Most].
func (s *Set) Full() bool { return s.full }

// Observe adapts the columns to data, the text of an entry_data. It reports whether that added a column or changed one to
// text. Data that is not a JSON object has no columns.
func (s *Set) Observe(data string) (changed bool) {
	if s.closed && len(s.columns) == 0 {
		return false
	}
	eachMember(data, func(key string, v gjson.Result) {
		i, ok := s.byKey[key]
		if ok && s.columns[i].Type == Text || !ok && s.closed {
			return
		}
		t := typeOf(v)
		switch {
		case t == "":
		case ok && s.columns[i].Type != t:
			s.columns = slices.Clone(s.columns)
			s.columns[i].Type = Text
			changed = true
		case !ok && !strings.Contains(key, "\x00"):
			changed = s.add(strings.Clone(key), t) || changed
		}
	})
	return changed
}

func (s *Set) add(key string, t Type) bool {
	if len(s.columns) == Most {
		s.full = true
		return false
	}
	name := s.nameFor(key)
	s.taken[strings.ToLower(name)] = true
	s.byKey[key] = len(s.columns)
	s.columns = append(s.columns[:len(s.columns):len(s.columns)], Column{key, name, t})
	return true
}

// nameFor returns an unused column name: the key if possible, and otherwise one with a prefix and perhaps a number.
func (s *Set) nameFor(key string) string {
	if key != "" && len(key) <= longestName && !s.taken[strings.ToLower(key)] {
		return key
	}
	base := prefix + key
	name := cut(base, longestName)
	for n := 2; s.taken[strings.ToLower(name)]; n++ {
		end := fmt.Sprintf("_%d", n)
		name = cut(base, longestName-len(end)) + end
	}
	return name
}

// cut returns at most the first n bytes of s, without cutting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Values sets values to those of data, in the order of the columns. A value is nil if it is missing or null in JSON. It is
// otherwise a string, a float64, a bool or a [time.Time], by the column's type. The set must have observed data.
func (s *Set) Values(data string, values []any) {
	clear(values)
	eachMember(data, func(key string, v gjson.Result) {
		if i, ok := s.byKey[key]; ok {
			values[i] = valueOf(v, s.columns[i].Type)
		}
	})
}
