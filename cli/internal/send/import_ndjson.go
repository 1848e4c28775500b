package send

import (
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lectern-dev/lectern/cli/internal/csvrow"
	"github.com/lectern-dev/lectern/cli/internal/load"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// importLines is an import of a resource whose files can only be NDJSON, not CSV.
type importLines struct{ importFlags }

// Run sends the files. The name of the command is the name of the resource. A file whose name ends with .csv is a
// usage error.
func (i *importLines) Run(s *shell.Session, k *kong.Context) error {
	resource := k.Selected().Name
	for _, name := range i.Files {
		if strings.EqualFold(filepath.Ext(name), ".csv") {
			return shell.Usagef("%s: %s must be NDJSON, one JSON object a line", name, resource)
		}
	}
	return runImport(s, i.importFlags, load.Options{Format: load.NDJSON, Shape: csvrow.Shape{Resource: resource}})
}

type importEmbeddables struct{ importLines }

// Help returns the text of lectern import embeddables --help: the fields of a record, and examples.
func (importEmbeddables) Help() string {
	return `NDJSON has one embeddable a line, as the API returns it: embeddable_id, title, group_id, project_id and json_string_prod. The last one sent replaces the others.
` + importHelp + `
Examples:

	lectern import embeddables --env-file .lectern/demo.env embeddables.ndjson
	lectern get embeddable emb_solar7kq2 | jq -c '.title = "Solar"' | lectern import embeddables -`
}

type importEmbeddableVersions struct{ importLines }

// Help returns the text of lectern import embeddable-versions --help: the fields of a record, and examples.
func (importEmbeddableVersions) Help() string {
	return `NDJSON has one version a line, as the API returns it, and its project: embeddable_id, project_id, version_number, saved_at and json_string. A version never changes: another content under its number is rejected. Versions may come before their embeddable, and show once it is there.
` + importHelp + `
Examples:

	lectern import embeddable-versions --env-file .lectern/demo.env versions.ndjson
	lectern import embeddable-versions versions.ndjson --rejects rejects.ndjson`
}

type importExperiments struct{ importLines }

// Help returns the text of lectern import experiments --help: the form of a record, and examples.
func (importExperiments) Help() string {
	return `NDJSON has one experiment a line, as the API returns it, and its project_id. An older updated_at never overwrites a newer one; any status may follow any other, and each change is kept with its time.
` + importHelp + `
Examples:

	lectern import experiments --env-file .lectern/demo.env experiments.ndjson
	lectern export experiments | jq -c '.project_id = "pr_copy"' | lectern import experiments -`
}

type importProjects struct{ importLines }

// Help returns the text of lectern import projects --help: the fields of a record, and examples.
func (importProjects) Help() string {
	return `NDJSON has one project a line: id, title and region, a zone of the tz database such as Europe/Berlin, or null for none. The last one sent replaces the others as a whole: an omitted region is none.
` + importHelp + `
Examples:

	lectern import projects --env-file .lectern/demo.env projects.ndjson
	echo '{"id":"pr_demo","title":"Homes and care","region":"Asia/Tokyo"}' | lectern import projects -`
}
