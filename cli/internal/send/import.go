// Package send has the commands that send records to an installation, and the commands that remove records.
package send

// Import is the command group lectern import, which sends files of records to the ingest endpoint.
type Import struct {
	Entries            importEntries            `cmd:"" help:"Send entries in."`
	Events             importEvents             `cmd:"" help:"Send events in."`
	Embeddables        importEmbeddables        `cmd:"" help:"Send embeddables in."`
	EmbeddableVersions importEmbeddableVersions `cmd:"" help:"Send versions of embeddables in."`
	Experiments        importExperiments        `cmd:"" help:"Send experiments in."`
	Projects           importProjects           `cmd:"" help:"Send titles and regions of projects in."`
}
