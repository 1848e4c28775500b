package read

import (
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

type getEntries struct {
	shell.APIFlags
	entryFilterFlags
	pageFlags `set:"default_limit=10"`
	shell.OutputFlags
}

// Help shows examples.
func (getEntries) Help() string {
	return `The newest entries come first. To write whole lists to a file, see lectern export.

Examples:

	lectern get entries --env-file .lectern/demo.env
	lectern get entries --limit 3 --sort created_at --direction ASC
	lectern get entries --updated-after 2026-09-01 --limit 100 | jq .entry_id`
}

// Run prints the page.
func (g *getEntries) Run(s *shell.Session) error {
	return printPage(s, g.APIFlags, g.OutputFlags, g.pageFlags, g.query().List(g.Project))
}

type getEntry struct {
	shell.APIFlags
	shell.OutputFlags
	ID string `arg:"" help:"The entry's id."`
}

// Help shows examples.
func (getEntry) Help() string {
	return `Examples:

	lectern get entry ent_00001gzn --env-file .lectern/demo.env
	lectern get entry ent_00001gzn | jq '.entry_data | fromjson'`
}

// Run prints the entry.
func (g *getEntry) Run(s *shell.Session) error {
	reader, err := g.Client(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, err := reader.EntryJSON(s.Context, g.Project, g.ID)
	return g.PrintOne(s, body, err)
}

type getEvents struct {
	shell.APIFlags
	pageFlags `set:"default_limit=10"`
	shell.OutputFlags
	Direction string `enum:"ASC,DESC,asc,desc," default:"" help:"ASC is oldest first, DESC newest first, which is the default." placeholder:"ASC|DESC"`
	EntryID   string `arg:"" help:"The entry's id."`
}

// Help shows examples.
func (getEvents) Help() string {
	return `Examples:

	lectern get events ent_00001gzn --env-file .lectern/demo.env
	lectern get events ent_00001gzn --direction ASC --limit 100`
}

// Run prints the page.
func (g *getEvents) Run(s *shell.Session) error {
	q := client.EventQuery{Direction: filterFlags{Direction: g.Direction}.direction()}
	return printPage(s, g.APIFlags, g.OutputFlags, g.pageFlags, q.List(g.Project, g.EntryID))
}

type getPageViews struct {
	shell.APIFlags
	pageViewFilterFlags
	pageFlags `set:"default_limit=10"`
	shell.OutputFlags
}

// Help shows examples.
func (getPageViews) Help() string {
	return `One item an entry, with the pages that it viewed, oldest first.

Examples:

	lectern get page-views --env-file .lectern/demo.env --limit 2
	lectern get page-views --updated-after 2026-09-30 --include-urls`
}

// Run prints the page.
func (g *getPageViews) Run(s *shell.Session) error {
	return printPage(s, g.APIFlags, g.OutputFlags, g.pageFlags, g.query().List(g.Project))
}
