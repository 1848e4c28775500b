package command

type getExperiments struct {
	apiFlags
	statusFlags
	pageFlags `set:"default_limit=all"`
	outputFlags
}

// Help shows examples.
func (getExperiments) Help() string {
	return `The newest come first. No key is needed, unless the deployment asks for one.

Examples:

	lectern get experiments --env-file .lectern/demo.env --status running
	lectern get experiments | jq '{name, status, winner: .winner_variant}'`
}

// Run prints the experiments.
func (g *getExperiments) Run(s *Session) error {
	reader, err := g.keylessClient(interactive(), s.Err)
	if err != nil {
		return err
	}
	return printPageOf(s, reader, g.outputFlags, g.pageFlags, g.query().List(g.Project))
}

type getExperiment struct {
	apiFlags
	outputFlags
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
func (g *getExperiment) Run(s *Session) error {
	reader, err := g.keylessClient(interactive(), s.Err)
	if err != nil {
		return err
	}
	read := reader.ExperimentJSON
	if g.History {
		read = reader.ExperimentHistoryJSON
	}
	body, err := read(s.Context, g.Project, g.ID)
	return g.printOne(s, body, err)
}

type getProject struct {
	apiFlags
	outputFlags
}

// Help shows examples.
func (getProject) Help() string {
	return `Its id and title; no key is needed. Its region is for trusted services alone: see lectern region.

Examples:

	lectern get project --env-file .lectern/demo.env
	lectern get project --project pr_demo`
}

// Run prints the project.
func (g *getProject) Run(s *Session) error {
	reader, err := g.keylessClient(interactive(), s.Err)
	if err != nil {
		return err
	}
	body, err := reader.ProjectJSON(s.Context, g.Project)
	return g.printOne(s, body, err)
}
