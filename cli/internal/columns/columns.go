// Package columns turns the top-level keys of entry_data into typed columns. A [Set] grows with the data: a new key adds a
// column, with the type of its first value. A column is never removed, and its type does not change by itself. It is null
// where a value does not fit.
package columns

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Type is the type of a column.
type Type string

// The types of columns. Integer and Date are only for columns that a user lists.
const (
	// Text holds strings without U+0000 and unpaired surrogates. It holds all other values as JSON, in the form of
	// Postgres' jsonb, with numbers of at most 1,000 characters.
	Text Type = "text"
	// Double holds numbers that equal a float64, or its shortest decimal form such as 0.1.
	Double Type = "double"
	// Integer holds numbers without a fraction, in 64 bits.
	Integer Type = "integer"
	// Boolean holds true and false.
	Boolean Type = "boolean"
	// Timestamp holds strings in the format of RFC 3339, with years from 1 to 9999 and a precision of at most microseconds.
	Timestamp Type = "timestamp"
	// Date holds strings such as 2026-01-31, with years from 1 to 9999.
	Date Type = "date"
)

// Day is the value of a [Date] column: days since 1970.
type Day int32

// String returns the day as in 2026-01-31.
func (d Day) String() string { return time.Unix(int64(d)*secondsPerDay, 0).UTC().Format(time.DateOnly) }

// MarshalText returns the text of [Day.String].
func (d Day) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Column is a column for a key.
type Column struct {
	// Key is the key in entry_data.
	Key string `json:"key"`
	// Name is the column's name. It differs from Key if Key is not a valid name, or is taken.
	Name string `json:"name"`
	Type Type   `json:"type"`
}

// Misfit is a column that some values do not fit.
type Misfit struct {
	Column
	Values int    // how many values that are not null
	Entry  string // the id of the first entry that has such a value
}

// Notes returns the messages about the misfits of the sets of embeddables, in the order of their ids. It returns each once.
func Notes(sets map[string]*Set) (list []string) {
	for _, id := range slices.Sorted(maps.Keys(sets)) {
		for _, m := range sets[id].Misfits() {
			list = append(list, m.Note(id))
		}
	}
	return list
}

// Note is the message about a misfit. An empty embeddableID means any embeddable.
func (m Misfit) Note(embeddableID string) string {
	of := ""
	if embeddableID != "" {
		of = fmt.Sprintf(" of embeddable %q", embeddableID)
	}
	if m.Values == 1 {
		return fmt.Sprintf("1 value of the key %q%s does not fit its column of type %s: the value of entry %q. It is null there, and complete in entry_data.",
			m.Key, of, m.Type, m.Entry)
	}
	return fmt.Sprintf("%d values of the key %q%s do not fit its column of type %s, such as the value of entry %q. They are null there, and complete in entry_data.",
		m.Values, m.Key, of, m.Type, m.Entry)
}

const (
	// Most bounds the columns of a Set. Postgres allows 1,600 in a view.
	Most = 1000

	// longestName is the longest name in Postgres, in bytes.
	longestName = 63

	secondsPerDay = 24 * 60 * 60

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
	misfits map[int]*misfit // by column
}

type misfit struct {
	values int
	entry  string
	said   bool // [Set.Misfits] has returned it
}

// NewSet returns a set with these columns. A closed set never adds a column.
func NewSet(columns []Column, closed bool) *Set {
	s := &Set{columns: slices.Clone(columns), closed: closed, byKey: map[string]int{}, taken: map[string]bool{}, misfits: map[int]*misfit{}}
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

// Full reports whether a key has no column because the set has [Most].
func (s *Set) Full() bool { return s.full }

// Observe adds columns for the keys of data, the entry_data of an entry. It reports whether there were new keys, and whether
// all values fit their columns. Data that is not a JSON object has no columns.
func (s *Set) Observe(entryID, data string) (added, fits bool) {
	fits = true
	if s.closed && len(s.columns) == 0 {
		return false, fits
	}
	eachMember(data, func(key string, v gjson.Result) {
		i, ok := s.byKey[key]
		if !ok && (s.closed || v.Type == gjson.Null || strings.Contains(key, "\x00") || !s.add(strings.Clone(key), typeOf(v))) {
			return
		}
		if !ok {
			i, added = s.byKey[key], true
		}
		if !fit(v, s.columns[i].Type) {
			fits = false
			if s.misfits[i] == nil {
				s.misfits[i] = &misfit{entry: strings.Clone(entryID)}
			}
			s.misfits[i].values++
		}
	})
	return added, fits
}

// Misfits returns the columns in which a value did not fit, with the values so far. It returns each column once.
func (s *Set) Misfits() (list []Misfit) {
	for i, c := range s.columns {
		if m := s.misfits[i]; m != nil && !m.said {
			m.said = true
			list = append(list, Misfit{c, m.values, m.entry})
		}
	}
	return list
}

// Widen makes text of the columns in which a value did not fit, except those that a user listed.
func (s *Set) Widen() {
	s.columns = slices.Clone(s.columns)
	for i := range s.misfits {
		if !s.closed && s.columns[i].Type != Text {
			s.columns[i].Type = Text
			delete(s.misfits, i)
		}
	}
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

// Values sets values to those of data, in the order of the columns. A value is nil if it is missing, null in JSON, or does
// not fit. It is otherwise a string, a float64, an int64, a bool, a [time.Time] or a [Day], by the column's type.
func (s *Set) Values(data string, values []any) {
	clear(values)
	eachMember(data, func(key string, v gjson.Result) {
		if i, ok := s.byKey[key]; ok {
			values[i], _ = valueOf(v, s.columns[i].Type)
		}
	})
}
