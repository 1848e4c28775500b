package columns

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Parse reads a user's list of columns as JSON:
//
//	[{"key": "email"}, {"key": "age", "name": "age_in_years", "type": "double"}]
//
// Parse gives a name to a column without a name: the key if possible. A column without a type is text. An empty or too
// long list, unknown fields and types, invalid names, and repeated keys and names are errors.
func Parse(data []byte) ([]Column, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var listed []Column
	if err := d.Decode(&listed); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its text names a type of Go
			err = fmt.Errorf("it has a JSON %s at byte %d", e.Value, e.Offset)
		}
		return nil, fmt.Errorf(`%w; want a list such as [{"key": "age", "name": "age_in_years", "type": "double"}]`, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the list")
	}
	if len(listed) == 0 || len(listed) > Most {
		return nil, fmt.Errorf("it lists %d columns; allowed: 1 to %d", len(listed), Most)
	}
	s := NewSet(nil, true)
	for _, c := range listed {
		if err := s.declare(c); err != nil {
			return nil, err
		}
	}
	for i, c := range s.columns { // automatic names come after the given ones
		if c.Name == "" {
			s.columns[i].Name = s.nameFor(c.Key)
			s.taken[strings.ToLower(s.columns[i].Name)] = true
		}
	}
	return s.columns, nil
}

func (s *Set) declare(c Column) error {
	switch c.Type {
	case "":
		c.Type = Text
	case Text, Double, Integer, Boolean, Timestamp, Date:
	default:
		return fmt.Errorf("key %q has the type %q; allowed: %s, %s, %s, %s, %s, %s", c.Key, c.Type, Text, Double, Integer, Boolean, Timestamp, Date)
	}
	if _, ok := s.byKey[c.Key]; ok {
		return fmt.Errorf("key %q is listed twice", c.Key)
	}
	if c.Name != "" {
		if len(c.Name) > longestName || !utf8.ValidString(c.Name) || strings.Contains(c.Name, "\x00") {
			return fmt.Errorf("key %q has the name %q; allowed: 1 to %d bytes without NUL", c.Key, c.Name, longestName)
		}
		if s.taken[strings.ToLower(c.Name)] {
			return fmt.Errorf("key %q has the name %q, which another column has; upper and lower case are the same", c.Key, c.Name)
		}
		s.taken[strings.ToLower(c.Name)] = true
	}
	s.byKey[c.Key] = len(s.columns)
	s.columns = append(s.columns, c)
	return nil
}
