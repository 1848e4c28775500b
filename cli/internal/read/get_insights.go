package read

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// insightFlags are the flags of a command that prints an insight, such as a count or a funnel. Most of them select the
// entries of the insight.
type insightFlags struct {
	shell.APIFlags
	CreatedAfter  shell.Moment `help:"Only entries created after this time: RFC 3339, or a date." placeholder:"TIME"`
	CreatedBefore shell.Moment `help:"Only entries created before this time." placeholder:"TIME"`
	UpdatedAfter  shell.Moment `help:"Only entries updated after this time." placeholder:"TIME"`
	UpdatedBefore shell.Moment `help:"Only entries updated before this time." placeholder:"TIME"`
	VersionNumber *int64       `help:"Only entries with a page view of this version. --completed and --furthest-page are then about its page views." placeholder:"N"`
	Completed     completed    `enum:"true,false," default:"" help:"Only entries with a page view of their last page (true), or only the others (false)." placeholder:"true|false"`
	FurthestPage  *int64       `help:"Only entries whose furthest page has this index, of one embeddable." placeholder:"N"`
	Answer        string       `help:"Only entries with this answer: JSON, such as '\"Yes\"' or 100." placeholder:"JSON"`
	AnswerKey     string       `help:"The key of entry_data that has the answer." placeholder:"KEY"`
	shell.OutputFlags
}

func (f insightFlags) filter(embeddableID string) client.InsightFilter {
	return client.InsightFilter{
		EmbeddableID: embeddableID,
		CreatedAfter: f.CreatedAfter.Time, CreatedBefore: f.CreatedBefore.Time,
		UpdatedAfter: f.UpdatedAfter.Time, UpdatedBefore: f.UpdatedBefore.Time,
		Version: f.VersionNumber, Completed: f.Completed.is(), FurthestPage: f.FurthestPage, Answer: f.Answer, AnswerKey: f.AnswerKey,
	}
}

