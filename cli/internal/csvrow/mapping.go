package csvrow

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lectern-dev/lectern/shared/wire"
)

// Options define how the columns of a file become the fields of a record. Users name a column by its header, or the
// third column by "#3".
type Options struct {
	// Set defines fields by FIELD=TEMPLATE. In the template, {COLUMN} means the row's cell, {#row} the row's number,
	// {#hash} a hash of the embeddable and the row, and {{ and }} mean braces. Columns that a template names are not part
	// of the field Shape.Rest, unless Keep lists them.
	Set []string
	// Keep lists columns that stay in the field Shape.Rest although a template names them.
	Keep []string
	// Skip lists columns to drop. A header drops all columns with that header, and "" drops all columns without a
	// header.
	Skip []string
	// Text lists columns whose values in the field Shape.Rest are always strings.
	Text []string
	// Comma makes numbers in the field Shape.Rest have a decimal comma, as 1.234,50 has. A dot then separates thousands.
	Comma bool `json:",omitempty"`
	// Fallback has the values of fields that neither Set nor a column of the same name defines, by the name of the
	// field.
	Fallback map[string]string
	// TimeFormat is the format of times that come from columns: a name, or a pattern with the directives of strptime.
	// TimeZone is the zone of times that contain no offset. If both are empty, times are sent unchanged.
	TimeFormat, TimeZone string
	// Hints are the flags that an export of the tool in another language needs, for the error about a missing field.
	Hints []string `json:",omitempty"`
	// Former, if set, returns the stored entries whose ids are prefix and a number, of an embeddable or, for "", of all.
	Former func(project, embeddable, prefix string) (*Former, error) `json:"-"`
}

// Mapping turns the rows of one CSV file into records of JSON. [NewMapping] makes a Mapping for the header of the
// file.
type Mapping struct {
	fields  []source
	rest    []restColumn
	columns int
	times   *times
	comma   bool
	data    []byte // the value of the field Shape.Rest in the current row

	hashed bool // a template has {#hash}
	former *Former
	kept   map[string]int   // rows that are in former, by formerKey
	seen   map[[12]byte]int // rows, by hash
}

// source defines the value of one field of a record: a template, or, if rest is set, an object of the columns in
// [Mapping].rest.
type source struct {
	Field
	parts []part
	// instead is the template that replaces parts if a cell of parts is empty. If instead is nil, such a row is
	// rejected unless the field is nullable.
	instead []part
	rest    bool
}

// part is a piece of a template: literal text, a column, or the row's number.
type part struct {
	text   string
	column int // index, noColumn, rowNumber or rowHash
	name   string
}

// The values of part.column for a part that is not a column: literal text, the row's number, and its hash.
const (
	noColumn  = -1
	rowNumber = -2
	rowHash   = -3
)

type restColumn struct {
	index  int
	name   string // as a JSON string
	text   bool
	counts // of the cells so far
}

// counts has how many cells of a column are numbers, texts, and numbers with a dot. thousands counts the cells that are
// thousands if a comma is the decimal sign, as 1.234 is. first is the first text.
type counts struct {
	numbers, texts, dots, thousands int
	first                           string
}

// Notes returns a sentence for each column of the field Shape.Rest that has numbers and texts so far, unless the user made
// the column texts. A column that may have thousands, in a file with the given delimiter, has a sentence too. So have times
// that were read as UTC because the file and the user named no zone.
func (m *Mapping) Notes(delimiter byte) (list []string) {
	if m.times != nil && m.times.assumed {
		list = append(list, "times that name no zone were read as UTC: --time-zone says otherwise.")
	}
	for _, c := range m.rest {
		switch {
		case c.numbers > 0 && c.texts > 0:
			list = append(list, fmt.Sprintf("the column %s has numbers and texts, %d and %d cells, such as %q: see --decimal and --text.", c.name, c.numbers, c.texts, c.first))
		case delimiter == ';' && !m.comma && c.thousands > 0 && c.thousands == c.dots:
			list = append(list, fmt.Sprintf("the column %s has numbers such as 1.234 in %d cells, read with a decimal dot: --decimal , reads thousands.", c.name, c.thousands))
		}
	}
	return list
}

