package read

import (
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// recordFlags are the flags of a command of lectern get that prints one record.
type recordFlags struct {
	shell.APIFlags
	shell.OutputFlags
}

// print prints the record that read returns. open makes the client for read.
func (f recordFlags) print(s *shell.Session, open opener, read func(*client.Client) ([]byte, error)) error {
	reader, err := open(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, err := read(reader)
	return f.PrintOne(s, body, err)
}

type getEntry struct {
	recordFlags
	ID string `arg:"" help:"The entry's id."`
}

// Help returns the text of lectern get entry --help, which has examples.
func (getEntry) Help() string {
	return `Examples:

	lectern get entry ent_00001gzn --env-file .lectern/demo.env
	lectern get entry ent_00001gzn | jq '.entry_data | fromjson'`
}

// Run prints the entry with the given id.
func (g *getEntry) Run(s *shell.Session) error {
	return g.print(s, g.Client, func(c *client.Client) ([]byte, error) { return c.EntryJSON(s.Context, g.Project, g.ID) })
}

type getEmbeddable struct {
	recordFlags
	ID string `arg:"" help:"The embeddable's id."`
}

// Help returns the text of lectern get embeddable --help, which has examples.
func (getEmbeddable) Help() string {
	return `Examples:

	lectern get embeddable emb_solar7kq2 --env-file .lectern/demo.env
	lectern get embeddable emb_solar7kq2 | jq '.json_string_prod | fromjson | .pages[].key'`
}

// Run prints the embeddable with the given id, including its definition.
func (g *getEmbeddable) Run(s *shell.Session) error {
	return g.print(s, g.Client, func(c *client.Client) ([]byte, error) { return c.EmbeddableJSON(s.Context, g.Project, g.ID) })
}

type getVersion struct {
	recordFlags
	EmbeddableID string `arg:"" help:"The embeddable's id."`
	Number       int64  `arg:"" help:"The version's number."`
}

// Help returns the text of lectern get version --help: how to compare two versions, and an example.
func (getVersion) Help() string {
	return `What changed from one version to the next, for example:

	diff <(lectern get version emb_solar7kq2 1 | jq '.json_string | fromjson') \
	  <(lectern get version emb_solar7kq2 2 | jq '.json_string | fromjson')

Examples:

	lectern get version emb_solar7kq2 4 --env-file .lectern/demo.env`
}

// Run prints one version of an embeddable, including the definition in that version.
func (g *getVersion) Run(s *shell.Session) error {
	return g.print(s, g.Client, func(c *client.Client) ([]byte, error) {
		return c.VersionJSON(s.Context, g.Project, g.EmbeddableID, g.Number)
	})
}

type getExperiment struct {
	recordFlags
	History bool   `help:"Print all changes of its status, the oldest first, instead."`
	ID      string `arg:"" help:"The experiment's id."`
}

// Help returns the text of lectern get experiment --help: whether a key is needed, and examples.
func (getExperiment) Help() string {
	return `No key is needed, unless the deployment asks for one.

Examples:

	lectern get experiment exp_language2tz --env-file .lectern/demo.env
	lectern get experiment exp_language2tz | jq '.variants | fromjson | keys'
	lectern get experiment exp_language2tz --history`
}

// Run prints the experiment, or with --history all changes of its status.
func (g *getExperiment) Run(s *shell.Session) error {
	return g.print(s, g.KeylessClient, func(c *client.Client) ([]byte, error) {
		if g.History {
			return c.ExperimentHistoryJSON(s.Context, g.Project, g.ID)
		}
		return c.ExperimentJSON(s.Context, g.Project, g.ID)
	})
}

type getProject struct{ recordFlags }

// Help returns the text of lectern get project --help: the public fields of a project, and examples.
func (getProject) Help() string {
	return `Its id and title; no key is needed. Its region is for trusted services alone: see lectern region.

Examples:

	lectern get project --env-file .lectern/demo.env
	lectern get project --project pr_demo`
}

// Run prints the public record of the project, which needs no key.
func (g *getProject) Run(s *shell.Session) error {
	return g.print(s, g.KeylessClient, func(c *client.Client) ([]byte, error) { return c.ProjectJSON(s.Context, g.Project) })
}
