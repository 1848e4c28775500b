package command

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lectern-dev/lectern/cli/internal/shell"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help shows how to load the script.
func (completionCommand) Help() string {
	return `Examples:

	source <(lectern completion bash)       # for this shell; put it into ~/.bashrc for all
	lectern completion zsh > "${fpath[1]}/_lectern"
	lectern completion fish > ~/.config/fish/completions/lectern.fish`
}

// Run prints the script.
func (c *completionCommand) Run(s *shell.Session) error {
	_, err := fmt.Fprint(s.Out, shell.CompletionScript(c.Shell))
	return err
}

// version is the flag --version.
type version bool

// BeforeReset prints the version, and ends the command.
func (version) BeforeReset(app *kong.Kong, s *shell.Session) error {
	if err := (versionCommand{}).Run(s); err != nil {
		return err
	}
	app.Exit(shell.ExitOK)
	return nil
}

type versionCommand struct{}

// Run prints the version that the build noted.
func (versionCommand) Run(s *shell.Session) error {
	_, err := fmt.Fprintln(s.Out, "lectern", build())
	return err
}

// build returns the version of the module, the revision unless the version names it, and the version of Go.
func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			if revision := setting.Value[:min(12, len(setting.Value))]; !strings.Contains(v, revision) {
				v += " " + revision
			}
		}
	}
	return v + " " + info.GoVersion
}
