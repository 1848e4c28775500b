package read

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// insightFlags select the entries of an insight.
type insightFlags struct {
	CreatedAfter  shell.Moment `help:"Only entries created after this time: RFC 3339, or a date." placeholder:"TIME"`
	CreatedBefore shell.Moment `help:"Only entries created before this time." placeholder:"TIME"`
	UpdatedAfter  shell.Moment `help:"Only entries updated after this time." placeholder:"TIME"`
	UpdatedBefore shell.Moment `help:"Only entries updated before this time." placeholder:"TIME"`
	VersionNumber *int64       `help:"Only entries with a page view of this version." placeholder:"N"`
}

func (f insightFlags) filter(embeddableID string) client.InsightFilter {
	return client.InsightFilter{
		EmbeddableID: embeddableID,
		CreatedAfter: f.CreatedAfter.Time, CreatedBefore: f.CreatedBefore.Time,
		UpdatedAfter: f.UpdatedAfter.Time, UpdatedBefore: f.UpdatedBefore.Time,
		Version: f.VersionNumber,
	}
}

// print prints an insight. On a terminal, the lists in nested become tables of their own below the other fields.
func (f insightFlags) print(s *shell.Session, api shell.APIFlags, out shell.OutputFlags, of client.List, nested ...string) error {
	reader, err := api.Client(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, _, err := reader.JSON(s.Context, of, "", 0)
	if err != nil {
		return err
	}
	if out.Format(s) != "table" || len(nested) == 0 {
		return out.Print(s, body)
	}
	if err := out.Print(s, without(body, nested)); err != nil {
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
		if err := out.Print(s, without([]byte("["+strings.Join(rows, ",")+"]"), nested)); err != nil {
			return err
		}
	}
	return nil
}

// with returns the JSON of row with a field of record in front, if it has one.
func with(row gjson.Result, name string, record gjson.Result) []byte {
	field := record.Get(name)
	if !field.Exists() {
		return []byte(row.Raw)
	}
	return []byte(fmt.Sprintf(`{%q:%s,%s`, name, field.Raw, strings.TrimPrefix(row.Raw, "{")))
}

// without returns body without some fields of its records. A name may be the last part of a path.
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
	shell.APIFlags
	insightFlags
	shell.OutputFlags
	EmbeddableID string `name:"embeddable-id" help:"Only entries of this embeddable." placeholder:"ID"`
	Interval     string `enum:"day,week,month,all," default:"" help:"day, which is the default, week, month or all." placeholder:"INTERVAL"`
	By           string `enum:"none,embeddable,version," default:"" help:"Split by embeddable or version." placeholder:"WHAT"`
	Timezone     string `help:"Where days begin: an IANA name. Default: UTC." placeholder:"ZONE"`
}

// Help shows examples.
func (getCounts) Help() string {
	return `How many entries were created, how many have a page view, and how many one of the last page.

Examples:

	lectern get counts --env-file .lectern/demo.env --interval month
	lectern get counts --by version --interval all --timezone Europe/Berlin`
}

// Run prints the counts.
func (g *getCounts) Run(s *shell.Session) error {
	q := client.CountQuery{InsightFilter: g.filter(g.EmbeddableID), Interval: g.Interval, By: g.By, Timezone: g.Timezone}
	return g.insightFlags.print(s, g.APIFlags, g.OutputFlags, q.List(g.Project))
}

type getFunnel struct {
	shell.APIFlags
	insightFlags
	shell.OutputFlags
	By           string `enum:"none,version," default:"" help:"version: a funnel for each version." placeholder:"WHAT"`
	EmbeddableID string `arg:"" help:"The embeddable's id."`
}

// Help shows examples.
func (getFunnel) Help() string {
	return `How far the entries of an embeddable came, page by page.

Examples:

	lectern get funnel emb_solar7kq2 --env-file .lectern/demo.env
	lectern get funnel emb_solar7kq2 --by version --created-after 2026-09-01`
}

// Run prints the funnels.
func (g *getFunnel) Run(s *shell.Session) error {
	q := client.FunnelQuery{InsightFilter: g.filter(g.EmbeddableID), ByVersion: g.By == "version"}
	return g.insightFlags.print(s, g.APIFlags, g.OutputFlags, q.List(g.Project), "pages")
}

type getAnswers struct {
	shell.APIFlags
	insightFlags
	shell.OutputFlags
	EmbeddableID string `arg:"" help:"The embeddable's id."`
	Key          string `arg:"" optional:"" help:"A top-level key of entry_data. Without one, the keys that there are."`
}

// Help shows examples.
func (getAnswers) Help() string {
	return `The most frequent values of one answer, and the distribution of its numbers.

Examples:

	lectern get answers emb_solar7kq2 --env-file .lectern/demo.env
	lectern get answers emb_solar7kq2 country | jq '.values[:3]'`
}

// Run prints the keys or the values.
func (g *getAnswers) Run(s *shell.Session) error {
	q := client.AnswerQuery{InsightFilter: g.filter(g.EmbeddableID), Key: g.Key}
	return g.insightFlags.print(s, g.APIFlags, g.OutputFlags, q.List(g.Project), "keys", "values", "numbers", "numbers.bins")
}
