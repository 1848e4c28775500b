package read

import (
	"fmt"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// Region is the command lectern region, which prints the region of a project and its offset from UTC.
type Region struct {
	URL            string       `name:"url" type:"url" env:"LECTERN_URL" default:"http://127.0.0.1:8080" help:"The address of the API. Default: ${default}." placeholder:"URL"`
	Project        string       `short:"p" env:"LECTERN_PROJECT_ID" help:"The project, if the argument is omitted." placeholder:"ID"`
	InternalAPIKey string       `env:"LECTERN_INTERNAL_API_KEY" help:"A key for trusted services. Other users of this machine can see flags: prefer the variable." placeholder:"KEY"`
	TokenFile      string       `env:"LECTERN_TOKEN_FILE" type:"path" help:"A file with a token of a trusted service, if there is no internal key." placeholder:"FILE"`
	At             shell.Moment `help:"The time of the offset: RFC 3339, or a date. Default: now." placeholder:"TIME"`
	shell.OutputFlags
	ProjectID string `arg:"" optional:"" name:"project" help:"The project's id."`
}

// Help returns the text of lectern region --help: the form of the region and the offset, and examples.
func (Region) Help() string {
	return `The project's region is a zone of the tz database. The offset is in minutes east of UTC at that time, with daylight saving. A project without a region, or an unknown one, is in America/Los_Angeles; the command says so on standard error.

Examples:

	lectern region --env-file .lectern/demo.env
	lectern region pr_demo --at 2026-12-24
	TZ=$(lectern region pr_demo | jq -r .region) date`
}

// Run asks the region service with a key or a token, and prints the answer. Run notes on standard error if the answer
// is the default region.
func (r *Region) Run(s *shell.Session) error {
	project := r.ProjectID
	if project == "" {
		project = r.Project
	}
	switch {
	case project == "":
		return shell.Usagef("no project: give its id, or set LECTERN_PROJECT_ID")
	case r.InternalAPIKey == "" && r.TokenFile == "":
		return shell.Usagef("no internal key: set LECTERN_INTERNAL_API_KEY or LECTERN_TOKEN_FILE, or give --env-file")
	}
	credential := client.WithAPIKey(r.InternalAPIKey)
	if r.InternalAPIKey == "" {
		credential = client.WithTokenFile(r.TokenFile)
	}
	retry := shell.Interactive()
	retry.Notify = shell.Notifier(s.Err)
	asker, err := client.New(r.URL, credential, client.WithUserAgent("lectern-cli"), client.WithRetry(retry))
	if err != nil {
		return shell.Usage(fmt.Errorf("--url: %w", err))
	}
	body, source, err := asker.RegionJSON(s.Context, project, r.At.Time)
	switch {
	case client.Code(err) == client.CodeUnauthorized:
		return shell.Advise(err, "check LECTERN_INTERNAL_API_KEY or LECTERN_TOKEN_FILE: the key or the token of a project is not good for this")
	case err == nil && source == client.DefaultRegion:
		s.Note("%s is unknown or has no region, so this is the default.", project)
	}
	return r.PrintOne(s, body, err)
}
