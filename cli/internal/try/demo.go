package try

import (
	"github.com/lectern-dev/lectern/cli/internal/demo"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// Demo is the command lectern demo, which prints the records of the demo project.
type Demo struct {
	Resource string `arg:"" enum:"projects,embeddable-versions,embeddables,experiments,entries,events" help:"projects, embeddable-versions, embeddables, experiments, entries or events."`
}

// Help returns the text of lectern demo --help: the number and the format of the records, and examples.
func (Demo) Help() string {
	return `The records are NDJSON, as import takes them: 10,000 entries of the project pr_demo with 80,000 events, and the records that they belong to. The output is the same each time.

Examples:

	lectern demo entries | lectern import entries -
	lectern demo embeddables`
}

// Run prints all records of the resource in NDJSON, which is the same in each run.
func (d *Demo) Run(s *shell.Session) error {
	return demo.Write(s.Out, d.Resource)
}
