//go:build !windows

package try

import (
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/lectern-dev/lectern/cli/internal/local"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// Up is the command lectern up, which runs the whole platform on this machine, with a demo project.
type Up struct {
	Listen         string `type:"address" env:"LECTERN_LISTEN" default:"127.0.0.1:8080" help:"Address of the public operations; port 0 is any free port. Default: ${default}." placeholder:"HOST:PORT"`
	ListenInternal string `type:"address" env:"LECTERN_LISTEN_INTERNAL" default:"127.0.0.1:9090" help:"Address of the internal operations. Default: ${default}." placeholder:"HOST:PORT"`
	Folder         string `env:"LECTERN_FOLDER" default:".lectern" type:"path" help:"The folder of data, logs and secrets. Default: .lectern." placeholder:"FOLDER"`
	Verbose        bool   `short:"v" help:"Print all logs to standard error instead of into files below the folder."`
}

// Help returns the text of lectern up --help: the programs that run, the files in the folder, and examples.
func (Up) Help() string {
	return `The command runs

  - Postgres, private to the folder, and Redis, in process unless REDIS_URL names one;
  - the services, the web console and the edge;
  - a demo project, which is loaded the first time;
  - a third party that answers with the request that it received. The credential proxy calls it by the rules in FOLDER/proxy.

It passes variables of the services on, such as RATE_LIMIT or OTEL_EXPORTER_OTLP_ENDPOINT.

When everything is ready, FOLDER/demo.env has the variables for the other commands (--env-file) and for sh (its dot command). The file is removed when the run ends. Ctrl-C or SIGTERM stops everything. The data stays for the next run.

Examples:

	lectern up
	lectern up --listen 127.0.0.1:18080 --listen-internal 127.0.0.1:19090
	REDIS_URL=redis://127.0.0.1:6379/0 lectern up --verbose`
}

// Run runs the platform until the session's context ends or a part of the platform fails. Run also discards the output
// of package log for the whole process.
func (u *Up) Run(s *shell.Session) error {
	o := local.Options{
		Folder: u.Folder, Listen: u.Listen, ListenInternal: u.ListenInternal,
		Environ: s.Environ,
		Note:    func(format string, args ...any) { s.Note(format, args...) },
		Ready:   func(d local.Demo) { u.announce(s, d) },
	}
	// net/http logs the bytes that a target of the proxy sends on an idle connection. The bytes may be secret, so this
	// log is discarded.
	log.SetOutput(io.Discard)
	if u.Verbose {
		o.Log = s.Err
	}
	return local.Run(s.Context, o)
}

// announce prints the addresses, the API key and sample requests when the platform is ready.
func (u *Up) announce(s *shell.Session, d local.Demo) {
	project := d.URL + "/projects/" + d.ProjectID
	get := func(rest string) string {
		return fmt.Sprintf("  curl -H 'X-Api-Key: %s' '%s%s'", d.APIKey, project, rest)
	}
	lines := []string{
		"Lectern is ready.",
		"",
		"  URL      " + d.URL,
		"  Project  " + d.ProjectID,
		"  API key  " + d.APIKey,
		"  Console  " + consoleLink(d.URL, d.ProjectID, d.APIKey),
		"",
		"Requests to paste:",
		"",
		get("/entries?limit=2"),
		get("/entries/" + d.EntryID),
		get("/entries/" + d.EntryID + "/events?direction=ASC"),
		get("/entries-changes?limit=2"),
		get("/entries-page-views?limit=2"),
		fmt.Sprintf("  curl -G '%s/proxy' --data-urlencode 'url=%s/v1/charges' -H 'X-Project-ID: %s' -H 'X-Environment: %s' -H 'X-Proxy-Api-Key: %s' -H 'Authorization: Bearer {{ %s }}'",
			d.URL, d.ThirdPartyURL, d.ProjectID, local.DemoEnvironment, d.APIKey, local.DemoCredential),
		"",
		"The whole API is described at " + d.URL + "/docs.",
		"Data goes in at " + d.InternalURL + "/internal/entries; all variables are in " + local.EnvFile(u.Folder) + ".",
		"Ctrl-C stops it; the data stays in " + u.Folder + ".",
	}
	fmt.Fprintln(s.Out, strings.Join(lines, "\n"))
}
