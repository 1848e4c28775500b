// Package columns turns the top-level keys of entry_data into typed columns. A [Set] that is not closed grows with the
// data: a new key adds a column, with the type of its first value. A Set never removes a column, and changes a type
// only by [Set.Widen]. A column is null for an entry whose value does not fit the column's type.
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

// Type is the type of a column, which decides which JSON values fit the column.
type Type string

// The types of columns. Integer and Date are only for columns that a user lists.
const (
	// Text holds strings, and other values as JSON in the form of Postgres' jsonb. Values with U+0000 or unpaired
	// surrogates do not fit, nor do numbers of more than 1,000 characters.
	Text Type = "text"
	// Double holds numbers whose value is that of the shortest decimal form of a float64, such as 0.1.
	Double Type = "double"
	// Integer holds numbers without a fraction that fit into 64 bits with a sign.
	Integer Type = "integer"
	// Boolean holds the JSON values true and false, but not the strings "true" and "false".
	Boolean Type = "boolean"
	// Timestamp holds strings in the format of RFC 3339, with years from 1 to 9999 and offsets below 15 hours. The
	// precision is at most microseconds.
	Timestamp Type = "timestamp"
	// Date holds strings such as 2026-01-31, with years from 1 to 9999.
	Date Type = "date"
)

// Day is the value of a [Date] column: the number of days since 1970-01-01, negative before.
type Day int32

// String returns the day in the form 2026-01-31.
func (d Day) String() string { return time.Unix(int64(d)*secondsPerDay, 0).UTC().Format(time.DateOnly) }

// MarshalText returns the text of [Day.String], so that JSON has the day in the form 2026-01-31. The error is always
// nil.
func (d Day) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Column is a column that holds the values of one top-level key of entry_data.
type Column struct {
	// Key is the top-level key of entry_data whose values the column holds.
	Key string `json:"key"`
	// Name is the name of the column. Name may differ from Key, for example because Key is too long or is the name of
	// another column.
	Name string `json:"name"`
	Type Type   `json:"type"`
}

// Misfit is a column with the number of values that do not fit its type, and an entry with such a value.
type Misfit struct {
	Column
	Values int    // how many values that are not null
	Entry  string // the id of the first entry that has such a value
}

// Notes returns a message about each misfit of sets, a map from embeddable id to columns. The messages are in the
// order of the ids. Notes returns each misfit once, even over several calls.
func Notes(sets map[string]*Set) (list []string) {
	for _, id := range slices.Sorted(maps.Keys(sets)) {
		for _, m := range sets[id].Misfits() {
			list = append(list, m.Note(id))
		}
	}
	return list
}

// Note returns the message about a misfit for the user. An empty embeddableID means that the column holds values of
// all embeddables.
func (m Misfit) Note(embeddableID string) string {
	ofEmbeddable := ""
	if embeddableID != "" {
		ofEmbeddable = fmt.Sprintf(" of embeddable %q", embeddableID)
	}
	if m.Values == 1 {
		return fmt.Sprintf("1 value of the key %q%s does not fit its column of type %s: the value of entry %q. It is null there, and complete in entry_data.",
			m.Key, ofEmbeddable, m.Type, m.Entry)
	}
	return fmt.Sprintf("%d values of the key %q%s do not fit its column of type %s, such as the value of entry %q. They are null there, and complete in entry_data.",
		m.Values, m.Key, ofEmbeddable, m.Type, m.Entry)
}

const (
	// Most is the greatest number of columns in a Set. Postgres allows 1,600 columns in a view.
	Most = 1000

	// longestName is the length of the longest column name in Postgres, in bytes.
	longestName = 63

	secondsPerDay = 24 * 60 * 60

	// prefix begins the name of a column whose key is not a valid column name, or is the name of another column.
	prefix = "data_"
)

// fixed are the names of the columns that a row of an entry may have in any form of a copy or an export. A column of a
// key never has one of these names.
var fixed = []string{
	"entry_id", "group_id", "project_id", "embeddable_id", "contact_id", "created_at", "updated_at",
	"entry_data", "entry_data_text", "seq", "removed", "removed_at", "removal_reason",
}

// Set is the columns of a group of entries, such as the entries of one embeddable, and the misfits so far. A Set is
// not safe for concurrent use.
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
	said   bool // [Set.Misfits] has returned the misfit
}

// NewSet returns a set with the given columns. A closed set never adds a column.
func NewSet(columns []Column, closed bool) *Set {
	s := &Set{columns: append([]Column{}, columns...), closed: closed, byKey: map[string]int{}, taken: map[string]bool{}, misfits: map[int]*misfit{}}
	for _, name := range fixed {
		s.taken[name] = true
	}
	for i, c := range s.columns {
		s.byKey[c.Key] = i
		s.taken[strings.ToLower(c.Name)] = true
	}
	return s
}

// Columns returns the columns: first those that [NewSet] got, then those of new keys in the order of their occurrence.
// The caller must not change the slice.
func (s *Set) Columns() []Column { return s.columns }

// Remarks returns a sentence for the user if a key of a set got no column because the set already had [Most] columns.
func Remarks(sets map[string]*Set) []string {
	for _, s := range sets {
		if s.full {
			return []string{fmt.Sprintf("Some keys of entry_data have no column, because there are %d already; their values are in entry_data.", Most)}
		}
	}
	return nil
}

// Observe adds columns for the new keys of data, the entry_data of an entry, unless the set is closed or full. A key
// whose value is null adds no column. added reports whether there are new columns, and fits whether all values fit
// their columns. Observe also counts the values that do not fit, for [Set.Misfits].
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

// Misfits returns the columns in which a value did not fit, with the number of such values so far. Misfits returns
// each column once, even over several calls.
func (s *Set) Misfits() (list []Misfit) {
	for i, c := range s.columns {
		if m := s.misfits[i]; m != nil && !m.said {
			m.said = true
			list = append(list, Misfit{c, m.values, m.entry})
		}
	}
	return list
}

// Widen changes the type to text of each column in which a value did not fit. Widen does not change a closed set,
// whose columns a user listed.
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

// nameFor returns a column name for key that no column has. The name is key if possible. Otherwise the name has a
// prefix and, if needed, a number.
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

// cut returns the longest beginning of s that has at most n bytes and no partial character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Values sets values to those of data, an entry's entry_data, in the order of the columns. values has the length of
// [Set.Columns]. A value is nil if the key is missing, the value is null in JSON, or the value does not fit. Otherwise
// the value is a string, a float64, an int64, a bool, a [time.Time] or a [Day], by the column's type.
func (s *Set) Values(data string, values []any) {
	clear(values)
	eachMember(data, func(key string, v gjson.Result) {
		if i, ok := s.byKey[key]; ok {
			values[i], _ = valueOf(v, s.columns[i].Type)
		}
	})
}