// NewMapping maps the columns of a file's header to the fields of shape. The error lists all columns without a field,
// and all fields without a value. A fault such as a wrong time format is reported alone.
func NewMapping(shape Shape, header []string, o Options) (*Mapping, error) {
	m := &Mapping{columns: len(header), comma: o.Comma, kept: map[string]int{}, seen: map[[12]byte]int{}}
	var err error
	if m.times, err = newTimes(o.TimeFormat, o.TimeZone); err != nil {
		return nil, err
	}
	h := columns{names: header, skipped: make([]bool, len(header))}
	if h.skipped, err = h.set(o.Skip, "--skip", true); err != nil {
		return nil, err
	}
	templates, err := parseSets(shape, h, o.Set)
	if err != nil {
		return nil, err
	}
	taken := make([]bool, len(header)) // the column is not part of the rest
	for _, parts := range templates {
		for _, p := range parts {
			if p.column >= 0 {
				taken[p.column] = true
			}
			m.hashed = m.hashed || p.column == rowHash
		}
	}
	for _, f := range shape.Fields {
		if !slices.Contains(header, f.Name) || templates[f.Name] != nil {
			continue
		}
		if i, err := h.index(f.Name); err != nil {
			return nil, err
		} else if !h.skipped[i] {
			templates[f.Name] = []part{{column: i, name: f.Name}}
			taken[i] = true
		}
	}
	kept, err := h.set(o.Keep, "--keep", false)
	if err != nil {
		return nil, err
	}
	texts, err := h.set(o.Text, "--text", false)
	if err != nil {
		return nil, err
	}
	var faults []error
	first := map[string]int{} // column of the rest by its name
	restGiven := templates[shape.Rest] != nil
	for i, name := range header {
		switch {
		case h.skipped[i], taken[i] && !kept[i]:
		case shape.Rest == "" || restGiven:
			faults = append(faults, fmt.Errorf("column %s is no field of %s: leave it out with --skip '%s'", h.called(i), shape.Resource, h.named(i)))
		case name == "":
			faults = append(faults, fmt.Errorf("column %d has no name: use it as {#%d} in --set, or leave it out with --skip '#%d'", i+1, i+1, i+1))
		default:
			if at, twice := first[name]; twice {
				faults = append(faults, h.twice(at, i))
			}
			first[name] = i
			m.rest = append(m.rest, restColumn{i, string(wire.AppendText(nil, []byte(name))), texts[i], counts{}})
		}
	}
	for _, f := range shape.Fields {
		s := source{Field: f, parts: templates[f.Name], instead: templates[f.Default]}
		if s.parts == nil && f.Name != shape.Rest {
			if text, ok := o.Fallback[f.Name]; ok {
				s.parts = []part{{text: text, column: noColumn}}
			} else {
				s.parts = templates[f.Default]
			}
		}
		switch {
		case s.parts != nil, f.Nullable:
		case f.Name == shape.Rest:
			s.rest = true
		case f.Default != "": // the loop reports the default field itself if that is missing
		default:
			faults = append(faults, fmt.Errorf("nothing gives %s: add --set %s=VALUE, or --set %s='{COLUMN}'", f.Name, f.Name, f.Name))
		}
		m.fields = append(m.fields, s)
	}
	if len(faults) > 0 && len(o.Hints) > 0 {
		faults = append(faults, fmt.Errorf("an export in another language needs %s", strings.Join(o.Hints, " ")))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if id := templates["entry_id"]; o.Former != nil && len(id) == 2 && id[1].column == rowHash {
		m.former, err = o.Former(m.constant("project_id"), m.constant("embeddable_id"), id[0].text)
	}
	return m, err
}

// columns is the header of a file. skipped marks the columns that --skip drops.
type columns struct {
	names   []string
	skipped []bool
}

func (h columns) twice(a, b int) error {
	return fmt.Errorf("the header names %q twice, in columns %d and %d: leave one out with --skip '#%d', or use it as {#%d} in --set", h.names[a], a+1, b+1, b+1, b+1)
}

// index returns the index of the column with the given header, or of the Nth column for "#N". If several columns have
// the header, all but one must be skipped.
func (h columns) index(name string) (int, error) {
	found := -1
	for i, header := range h.names {
		switch {
		case header != name || name == "":
		case found < 0 || h.skipped[found]:
			found = i
		case !h.skipped[i]:
			return 0, h.twice(found, i)
		}
	}
	if found >= 0 {
		return found, nil
	}
	if digits, ok := strings.CutPrefix(name, "#"); ok {
		if n, err := strconv.Atoi(digits); err == nil && n >= 1 && n <= len(h.names) {
			return n - 1, nil
		}
	}
	return 0, fmt.Errorf("there is no column %q; the file has %s", name, h.list())
}

func (h columns) list() string {
	names := make([]string, len(h.names))
	for i := range h.names {
		names[i] = h.called(i)
	}
	return strings.Join(names, ", ")
}

// called returns the name of column i for messages: its quoted header, or its number if the header is empty.
func (h columns) called(i int) string {
	if h.names[i] == "" {
		return fmt.Sprintf("#%d (no name)", i+1)
	}
	return strconv.Quote(h.names[i])
}

// named returns the name of column i that flags accept: its header, or "#N" if the header is empty.
func (h columns) named(i int) string {
	if h.names[i] == "" {
		return fmt.Sprintf("#%d", i+1)
	}
	return h.names[i]
}

// set returns a mark for each column that a flag names. If all is set, a name marks all columns with that header. If
// all is not set, the name must belong to one column.
func (h columns) set(names []string, flag string, all bool) ([]bool, error) {
	marks := make([]bool, len(h.names))
	for _, name := range names {
		found := all && slices.Contains(h.names, name)
		for i, header := range h.names {
			marks[i] = marks[i] || found && header == name
		}
		if found {
			continue
		}
		i, err := h.index(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		marks[i] = true
	}
	return marks, nil
}

func parseSets(shape Shape, h columns, sets []string) (map[string][]part, error) {
	templates := map[string][]part{}
	for _, set := range sets {
		name, template, ok := strings.Cut(set, "=")
		if !ok {
			return nil, fmt.Errorf("--set %s: want FIELD=VALUE", set)
		}
		if !slices.ContainsFunc(shape.Fields, func(f Field) bool { return f.Name == name }) {
			return nil, fmt.Errorf("--set %s: %s have no field %q; they have %s", set, shape.Resource, name, shape.names())
		}
		if templates[name] != nil {
			return nil, fmt.Errorf("--set %s: %s was set before", set, name)
		}
		parts, err := parseTemplate(h, template)
		if err != nil {
			return nil, fmt.Errorf("--set %s: %w", set, err)
		}
		templates[name] = parts
	}
	return templates, nil
}

func (s Shape) names() string {
	names := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

// pieces matches one piece of a template: a doubled brace, a column in braces, a single brace, or text.
var pieces = regexp.MustCompile(`(?s)\{\{|\}\}|\{[^}]*\}|[{}]|[^{}]+`)

func parseTemplate(h columns, template string) ([]part, error) {
	parts := []part{}
	for _, piece := range pieces.FindAllString(template, -1) {
		name := strings.Trim(piece, "{}")
		switch {
		case piece == "{":
			return nil, errors.New("a { without its }; write {{ for a brace")
		case piece == "}":
			return nil, errors.New("a } without its {; write }} for a brace")
		case piece == "{{", piece == "}}":
			parts = append(parts, part{text: piece[:1], column: noColumn})
		case piece[0] != '{':
			parts = append(parts, part{text: piece, column: noColumn})
		case name == "#row" && !slices.Contains(h.names, name):
			parts = append(parts, part{column: rowNumber})
		case name == "#hash" && !slices.Contains(h.names, name):
			parts = append(parts, part{column: rowHash})
		default:
			index, err := h.index(name)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part{column: index, name: h.called(index)})
		}
	}
	return parts, nil
}
