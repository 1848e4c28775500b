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

// Field is one member of a record of type T: its name in JSON, its rule, and where it is stored. Make fields with
// [Text], [NullText], [Int], [NullInt], [Time], [Texts] and [NullTexts]. Fields with Null in their name may be null
// or absent; the others are required.
type Field[T any] struct {
	name     string
	nullable bool
	// read puts v, which is not null, into the record.
	read func(s *scratch, v value, record *T) *Fault
	// clear makes the record's field null, as the record may have been used before. It is nil for fields that are not
	// nullable.
	clear func(record *T)
}

// value is the text of a JSON value in its line, checked to be valid JSON.
type value struct {
	raw  jsontext.Value
	text string // the same bytes
}

// Rule says which texts a field may hold.
type Rule struct {
	allowed string // the end of a message, after "allowed: "
	// ok reports whether a text follows the rule. It gets the text as a string and as bytes, so that it converts
	// neither.
	ok func(s string, b []byte) bool
}

// AnyText is the rule of free text: anything but a NUL, which Postgres cannot store.
func AnyText() Rule {
	return Rule{"text without NUL (U+0000)", noNUL}
}

// Identifier is the rule of identifiers, the same as for those in the API's paths.
func Identifier() Rule {
	return Rule{fmt.Sprintf("text of 1 to %d bytes without NUL (U+0000)", wire.MaxIdentifierBytes),
		func(s string, _ []byte) bool { return wire.ValidIdentifier(s) }}
}

// OneOf is the rule of text that is one of values.
func OneOf(values ...string) Rule {
	return Rule{strings.Join(values, ", "), func(s string, _ []byte) bool { return slices.Contains(values, s) }}
}

// JSONText is the rule of text that holds JSON (RFC 8259), nested at most 10,000 deep. An object may repeat a name.
// The text is kept byte for byte.
func JSONText() Rule {
	return Rule{"JSON as text, nested at most 10000 deep", func(_ string, b []byte) bool { return validJSON(b, 0) }}
}

// JSONObjectText is [JSONText] that holds an object.
func JSONObjectText() Rule {
	return Rule{"a JSON object as text, nested at most 10000 deep", func(_ string, b []byte) bool { return validJSON(b, '{') }}
}

// JSONArrayText is [JSONText] that holds an array.
func JSONArrayText() Rule {
	return Rule{"a JSON array as text, nested at most 10000 deep", func(_ string, b []byte) bool { return validJSON(b, '[') }}
}

func noNUL(s string, _ []byte) bool { return strings.IndexByte(s, 0) < 0 }

// validJSON reports whether b is JSON. If first is not 0, b must also begin with it.
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

// Text is a required text under rule.
func Text[T any](name string, rule Rule, at func(*T) *string) Field[T] {
	return Field[T]{name: name, read: func(s *scratch, v value, record *T) *Fault {
		text, fault := s.text(name, v, rule)
		if fault == nil {
			*at(record) = text
		}
		return fault
	}}
}

// NullText is a text under rule. It is nil if the field is null or absent.
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

// Time is a required DateTime in Unix microseconds, read by [wire.ParseTime].
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

// Int is a required integer from least to most.
func Int[T any](name string, least, most int64, at func(*T) *int64) Field[T] {
	return Field[T]{name: name, read: func(_ *scratch, v value, record *T) *Fault {
		n, fault := integer(name, v, least, most)
		if fault == nil {
			*at(record) = n
		}
		return fault
	}}
}

// NullInt is an integer from least to most. It is nil if the field is null or absent.
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

// integer reads a number that is written as an integer. It refuses 1.0 and 1e3, so that no number is rounded (2^53
// and beyond).
func integer(name string, v value, least, most int64) (int64, *Fault) {
	n, err := strconv.ParseInt(v.text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, BadField(name, v.text, fmt.Sprintf("an integer from %d to %d", least, most))
	}
	return n, nil
}

// NullTexts is an array of texts, each under rule. It is nil if the field is null or absent, and empty but not nil
// for an empty array.
func NullTexts[T any](name string, rule Rule, at func(*T) *[]string) Field[T] {
	read := func(s *scratch, v value, record *T) (fault *Fault) {
		*at(record), fault = s.texts(name, v, rule)
		return fault
	}
	return Field[T]{name: name, nullable: true, read: read, clear: func(record *T) { *at(record) = nil }}
}
