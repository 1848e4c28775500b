// Package read has the commands that read from the API: pages, whole lists, the change feed, and copies of a project.
package read

import "github.com/lectern-dev/lectern/cli/internal/shell"

// Get is the command group lectern get, which prints one record, one page of a list, or an insight such as a count.
type Get struct {
	Entries     getList[entryList]      `cmd:"" set:"default_limit=10" help:"Print a page of the project's entries."`
	Entry       getEntry                `cmd:"" help:"Print one entry."`
	Events      getList[entryEventList] `cmd:"" set:"default_limit=10" help:"Print the events of one entry."`
	PageViews   getList[pageViewList]   `cmd:"" set:"default_limit=10" help:"Print a page of the entries' page views."`
	Counts      getCounts               `cmd:"" help:"Print how many entries were created over time."`
	Overview    getOverview             `cmd:"" help:"Print all that an overview of entries shows."`
	Funnel      getFunnel               `cmd:"" help:"Print how far the entries of an embeddable came."`
	Answers     getAnswers              `cmd:"" help:"Print the distribution of an answer."`
	Embeddables getList[embeddableList] `cmd:"" set:"default_limit=all" help:"Print the project's embeddables."`
	Embeddable  getEmbeddable           `cmd:"" help:"Print one embeddable with its definition."`
	Versions    getList[versionList]    `cmd:"" set:"default_limit=10" help:"Print a page of an embeddable's versions."`
	Version     getVersion              `cmd:"" help:"Print one version of an embeddable with its definition."`
	Experiments getList[experimentList] `cmd:"" set:"default_limit=all" help:"Print the project's experiments."`
	Experiment  getExperiment           `cmd:"" help:"Print one experiment."`
	Project     getProject              `cmd:"" help:"Print the public record of the project."`
}

// getList is a command of lectern get, such as lectern get entries, which prints one page of the list L.
type getList[L list] struct {
	API    shell.APIFlags    `embed:""` // not embedded in Go: the compiler would make the methods again for each list
	List   L                 `embed:""`
	Limit  int               `help:"How many records. The API's default: ${default_limit}." placeholder:"N"`
	Cursor string            `help:"Continue after the previous page: its next cursor." placeholder:"CURSOR"`
	Out    shell.OutputFlags `embed:""`
}

// Help returns the text of the command's --help, which belongs to the list L.
func (g getList[L]) Help() string { return g.List.about().get }

// Run prints the page. If there is a next page, Run also prints its cursor to standard error.
func (g *getList[L]) Run(s *shell.Session) error {
	return printPage(s, g.API, g.Out, g.List, g.Cursor, g.Limit)
}

// printPage prints the page of the list l after cursor, for [getList]. printPage is not generic, because the compiler
// makes a generic function again for each list.
func printPage(s *shell.Session, api shell.APIFlags, out shell.OutputFlags, l list, cursor string, limit int) error {
	reader, err := openerOf(api, l)(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, next, err := reader.JSON(s.Context, l.of(api.Project), cursor, limit)
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
