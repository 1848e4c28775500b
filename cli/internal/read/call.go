package read

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"strings"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// Call is the command lectern api, which sends a GET request to any path of the API and prints the answer.
type Call struct {
	shell.ServerFlags
	Project           string `short:"p" env:"LECTERN_PROJECT_ID" help:"The project that {projectId} in the path stands for." placeholder:"ID"`
	shell.OutputFlags `set:"output_default=json on a terminal, else ndjson"`
	Paginate          bool   `help:"Read all pages of a list, and print a line for each record."`
	Path              string `arg:"" help:"The path with its query, such as /projects/{projectId}/entries?limit=2; {projectId} stands for the project."`
}

// Help returns the text of lectern api --help: how an answer is printed, and examples.
func (Call) Help() string {
	return `The command sends a GET request with the key, and prints the answer: JSON as --output says, and anything else as it is. lectern console, or /docs of the API, lists the operations.

Examples:

	lectern api '/projects/{projectId}/entries?limit=2' --env-file .lectern/demo.env
	lectern api '/projects/{projectId}/entries?sort=created_at' --paginate | wc -l
	lectern api /openapi.json | jq -r '.paths | keys[]'`
}

// pageOfAll is how many records each request of --paginate asks for, unless the path has a limit.
const pageOfAll = 1000

// Run sends the request and prints the answer, or all pages with --paginate. A path that is a whole URL is a usage
// error.
func (a *Call) Run(s *shell.Session) error {
	if a.Project == "" && strings.Contains(a.Path, "{projectId}") {
		return shell.Usagef("the path %q needs --project ID or LECTERN_PROJECT_ID", a.Path)
	}
	path := "/" + strings.TrimPrefix(strings.ReplaceAll(a.Path, "{projectId}", url.PathEscape(a.Project)), "/")
	list, err := client.ListAt(path)
	if host := strings.Contains(strings.SplitN(path, "?", 2)[0], "://"); err != nil || host {
		return shell.Usagef("PATH was given as %q; allowed: a path of the API, such as /projects/{projectId}/entries?limit=2", a.Path)
	}
	reader, err := a.KeylessClient(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	if a.Paginate {
		if a.Output != "" && a.Output != "ndjson" {
			return shell.Usagef("--output was given as %q with --paginate; allowed: ndjson", a.Output)
		}
		return a.all(s, reader, list)
	}
	given := a.Output != ""
	if !given && s.Width > 0 {
		a.Output = "json"
	}
	body, _, err := reader.JSON(s.Context, list, "", 0)
	if err == nil && !given && !json.Valid(body) {
		_, err = s.Out.Write(body)
		return err
	}
	return a.PrintOne(s, body, err)
}

// all prints the records of all pages of list, one a line. all prints a page after the whole page was read.
func (a *Call) all(s *shell.Session, reader *client.Client, list client.List) error {
	limit := pageOfAll
	if _, query, _ := strings.Cut(a.Path, "?"); strings.Contains("&"+query, "&limit=") {
		limit = 0
	}
	var page bytes.Buffer
	cursor := ""
	for {
		next := ""
		err := reader.Raw(s.Context, list, cursor, limit, func(p client.RawPage) error {
			page.Reset() // it may come again
			if _, err := io.Copy(&page, p.Body); err != nil {
				return err
			}
			if next = p.NextCursor; p.Current {
				next = ""
			}
			return nil
		})
		if err != nil {
			return err
		}
		if _, err := page.WriteTo(s.Out); err != nil || next == "" {
			return err
		}
		cursor = next
	}
}
