package read

import (
	"github.com/lectern-dev/lectern/cli/internal/export"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

type exportEmbeddables struct {
	shell.APIFlags
	exportFlags
}

// Help shows examples.
func (exportEmbeddables) Help() string {
	return `As CSV, the columns are embeddable_id, title, group_id, project_id. Definitions are not part of the list: see lectern get embeddable.
` + exportHelp + `
Examples:

	lectern export embeddables --env-file .lectern/demo.env --out embeddables.csv
	lectern export embeddables --out embeddables.ndjson`
}

// Run exports.
func (e *exportEmbeddables) Run(s *shell.Session) error {
	q := export.Query{Kind: export.Embeddables}
	return runExport(s, e.APIFlags, e.exportFlags, q, client.EmbeddableQuery{}.List(e.Project), "embeddables")
}

type exportVersions struct {
	shell.APIFlags
	exportFlags
	Direction    string `enum:"ASC,DESC,asc,desc," default:"" help:"ASC is the first version first, DESC the latest first, which is the default." placeholder:"ASC|DESC"`
	EmbeddableID string `arg:"" help:"The embeddable's id."`
}

// Help shows examples.
func (exportVersions) Help() string {
	return `As CSV, the columns are embeddable_id, version_number, saved_at. Definitions are not part of the list: see lectern get version.
` + exportHelp + `
Examples:

	lectern export versions emb_solar7kq2 --env-file .lectern/demo.env --out versions.csv
	lectern export versions emb_solar7kq2 --direction ASC`
}

// Run exports.
func (e *exportVersions) Run(s *shell.Session) error {
	direction := filterFlags{Direction: e.Direction}.direction()
	q := export.Query{Kind: export.Versions}
	return runExport(s, e.APIFlags, e.exportFlags, q, client.VersionQuery{Direction: direction}.List(e.Project, e.EmbeddableID), "versions")
}

type exportExperiments struct {
	shell.APIFlags
	statusFlags
	exportFlags
}

// Help shows examples.
func (exportExperiments) Help() string {
	return `As CSV, the columns are the fields in the order in which the API gives them out; lists (impact_metrics, no_impact_metrics, flow_ids) are JSON within their cell, and null is an empty cell. No key is needed, unless the deployment asks for one.
` + exportHelp + `
Examples:

	lectern export experiments --env-file .lectern/demo.env --out experiments.csv
	lectern export experiments --status completed | jq -r '[.name, .winner_variant] | @tsv'`
}

// Run exports.
func (e *exportExperiments) Run(s *shell.Session) error {
	q := export.Query{Kind: export.Experiments}
	return runExportBy(s, e.APIFlags, e.KeylessClient, e.exportFlags, export.Options{Query: q}, e.query().List(e.Project), "experiments")
}
