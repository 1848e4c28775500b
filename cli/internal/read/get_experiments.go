package read

import "github.com/lectern-dev/lectern/cli/internal/shell"

type getExperiments struct {
	shell.APIFlags
	statusFlags
	pageFlags `set:"default_limit=all"`
	shell.OutputFlags
}

// Help shows examples.
func (getExperiments) Help() string {
	return `The newest come first. No key is needed, unless the deployment asks for one.

Examples:

	lectern get experiments --env-file .lectern/demo.env --status running
	lectern get experiments | jq '{name, status, winner: .winner_variant}'`
}

// Run prints the experiments.
func (g *getExperiments) Run(s *shell.Session) error {
	reader, err := g.KeylessClient(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	return printPageOf(s, reader, g.OutputFlags, g.pageFlags, g.query().List(g.Project))
}

type getExperiment struct {
	shell.APIFlags
	shell.OutputFlags
	History bool   `help:"Print all changes of its status, the oldest first, instead."`
	ID      string `arg:"" help:"The experiment's id."`
}

// Help shows examples.
func (getExperiment) Help() string {
	return `No key is needed, unless the deployment asks for one.

Examples:

	lectern get experiment exp_language2tz --env-file .lectern/demo.env
	lectern get experiment exp_language2tz | jq '.variants | fromjson | keys'
	lectern get experiment exp_language2tz --history`
}

// Run prints the experiment, or its history.
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

// Help shows examples.
func (getProject) Help() string {
	return `Its id and title; no key is needed. Its region is for trusted services alone: see lectern region.

Examples:

	lectern get project --env-file .lectern/demo.env
	lectern get project --project pr_demo`
}

// Run prints the project.
func (g *getProject) Run(s *shell.Session) error {
	reader, err := g.KeylessClient(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, err := reader.ProjectJSON(s.Context, g.Project)
	return g.PrintOne(s, body, err)
}
