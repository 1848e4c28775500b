package read

import "github.com/lectern-dev/lectern/cli/internal/shell"

type getEntry struct {
	shell.APIFlags
	shell.OutputFlags
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
	reader, err := g.Client(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, err := reader.EntryJSON(s.Context, g.Project, g.ID)
	return g.PrintOne(s, body, err)
}

type getEmbeddable struct {
	shell.APIFlags
	shell.OutputFlags
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
	reader, err := g.Client(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, err := reader.EmbeddableJSON(s.Context, g.Project, g.ID)
	return g.PrintOne(s, body, err)
}

type getVersion struct {
	shell.APIFlags
	shell.OutputFlags
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
	reader, err := g.Client(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, err := reader.VersionJSON(s.Context, g.Project, g.EmbeddableID, g.Number)
	return g.PrintOne(s, body, err)
}

type getExperiment struct {
	shell.APIFlags
	shell.OutputFlags
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
	reader, err := g.KeylessClient(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	read := reader.ExperimentJSON
	if g.History {
		read = reader.ExperimentHistoryJSON
	}
	body, err := read(s.Context, g.Project, g.ID)
	return g.PrintOne(s, body, err)
}

type getProject struct {
	shell.APIFlags
	shell.OutputFlags
}

// Help returns the text of lectern get project --help: the public fields of a project, and examples.
func (getProject) Help() string {
	return `Its id and title; no key is needed. Its region is for trusted services alone: see lectern region.

Examples:

	lectern get project --env-file .lectern/demo.env
	lectern get project --project pr_demo`
}

// Run prints the public record of the project, which needs no key.
func (g *getProject) Run(s *shell.Session) error {
	reader, err := g.KeylessClient(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, err := reader.ProjectJSON(s.Context, g.Project)
	return g.PrintOne(s, body, err)
}
