package read

// Export is lectern export: the commands that write whole lists.
type Export struct {
	Entries   exportEntries   `cmd:"" help:"Write the project's entries to a file."`
	Events    exportEvents    `cmd:"" help:"Write the events of all the project's entries to a file."`
	PageViews exportPageViews `cmd:"" help:"Write the page views of the project's entries to a file."`

	Embeddables exportEmbeddables `cmd:"" help:"Write the project's embeddables to a file."`
	Versions    exportVersions    `cmd:"" help:"Write the versions of one embeddable to a file."`
	Experiments exportExperiments `cmd:"" help:"Write the project's experiments to a file."`
}
