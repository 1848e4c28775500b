package csvrow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Tool describes the CSV files to which a survey tool exports answers.
type Tool struct {
	Name string
	// Set has templates for fields, as Options.Set has. Of the templates of one field, the first whose columns are
	// all in the file is used.
	Set []string
	// HeaderRows is the number of header rows, 1 or 2. Units are texts of the second row that are not a part of a
	// column's name.
	HeaderRows int
	Units      []string
	// After is the number of rows after the header that contain no answers. The last of them contains Mark.
	After int
	Mark  string
	// New says that version 0.1.0 did not know the tool.
	New bool
	// TimeFormat and TimeZone are the values of Options.TimeFormat and Options.TimeZone if the user gave none.
	TimeFormat, TimeZone string
	// Places has templates by the places of columns, for an error: an export in another language has other names.
	Places []string
}

// tools are the survey tools that import knows. Where a tool has no column for the contact, the id of the answer also
// identifies the contact.
var tools = []Tool{
	{Name: "typeform", HeaderRows: 1, TimeFormat: "iso", TimeZone: "UTC", Set: []string{
		"entry_id=typeform-{#}", "contact_id=typeform-{#}", "created_at={Start Date (UTC)}", "updated_at={Submit Date (UTC)}", "updated_at={Stage Date (UTC)}"}},
	{Name: "google-forms", HeaderRows: 1, TimeFormat: "iso", Places: []string{"created_at={#1}"}, Set: []string{
		"entry_id=google-forms-{#hash}", "contact_id={Username}", "contact_id={Email Address}", "contact_id=google-forms-{#hash}", "created_at={Timestamp}"}},
	{Name: "tally", New: true, HeaderRows: 1, TimeFormat: "iso", Set: []string{
		"entry_id=tally-{Submission ID}", "contact_id=tally-{Respondent ID}", "created_at={Submitted at}"}},
	// The ids begin at 1 in each form, and the address of all anonymous contacts is "anonymous".
	{Name: "microsoft-forms", New: true, HeaderRows: 1, TimeFormat: "iso", Places: []string{"created_at={#2}", "updated_at={#3}"}, Set: []string{
		"entry_id=microsoft-forms-{#hash}", "contact_id=microsoft-forms-{#hash}", "created_at={Start time}", "updated_at={Completion time}"}},
	// The half of the day is required: a spreadsheet that saved the file may have put the day first.
	{Name: "surveymonkey", HeaderRows: 2, TimeFormat: "%m/%d/%Y %I:%M:%S %p", Units: []string{"Response", "Open-Ended Response"},
		Places: []string{"entry_id=surveymonkey-{#1}", "contact_id=surveymonkey-{#1}", "created_at={#3}", "updated_at={#4}"}, Set: []string{
			"entry_id=surveymonkey-{Respondent ID}", "contact_id=surveymonkey-{Respondent ID}", "created_at={Date Created}", "updated_at={Date Modified}",
			"created_at={Start Date}", "updated_at={End Date}"}},
	{Name: "qualtrics", HeaderRows: 1, After: 2, Mark: "ImportId", TimeFormat: "iso", Set: []string{
		"entry_id=qualtrics-{ResponseId}", "contact_id=qualtrics-{ResponseId}", "created_at={StartDate}", "updated_at={RecordedDate}", "updated_at={EndDate}"}},
	{Name: "jotform", HeaderRows: 1, TimeFormat: "text", Places: []string{"created_at={#1}"}, Set: []string{
		"entry_id=jotform-{Submission ID}", "entry_id=jotform-{#hash}", "contact_id=jotform-{Submission ID}", "contact_id=jotform-{#hash}",
		"created_at={Submission Date}", "updated_at={Last Update Date}"}},
}

// FindTool returns the tool with the given name, or an error. For the name "", FindTool returns a Tool for files of
// any program, with one header row and no templates.
func FindTool(name string) (Tool, error) {
	if name == "" {
		return Tool{HeaderRows: 1}, nil
	}
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, fmt.Errorf("the tool %q is not known", name)
	}
	return tools[i], nil
}

// Check returns an error if rows, which are those before the first answer, are not as the tool writes them. An answer
// would otherwise be lost.
func (t Tool) Check(rows [][]string) error {
	last := rows[len(rows)-1]
	switch {
	case t.HeaderRows > 1 && len(last) > 0 && isNumber(last[0]):
		return fmt.Errorf("the second row of the header begins with %q, as an answer does: %s has a second row of headers there; import the file as it was exported", last[0], t.Name)
	case !slices.ContainsFunc(last, func(cell string) bool { return strings.Contains(cell, t.Mark) }):
		return fmt.Errorf("row %d has no %s, which %s writes there, and may be an answer: import the file as it was exported", len(rows), t.Mark, t.Name)
	}
	return nil
}

// Header returns the names of columns from one or two header rows. Of two rows, a text of the first also applies to the
// columns after it without such a text. A text of the second follows after a colon, unless it is one of Units. With a
// tool, a name that occurs again gets a number.
func (t Tool) Header(rows [][]string) []string {
	header := slices.Clone(rows[0])
	if len(rows) > 1 {
		above := ""
		for i := range header {
			if header[i] != "" {
				above = header[i]
			}
			header[i] = above
			if below := rows[1][min(i, len(rows[1])-1)]; i < len(rows[1]) && below != "" && !slices.Contains(t.Units, below) {
				header[i] = strings.TrimPrefix(above+": "+below, ": ")
			}
		}
	}
	if t.Name == "" {
		return header
	}
	seen := map[string]bool{}
	for i, name := range header {
		for n := 2; seen[header[i]]; n++ {
			header[i] = fmt.Sprintf("%s (%d)", name, n)
		}
		seen[header[i]] = true
	}
	return header
}

// Apply returns o with the tool's templates and its format of times, where o has none. header has the names of the
// columns: a template with a missing column is not used.
func (t Tool) Apply(o Options, header []string) Options {
	o.Set = slices.Clone(o.Set)
	given := map[string]bool{}
	for _, set := range o.Set {
		field, _, _ := strings.Cut(set, "=")
		given[field] = true
	}
	if given["entry_id"] || t.New {
		o.Former = nil // the user gave the ids, or no earlier version made any
	}
	for _, set := range t.Set {
		field, template, _ := strings.Cut(set, "=")
		if _, err := parseTemplate(columns{names: header, skipped: make([]bool, len(header))}, template); err == nil && !given[field] {
			o.Set, given[field] = append(o.Set, set), true
		}
	}
	for _, place := range t.Places {
		if field, template, _ := strings.Cut(place, "="); !given[field] {
			for i, name := range header {
				if name != "" && !strings.ContainsAny(name, "{}'") {
					template = strings.Replace(template, fmt.Sprintf("{#%d}", i+1), "{"+name+"}", 1)
				}
			}
			o.Hints = append(o.Hints, fmt.Sprintf("--set %s='%s'", field, template))
		}
	}
	if o.TimeFormat == "" && len(o.Hints) > 0 {
		o.Hints = append(o.Hints, fmt.Sprintf("(and --time-format dmy, mdy or another, if its times are not as in %q)", t.TimeFormat))
	}
	o.TimeFormat, o.TimeZone = cmp.Or(o.TimeFormat, t.TimeFormat), cmp.Or(o.TimeZone, t.TimeZone)
	return o
}
