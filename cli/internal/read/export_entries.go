package read

import (
	"fmt"

	"github.com/lectern-dev/lectern/cli/internal/columns"
	"github.com/lectern-dev/lectern/cli/internal/export"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

type exportEntries struct {
	shell.APIFlags
	entryFilterFlags
	exportFlags
	flattenFlags
}

type flattenFlags struct {
	Flatten bool   `help:"Add a column for each top-level key of entry_data; csv and parquet only."`
	Columns string `default:"auto" help:"With --flatten, which keys become columns: auto (all), or a FILE that lists them as JSON. Default: ${default}." placeholder:"auto|FILE"`
}

// set returns the columns to add, or nil for none.
func (f flattenFlags) set() (*columns.Set, error) {
	switch {
	case f.Columns == "auto" && f.Flatten:
		return columns.Choice{All: true}.Set(), nil
	case f.Columns == "auto":
		return nil, nil
	case !f.Flatten:
		return nil, shell.Usagef("--columns was given without --flatten: give both")
	}
	choice, err := readColumns(f.Columns, "auto or a file")
	if err != nil {
		return nil, err
	}
	return choice.Set(), nil
}

// Help shows examples.
func (exportEntries) Help() string {
	return `As CSV or Parquet, the columns are entry_id, group_id, project_id, embeddable_id, contact_id, created_at, updated_at, entry_data. In Parquet, times are timestamps in microseconds.

With --flatten, the keys of entry_data follow, with the names that lectern sync --columns gives them, and the type double, boolean or timestamp where all values fit, else text. A listed type (also integer or date) stays, and a value that does not fit is null. A CSV file has numbers in their shortest form, times in UTC, and an empty cell if the key is null or missing. A file for --columns lists keys, with optional names and types:

	[{"key": "email"}, {"key": "age", "name": "age_in_years", "type": "double"}]
` + exportHelp + fmt.Sprintf(convertHelp, "With --flatten, or as Parquet") + `
Examples:

	lectern export entries --env-file .lectern/demo.env --out entries.csv
	lectern export entries --flatten --out entries.parquet
	lectern export entries --flatten --columns columns.json -o csv | head
	lectern export entries --direction ASC --updated-after 2026-09-01 --out september.ndjson
	lectern export entries --contact-id co_1 --out contact.ndjson
	lectern export entries --limit 100 | jq -r .entry_data`
}

// Run exports.
func (e *exportEntries) Run(s *shell.Session) error {
	set, err := e.set()
	if err != nil {
		return err
	}
	return runExportBy(s, e.APIFlags, e.Client, e.exportFlags, export.Options{Query: export.Query{Kind: export.Entries}, Columns: set}, e.query().List(e.Project), "entries")
}

type exportEvents struct {
	shell.APIFlags
	exportFlags
}

// Help shows examples.
func (exportEvents) Help() string {
	return `The events come from the change feed, in the order in which they were stored. They include events whose entry has not come. Each has event_id and url; lectern import events takes the file. As CSV or Parquet, the columns are the fields in the order of the API. In CSV, null is an empty cell; in Parquet, timestamp is a timestamp in microseconds. To follow new events, see lectern changes.
` + exportHelp + fmt.Sprintf(convertHelp, "As Parquet") + `
Examples:

	lectern export events --env-file .lectern/demo.env --out events.csv
	lectern export events --out events.parquet
	lectern export events | jq -r 'select(.event_type == "flowpage.viewed").page_key' | sort | uniq -c`
}

// Run exports.
func (e *exportEvents) Run(s *shell.Session) error {
	list := client.ChangeQuery{Types: []client.ChangeType{client.EventAdded}}.List(e.Project)
	return runExport(s, e.APIFlags, e.exportFlags, export.Query{Kind: export.Events}, list, "events")
}

type exportPageViews struct {
	shell.APIFlags
	pageViewFilterFlags
	exportFlags
}

// Help shows examples.
func (exportPageViews) Help() string {
	return `As NDJSON, one line an entry with its page views. As CSV, one line a page view, so that an entry without any has none: entry_id, group_id, project_id, embeddable_id, contact_id, created_at, updated_at, timestamp, page_id, page_key, page_index, and url with --include-urls. --limit and --page-size count entries.
` + exportHelp + `
Examples:

	lectern export page-views --env-file .lectern/demo.env --out views.csv
	lectern export page-views --include-urls --out views.ndjson`
}

// Run exports.
func (e *exportPageViews) Run(s *shell.Session) error {
	q := export.Query{Kind: export.PageViews, IncludeURLs: e.IncludeURLs}
	return runExport(s, e.APIFlags, e.exportFlags, q, e.query().List(e.Project), "entries with their page views")
}
