package read

import (
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

type getEmbeddables struct {
	shell.APIFlags
	pageFlags `set:"default_limit=all"`
	shell.OutputFlags
}

// Help shows examples.
func (getEmbeddables) Help() string {
	return `Ordered by their id. Their definitions are not part of the list: see lectern get embeddable.

Examples:

	lectern get embeddables --env-file .lectern/demo.env
	lectern get embeddables | jq -r '[.embeddable_id, .title] | @tsv'`
}

// Run prints the embeddables.
func (g *getEmbeddables) Run(s *shell.Session) error {
	return printPage(s, g.APIFlags, g.OutputFlags, g.pageFlags, client.EmbeddableQuery{}.List(g.Project))
}

type getEmbeddable struct {
	shell.APIFlags
	shell.OutputFlags
	ID string `arg:"" help:"The embeddable's id."`
}

// Help shows examples.
func (getEmbeddable) Help() string {
	return `Examples:

	lectern get embeddable emb_solar7kq2 --env-file .lectern/demo.env
	lectern get embeddable emb_solar7kq2 | jq '.json_string_prod | fromjson | .pages[].key'`
}

// Run prints the embeddable.
func (g *getEmbeddable) Run(s *shell.Session) error {
	reader, err := g.Client(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, err := reader.EmbeddableJSON(s.Context, g.Project, g.ID)
	return g.PrintOne(s, body, err)
}

type getVersions struct {
	shell.APIFlags
	pageFlags `set:"default_limit=10"`
	shell.OutputFlags
	Direction    string `enum:"ASC,DESC,asc,desc," default:"" help:"ASC is the first version first, DESC the latest first, which is the default." placeholder:"ASC|DESC"`
	EmbeddableID string `arg:"" help:"The embeddable's id."`
}

// Help shows examples.
func (getVersions) Help() string {
	return `Definitions are not part of the list: see lectern get version.

Examples:

	lectern get versions emb_solar7kq2 --env-file .lectern/demo.env
	lectern get versions emb_solar7kq2 --direction ASC --limit 100`
}

// Run prints the page.
func (g *getVersions) Run(s *shell.Session) error {
	q := client.VersionQuery{Direction: filterFlags{Direction: g.Direction}.direction()}
	return printPage(s, g.APIFlags, g.OutputFlags, g.pageFlags, q.List(g.Project, g.EmbeddableID))
}

type getVersion struct {
	shell.APIFlags
	shell.OutputFlags
	EmbeddableID string `arg:"" help:"The embeddable's id."`
	Number       int64  `arg:"" help:"The version's number."`
}

// Help shows examples.
func (getVersion) Help() string {
	return `What changed from one version to the next, for example:

	diff <(lectern get version emb_solar7kq2 1 | jq '.json_string | fromjson') \
	  <(lectern get version emb_solar7kq2 2 | jq '.json_string | fromjson')

Examples:

	lectern get version emb_solar7kq2 4 --env-file .lectern/demo.env`
}

// Run prints the version.
func (g *getVersion) Run(s *shell.Session) error {
	reader, err := g.Client(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, err := reader.VersionJSON(s.Context, g.Project, g.EmbeddableID, g.Number)
	return g.PrintOne(s, body, err)
}