// print reads an insight from the API and prints its JSON. In the format table, each list in nested becomes a separate
// table after the other fields.
func (f insightFlags) print(s *shell.Session, of client.List, nested ...string) error {
	reader, err := f.Client(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, _, err := reader.JSON(s.Context, of, "", 0)
	if err != nil {
		return err
	}
	if f.Format(s) != "table" || len(nested) == 0 {
		return f.Print(s, body)
	}
	if err := f.Print(s, without(body, nested)); err != nil {
		return err
	}
	for _, path := range nested {
		var rows []string
		for _, record := range shell.Records(body) {
			for _, row := range record.Get(path).Array() {
				if row.IsObject() {
					rows = append(rows, string(with(row, "version_number", record)))
				}
			}
		}
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintln(s.Out)
		if err := f.Print(s, without([]byte("["+strings.Join(rows, ",")+"]"), nested)); err != nil {
			return err
		}
	}
	return nil
}

// with returns the JSON of row with the named field of record in front. If record has no such field, with returns row
// unchanged.
func with(row gjson.Result, name string, record gjson.Result) []byte {
	field := record.Get(name)
	if !field.Exists() {
		return []byte(row.Raw)
	}
	return []byte(fmt.Sprintf(`{%q:%s,%s`, name, field.Raw, strings.TrimPrefix(row.Raw, "{")))
}

// without returns body without some fields of its records. Each of paths names a field, by the part after the last
// dot.
func without(body []byte, paths []string) []byte {
	drop := map[string]bool{}
	for _, path := range paths {
		drop[path[strings.LastIndex(path, ".")+1:]] = true
	}
	var lines [][]byte
	for _, record := range shell.Records(body) {
		var fields []string
		record.ForEach(func(name, value gjson.Result) bool {
			if !drop[name.String()] {
				fields = append(fields, name.Raw+":"+value.Raw)
			}
			return true
		})
		lines = append(lines, []byte("{"+strings.Join(fields, ",")+"}"))
	}
	if !gjson.ParseBytes(body).IsArray() {
		return lines[0]
	}
	return append(append([]byte("["), bytes.Join(lines, []byte(","))...), ']')
}

type getCounts struct {
	insightFlags
	EmbeddableID string `name:"embeddable-id" help:"Only entries of this embeddable." placeholder:"ID"`
	Interval     string `enum:"hour,day,week,month,all," default:"" help:"hour, day, which is the default, week, month or all." placeholder:"INTERVAL"`
	By           string `enum:"none,embeddable,version," default:"" help:"Split by embeddable or version." placeholder:"WHAT"`
	Timezone     string `help:"Where days begin: an IANA name. Default: UTC." placeholder:"ZONE"`
	ContactID    string `name:"contact-id" help:"Only entries of this contact." placeholder:"ID"`
	GroupID      string `name:"group-id" help:"Only entries of this group." placeholder:"ID"`
	Search       string `help:"Only entries in which each word of this text is in an answer or an id, in any letter case." placeholder:"TEXT"`
	AtMost       int    `help:"With --interval all: stop counting at this number of entries." placeholder:"N"`
}

// Help returns the text of lectern get counts --help: the counted entries, and examples.
func (getCounts) Help() string {
	return `How many entries were created, how many have a page view, and how many one of the last page.

Examples:

	lectern get counts --env-file .lectern/demo.env --interval month
	lectern get counts --by version --interval all --timezone Europe/Berlin`
}

// Run prints the number of created entries in each interval.
func (g *getCounts) Run(s *shell.Session) error {
	q := client.CountQuery{InsightFilter: g.filter(g.EmbeddableID), Interval: g.Interval, By: g.By, Timezone: g.Timezone, ContactID: g.ContactID, GroupID: g.GroupID, Search: g.Search, AtMost: g.AtMost}
	return g.print(s, q.List(g.Project))
}

type getOverview struct {
	insightFlags
	EmbeddableID string `name:"embeddable-id" help:"Only entries of this embeddable." placeholder:"ID"`
	Interval     string `enum:"hour,day,week,month,all," default:"" help:"hour, day, which is the default, week, month or all." placeholder:"INTERVAL"`
	Timezone     string `help:"Where days begin: an IANA name. Default: UTC." placeholder:"ZONE"`
}

// Help returns the text of lectern get overview --help: the parts of an overview, and examples.
func (getOverview) Help() string {
	return `How many entries there were in each interval and of each embeddable, also in the period before, and where most were lost.

Examples:

	lectern get overview --env-file .lectern/demo.env --interval month
	lectern get overview --created-after 2026-09-01 | jq '.embeddables[] | {embeddable_id, largest_drop}'`
}

// Run prints the overview of the selected entries. In the format table, its intervals and embeddables are separate
// tables.
func (g *getOverview) Run(s *shell.Session) error {
	q := client.OverviewQuery{InsightFilter: g.filter(g.EmbeddableID), Interval: g.Interval, Timezone: g.Timezone}
	return g.print(s, q.List(g.Project), "intervals", "embeddables")
}

type getFunnel struct {
	insightFlags
	By           string `enum:"none,version," default:"" help:"version: a funnel for each version." placeholder:"WHAT"`
	EmbeddableID string `arg:"" help:"The embeddable's id."`
}

// Help returns the text of lectern get funnel --help, with examples.
func (getFunnel) Help() string {
	return `How far the entries of an embeddable came, page by page.

Examples:

	lectern get funnel emb_solar7kq2 --env-file .lectern/demo.env
	lectern get funnel emb_solar7kq2 --by version --created-after 2026-09-01`
}

// Run prints how many entries of the embeddable reached each page. With --by version, Run prints a funnel for each
// version.
func (g *getFunnel) Run(s *shell.Session) error {
	q := client.FunnelQuery{InsightFilter: g.filter(g.EmbeddableID), ByVersion: g.By == "version"}
	return g.print(s, q.List(g.Project), "pages")
}

type getAnswers struct {
	insightFlags
	Values       int    `help:"Without KEY: how many values the first 100 keys have, at most 50." placeholder:"N"`
	EmbeddableID string `arg:"" help:"The embeddable's id."`
	Key          string `arg:"" optional:"" help:"A top-level key of entry_data. Without one, the keys that there are."`
}

// Help returns the text of lectern get answers --help, with examples.
func (getAnswers) Help() string {
	return `The most frequent values of one answer, and the distribution of its numbers.

Examples:

	lectern get answers emb_solar7kq2 --env-file .lectern/demo.env
	lectern get answers emb_solar7kq2 country | jq '.values[:3]'
	lectern get answers emb_solar7kq2 --values 5 | jq '.keys[] | {key, values}'`
}

// Run prints the values of one key of entry_data, or the keys of the embeddable's entries if no key was given.
func (g *getAnswers) Run(s *shell.Session) error {
	q := client.AnswerQuery{InsightFilter: g.filter(g.EmbeddableID), Key: g.Key, Values: g.Values}
	return g.print(s, q.List(g.Project), "keys", "values", "numbers", "numbers.bins")
}
