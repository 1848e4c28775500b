// Package read has the commands that read from the API: pages, whole lists, the change feed, and copies of a project.
package read

import (
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// Get is lectern get: the commands that print records.
type Get struct {
	Entries     getEntries     `cmd:"" help:"Print a page of the project's entries."`
	Entry       getEntry       `cmd:"" help:"Print one entry."`
	Events      getEvents      `cmd:"" help:"Print the events of one entry."`
	PageViews   getPageViews   `cmd:"" help:"Print a page of the entries' page views."`
	Counts      getCounts      `cmd:"" help:"Print how many entries were created over time."`
	Funnel      getFunnel      `cmd:"" help:"Print how far the entries of an embeddable came."`
	Answers     getAnswers     `cmd:"" help:"Print the distribution of an answer."`
	Embeddables getEmbeddables `cmd:"" help:"Print the project's embeddables."`
	Embeddable  getEmbeddable  `cmd:"" help:"Print one embeddable with its definition."`
	Versions    getVersions    `cmd:"" help:"Print a page of an embeddable's versions."`
	Version     getVersion     `cmd:"" help:"Print one version of an embeddable with its definition."`
	Experiments getExperiments `cmd:"" help:"Print the project's experiments."`
	Experiment  getExperiment  `cmd:"" help:"Print one experiment."`
	Project     getProject     `cmd:"" help:"Print the public record of the project."`
}

// pageFlags select a page of a list.
type pageFlags struct {
	Limit  int    `help:"How many records. The API's default: ${default_limit}." placeholder:"N"`
	Cursor string `help:"Continue after the previous page: its next cursor." placeholder:"CURSOR"`
}

// printPage prints a page, and to standard error how to get the next one.
func printPage(s *shell.Session, api shell.APIFlags, out shell.OutputFlags, page pageFlags, list client.List) error {
	reader, err := api.Client(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	return printPageOf(s, reader, out, page, list)
}

func printPageOf(s *shell.Session, reader *client.Client, out shell.OutputFlags, page pageFlags, list client.List) error {
	body, next, err := reader.JSON(s.Context, list, page.Cursor, page.Limit)
	if err != nil {
		return err
	}
	if err := out.Print(s, body); err != nil {
		return err
	}
	if next != "" {
		s.Note("There is more: --cursor %s", next)
	}
	return nil
}

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
