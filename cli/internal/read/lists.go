package read

import (
	"fmt"
	"io"

	"github.com/lectern-dev/lectern/cli/internal/export"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// list is one list of the API. lectern get prints a page of the list, and lectern export writes the whole list. An
// implementation is a struct of the flags that select records.
type list interface {
	// of returns the list of the project with this id, with the filters of the flags.
	of(project string) client.List
	// exported returns the part of an export's query that depends on the list: its kind, and options of the kind.
	exported() export.Query
	// about returns the texts about the list for users: messages and help.
	about() about
}

// about describes a list to users. If get or export is empty, the command group lectern get or lectern export does
// not have the list.
type about struct {
	// records is the noun for the list's records in messages, such as "entries".
	records string
	// keyless reports whether the API may answer the list to requests without a key.
	keyless bool
	// get and export are the help of the list's commands in lectern get and in lectern export.
	get, export string
}

type entryList struct{ entryFilterFlags }

func (l entryList) of(project string) client.List { return l.query().List(project) }
func (entryList) exported() export.Query          { return export.Query{Kind: export.Entries} }

func (entryList) about() about {
	return about{records: "entries", get: `The newest entries come first. To write whole lists to a file, see lectern export.

Examples:

	lectern get entries --env-file .lectern/demo.env
	lectern get entries --limit 3 --sort created_at --direction ASC
	lectern get entries --updated-after 2026-09-01 --limit 100 | jq .entry_id`,
		export: `As CSV or Parquet, the columns are entry_id, group_id, project_id, embeddable_id, contact_id, created_at, updated_at, entry_data. In Parquet, times are timestamps in microseconds.

With --flatten, the keys of entry_data follow, with the names that lectern sync --columns gives them, and the type double, boolean or timestamp where all values fit, else text. A listed type (also integer or date) stays, and a value that does not fit is null. A CSV file has numbers in their shortest form, times in UTC, and an empty cell if the key is null or missing. A file for --columns lists keys, with optional names and types:

	[{"key": "email"}, {"key": "age", "name": "age_in_years", "type": "double"}]
` + exportHelp + fmt.Sprintf(convertHelp, "With --flatten, or as Parquet") + `
Examples:

	lectern export entries --env-file .lectern/demo.env --out entries.csv
	lectern export entries --flatten --out entries.parquet
	lectern export entries --flatten --columns columns.json -o csv | head
	lectern export entries --direction ASC --updated-after 2026-09-01 --out september.ndjson
	lectern export entries --contact-id co_1 --out contact.ndjson
	lectern export entries --limit 100 | jq -r .entry_data`}
}

// entryEventList is the list of the events of one entry, for lectern get. lectern export has [eventList] instead.
type entryEventList struct {
	Direction string `enum:"ASC,DESC,asc,desc," default:"" help:"ASC is oldest first, DESC newest first, which is the default." placeholder:"ASC|DESC"`
	EntryID   string `arg:"" help:"The entry's id."`
}

func (l entryEventList) of(project string) client.List {
	return client.EventQuery{Direction: filterFlags{Direction: l.Direction}.direction()}.List(project, l.EntryID)
}
func (entryEventList) exported() export.Query { return export.Query{Kind: export.Events} }

func (entryEventList) about() about {
	return about{records: "events", get: `Examples:

	lectern get events ent_00001gzn --env-file .lectern/demo.env
	lectern get events ent_00001gzn --direction ASC --limit 100`}
}

// eventList is the list of the events of all entries, which is a part of the change feed.
type eventList struct{}

func (eventList) of(project string) client.List {
	return client.ChangeQuery{Types: []client.ChangeType{client.EventAdded}}.List(project)
}
func (eventList) exported() export.Query { return export.Query{Kind: export.Events} }

func (eventList) about() about {
	return about{records: "events", export: `The events come from the change feed, in the order in which they were stored. They include events whose entry has not come. Each has event_id and url; lectern import events takes the file. As CSV or Parquet, the columns are the fields in the order of the API. In CSV, null is an empty cell; in Parquet, timestamp is a timestamp in microseconds. To follow new events, see lectern changes.
` + exportHelp + fmt.Sprintf(convertHelp, "As Parquet") + `
Examples:

	lectern export events --env-file .lectern/demo.env --out events.csv
	lectern export events --out events.parquet
	lectern export events | jq -r 'select(.event_type == "flowpage.viewed").page_key' | sort | uniq -c`}
}

type pageViewList struct{ pageViewFilterFlags }

func (l pageViewList) of(project string) client.List { return l.query().List(project) }
func (l pageViewList) exported() export.Query {
	return export.Query{Kind: export.PageViews, IncludeURLs: l.IncludeURLs}
}

func (pageViewList) about() about {
	return about{records: "entries with their page views", get: `One item an entry, with the pages that it viewed, oldest first.

Examples:

	lectern get page-views --env-file .lectern/demo.env --limit 2
	lectern get page-views --updated-after 2026-09-30 --include-urls`,
		export: `As NDJSON, one line an entry with its page views. As CSV, one line a page view, so that an entry without any has none: entry_id, group_id, project_id, embeddable_id, contact_id, created_at, updated_at, timestamp, page_id, page_key, page_index, and url with --include-urls. --limit and --page-size count entries.
` + exportHelp + `
Examples:

	lectern export page-views --env-file .lectern/demo.env --out views.csv
	lectern export page-views --include-urls --out views.ndjson`}
}

type embeddableList struct{}

func (embeddableList) of(project string) client.List { return client.EmbeddableQuery{}.List(project) }
func (embeddableList) exported() export.Query        { return export.Query{Kind: export.Embeddables} }

func (embeddableList) about() about {
	return about{records: "embeddables", get: `Ordered by their id. Their definitions are not part of the list: see lectern get embeddable.

Examples:

	lectern get embeddables --env-file .lectern/demo.env
	lectern get embeddables | jq -r '[.embeddable_id, .title] | @tsv'`,
		export: `As CSV, the columns are embeddable_id, title, group_id, project_id. Definitions are not part of the list: see lectern get embeddable.
` + exportHelp + `
Examples:

	lectern export embeddables --env-file .lectern/demo.env --out embeddables.csv
	lectern export embeddables --out embeddables.ndjson`}
}

type versionList struct {
	Direction    string `enum:"ASC,DESC,asc,desc," default:"" help:"ASC is the first version first, DESC the latest first, which is the default." placeholder:"ASC|DESC"`
	EmbeddableID string `arg:"" help:"The embeddable's id."`
}

func (l versionList) of(project string) client.List {
	return client.VersionQuery{Direction: filterFlags{Direction: l.Direction}.direction()}.List(project, l.EmbeddableID)
}
func (versionList) exported() export.Query { return export.Query{Kind: export.Versions} }

func (versionList) about() about {
	return about{records: "versions", get: `Definitions are not part of the list: see lectern get version.

Examples:

	lectern get versions emb_solar7kq2 --env-file .lectern/demo.env
	lectern get versions emb_solar7kq2 --direction ASC --limit 100`,
		export: `As CSV, the columns are embeddable_id, version_number, saved_at. Definitions are not part of the list: see lectern get version.
` + exportHelp + `
Examples:

	lectern export versions emb_solar7kq2 --env-file .lectern/demo.env --out versions.csv
	lectern export versions emb_solar7kq2 --direction ASC`}
}

type experimentList struct{ statusFlags }

func (l experimentList) of(project string) client.List { return l.query().List(project) }
func (experimentList) exported() export.Query          { return export.Query{Kind: export.Experiments} }

func (experimentList) about() about {
	return about{records: "experiments", keyless: true, get: `The newest come first. No key is needed, unless the deployment asks for one.

Examples:

	lectern get experiments --env-file .lectern/demo.env --status running
	lectern get experiments | jq '{name, status, winner: .winner_variant}'`,
		export: `As CSV, the columns are the fields in the order in which the API gives them out; lists (impact_metrics, no_impact_metrics, flow_ids) are JSON within their cell, and null is an empty cell. No key is needed, unless the deployment asks for one.
` + exportHelp + `
Examples:

	lectern export experiments --env-file .lectern/demo.env --out experiments.csv
	lectern export experiments --status completed | jq -r '[.name, .winner_variant] | @tsv'`}
}

// opener makes a client of the API, as [shell.ServerFlags.Client] and its method KeylessClient do.
type opener func(retry client.Retry, notes io.Writer) (*client.Client, error)

// openerOf returns the function that makes a client for the list l. A keyless list needs no key.
func openerOf(api shell.APIFlags, l list) opener {
	if l.about().keyless {
		return api.KeylessClient
	}
	return api.Client
}
