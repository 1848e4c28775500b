package ingest

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/shared/wire"
)

// Field is one member of a record of type T: its name in JSON, its rule, and where the record keeps the value. Make
// fields with [Text], [NullText], [Int], [NullInt], [Time] and [NullTexts]. A field made by a function with Null in
// its name may be null or absent. A field made by another function is required.
type Field[T any] struct {
	name     string
	nullable bool
	// read puts v, which is not null, into the record.
	read func(s *scratch, v value, record *T) *Fault
	// clear makes the field of the record null, because the record may have been used before. clear is nil for fields
	// that are not nullable.
	clear func(record *T)
}

// value is a JSON value in a line, which the decoder has found to be valid JSON.
type value struct {
	raw  jsontext.Value
	text string // the same bytes
}

// Rule says which texts a field may hold, and how error messages describe these texts.
type Rule struct {
	allowed string // the end of a message, after "allowed: "
	// ok reports whether a text follows the rule. ok gets the text both as a string and as bytes, so that ok converts
	// neither.
	ok func(s string, b []byte) bool
}

// AnyText returns the rule of free text: any text without NUL, which Postgres cannot store.
func AnyText() Rule {
	return Rule{"text without NUL (U+0000)", noNUL}
}

// Identifier returns the rule of identifiers: the same texts as in the paths of the API, of 1 to 256 bytes without
// NUL.
func Identifier() Rule {
	return Rule{fmt.Sprintf("text of 1 to %d bytes without NUL (U+0000)", wire.MaxIdentifierBytes),
		func(s string, _ []byte) bool { return wire.ValidIdentifier(s) }}
}

// OneOf returns the rule of a text that equals one of values.
func OneOf(values ...string) Rule {
	return Rule{strings.Join(values, ", "), func(s string, _ []byte) bool { return slices.Contains(values, s) }}
}

// JSONText returns the rule of a text that holds JSON (RFC 8259), nested at most 10,000 deep. An object may repeat a
// name. The record keeps the text byte for byte.
func JSONText() Rule {
	return Rule{"JSON as text, nested at most 10000 deep", func(_ string, b []byte) bool { return validJSON(b, 0) }}
}

// JSONObjectText returns the rule of [JSONText] for a text that holds a JSON object.
func JSONObjectText() Rule {
	return Rule{"a JSON object as text, nested at most 10000 deep", func(_ string, b []byte) bool { return validJSON(b, '{') }}
}

// JSONArrayText returns the rule of [JSONText] for a text that holds a JSON array.
func JSONArrayText() Rule {
	return Rule{"a JSON array as text, nested at most 10000 deep", func(_ string, b []byte) bool { return validJSON(b, '[') }}
}

func noNUL(s string, _ []byte) bool { return strings.IndexByte(s, 0) < 0 }

// validJSON reports whether b is JSON. If first is not 0, b must also begin with the byte first, after any white
// space.
func validJSON(b []byte, first byte) bool {
	if first != 0 {
		begin := bytes.TrimLeft(b, " \t\r\n")
		if len(begin) == 0 || begin[0] != first {
			return false
		}
	}
	// b is valid UTF-8. AllowInvalidUTF8 additionally allows escaped lone surrogates, which the grammar of JSON
	// permits.
	return jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Text returns a required field that holds a text under rule. at returns where the record keeps the text.
func Text[T any](name string, rule Rule, at func(*T) *string) Field[T] {
	return Field[T]{name: name, read: func(s *scratch, v value, record *T) *Fault {
		text, fault := s.text(name, v, rule)
		if fault == nil {
			*at(record) = text
		}
		return fault
	}}
}

// NullText returns a field that holds a text under rule. If the field is null or absent, the record keeps nil. at
// returns where the record keeps the text.
func NullText[T any](name string, rule Rule, at func(*T) **string) Field[T] {
	return Field[T]{name: name, nullable: true,
		read: func(s *scratch, v value, record *T) *Fault {
			text, fault := s.text(name, v, rule)
			if fault == nil {
				*at(record) = &text
			}
			return fault
		},
		clear: func(record *T) { *at(record) = nil },
	}
}

// Time returns a required field that holds a DateTime, read by [wire.ParseTime]. at returns where the record keeps
// the time, in Unix microseconds.
func Time[T any](name string, at func(*T) *int64) Field[T] {
	rule := Rule{"a date and time of RFC 3339 such as 2022-01-31T09:30:00Z, years 0001 to 9999", noNUL}
	return Field[T]{name: name, read: func(s *scratch, v value, record *T) *Fault {
		text, fault := s.text(name, v, rule)
		if fault != nil {
			return fault
		}
		micros, err := wire.ParseTime(text)
		if err != nil {
			return BadField(name, v.text, rule.allowed)
		}
		*at(record) = micros
		return nil
	}}
}

// Int returns a required field that holds an integer from least to most. at returns where the record keeps the
// integer.
func Int[T any](name string, least, most int64, at func(*T) *int64) Field[T] {
	return Field[T]{name: name, read: func(_ *scratch, v value, record *T) *Fault {
		n, fault := integer(name, v, least, most)
		if fault == nil {
			*at(record) = n
		}
		return fault
	}}
}

// NullInt returns a field that holds an integer from least to most. If the field is null or absent, the record keeps
// nil. at returns where the record keeps the integer.
func NullInt[T any](name string, least, most int64, at func(*T) **int64) Field[T] {
	return Field[T]{name: name, nullable: true,
		read: func(_ *scratch, v value, record *T) *Fault {
			n, fault := integer(name, v, least, most)
			if fault == nil {
				*at(record) = &n
			}
			return fault
		},
		clear: func(record *T) { *at(record) = nil },
	}
}

// integer returns the number v, which must be written as an integer from least to most. integer refuses 1.0 and 1e3,
// because their parsing could round a number from 2^53 on.
func integer(name string, v value, least, most int64) (int64, *Fault) {
	n, err := strconv.ParseInt(v.text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, BadField(name, v.text, fmt.Sprintf("an integer from %d to %d", least, most))
	}
	return n, nil
}

// NullTexts returns a field that holds an array of texts, each under rule. If the field is null or absent, the record
// keeps nil. An empty array is not nil. at returns where the record keeps the texts.
func NullTexts[T any](name string, rule Rule, at func(*T) *[]string) Field[T] {
	read := func(s *scratch, v value, record *T) (fault *Fault) {
		*at(record), fault = s.texts(name, v, rule)
		return fault
	}
	return Field[T]{name: name, nullable: true, read: read, clear: func(record *T) { *at(record) = nil }}
}
