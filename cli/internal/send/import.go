// Package send has the commands that send records in, and those that remove them.
package send

// Import is lectern import: the commands that send files of records.
type Import struct {
	Entries            importEntries            `cmd:"" help:"Send entries in."`
	Events             importEvents             `cmd:"" help:"Send events in."`
	Embeddables        importEmbeddables        `cmd:"" help:"Send embeddables in."`
	EmbeddableVersions importEmbeddableVersions `cmd:"" help:"Send versions of embeddables in."`
	Experiments        importExperiments        `cmd:"" help:"Send experiments in."`
	Projects           importProjects           `cmd:"" help:"Send titles and regions of projects in."`
}
