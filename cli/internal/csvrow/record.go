package csvrow

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lectern-dev/lectern/shared/wire"
)

// Append appends the record of a row to dst: one line of JSON without a line break. number is the number of the row,
// from 1. The error is the reason why the row has no valid record.
func (m *Mapping) Append(dst []byte, cells []string, number int) ([]byte, error) {
	if len(cells) != m.columns {
		return nil, fmt.Errorf("the row has %d cells and the header %d", len(cells), m.columns)
	}
	m.data = m.appendRest(m.data[:0], cells)
	hash, err := "", error(nil)
	if m.hashed {
		if hash, err = m.hash(cells, number); err != nil {
			return nil, err
		}
	}
	dst = append(dst, '{')
	for i := range m.fields {
		s := &m.fields[i]
		if s.Nullable && len(s.parts) == 0 {
			continue // a service of the version before may not know the field
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), s.Name...), `":`...)
		if dst, err = m.appendValue(dst, s, cells, number, hash); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// appendValue appends the value of a field to dst, in JSON. An empty cell is an error unless the field is nullable or has
// another source.
func (m *Mapping) appendValue(dst []byte, s *source, cells []string, number int, hash string) ([]byte, error) {
	if s.rest {
		return wire.AppendText(dst, m.data), nil
	}
	parts := s.parts
	if s.instead != nil && slices.ContainsFunc(parts, func(p part) bool { return p.column >= 0 && cells[p.column] == "" }) {
		parts = s.instead
	}
	var value string
	constant := true
	for _, p := range parts {
		switch p.column {
		case noColumn:
			value += p.text
			continue
		case rowNumber:
			value += strconv.Itoa(number)
			continue
		case rowHash:
			value += hash
			continue
		}
		constant = false
		cell := cells[p.column]
		if s.Name == "entry_id" && cut.MatchString(cell) {
			return nil, fmt.Errorf("the cell of column %s is %q, an id of which a spreadsheet has dropped digits: import the file as it was exported", p.name, cell)
		}
		if cell == "" && !s.Nullable {
			return nil, fmt.Errorf("the cell of column %s, which gives %s, is empty", p.name, s.Name)
		}
		value += cell
	}
	switch {
	case value == "" && s.Nullable:
		return append(dst, "null"...), nil
	case s.Time && m.times != nil && !constant:
		text, err := m.times.read(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		value = text
	case s.Integer:
		if !isNumber(value) || strings.Contains(value, ".") {
			return nil, fmt.Errorf("%s is %q: want a whole number", s.Name, value)
		}
		return append(dst, value...), nil
	}
	return wire.AppendText(dst, []byte(value)), nil
}

// appendRest appends one JSON object to dst: the columns of the field Shape.Rest, in the header's order. An empty cell
// is null. Numbers, true and false are JSON values, unless Options.Text names their column. appendRest counts the cells.
func (m *Mapping) appendRest(dst []byte, cells []string) []byte {
	dst = append(dst, '{')
	for i := range m.rest {
		c := &m.rest[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, c.name...)
		dst = append(dst, ':')
		cell := cells[c.index]
		if cell == "" {
			dst = append(dst, "null"...)
			continue
		}
		number, ok := m.number(cell)
		switch {
		case c.text:
			dst = wire.AppendText(dst, []byte(cell))
		case ok:
			c.numbers++
			if dot := strings.IndexByte(cell, '.'); dot >= 0 {
				c.dots++
				if len(cell)-dot == len(".000") && commaForm.MatchString(cell) {
					c.thousands++
				}
			}
			dst = append(dst, number...)
		case cell == "true" || cell == "false":
			dst = append(dst, cell...)
		default:
			if c.texts++; c.texts == 1 {
				c.first = cell
			}
			dst = wire.AppendText(dst, []byte(cell))
		}
	}
	return append(dst, '}')
}

// commaForm matches a number with a decimal comma, without dots or with dots between all thousands.
var commaForm = regexp.MustCompile(`^-?([0-9]+|[1-9][0-9]{0,2}(\.[0-9]{3})+)(,[0-9]+)?$`)

// number returns a cell as a number of JSON; ok is false if the cell is no number.
func (m *Mapping) number(cell string) (number string, ok bool) {
	if m.comma {
		if !commaForm.MatchString(cell) {
			return "", false
		}
		cell = strings.Replace(strings.ReplaceAll(cell, ".", ""), ",", ".", 1)
	}
	return cell, isNumber(cell)
}

// cut matches a number as spreadsheets write one with many digits, of which they keep 15 at most.
var cut = regexp.MustCompile(`^([0-9]([.,][0-9]+)?E\+[0-9]+|[1-9][0-9]{14}0{4,})$`)

// numberForm matches an integer or a decimal in the syntax of JSON (RFC 8259, section 6) without an exponent. In a
// table, "1e5" may be a code rather than a number, and "007" is a code.
var numberForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

func isNumber(s string) bool {
	return s != "" && s[0] <= '9' && numberForm.MatchString(s)
}
