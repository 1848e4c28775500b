// Package read has the commands that read from the API: pages, whole lists, the change feed, and copies of a project.
package read

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
