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

// Help returns the text of lectern completion --help: how each shell loads the script.
func (completionCommand) Help() string {
	return `Examples:

	source <(lectern completion bash)       # for this shell; put it into ~/.bashrc for all
	lectern completion zsh > "${fpath[1]}/_lectern"
	lectern completion fish > ~/.config/fish/completions/lectern.fish`
}

// Run prints the completion script of the shell to standard output.
func (c *completionCommand) Run(s *shell.Session) error {
	_, err := fmt.Fprint(s.Out, shell.CompletionScript(c.Shell))
	return err
}

// version is the type of the flag --version, which prints the version instead of running a command.
type version bool

// BeforeReset prints the version and ends the program with [shell.ExitOK]. kong calls BeforeReset if --version is
// given.
func (version) BeforeReset(app *kong.Kong, s *shell.Session) error {
	if err := (versionCommand{}).Run(s); err != nil {
		return err
	}
	app.Exit(shell.ExitOK)
	return nil
}

type versionCommand struct{}

// Run prints the version of the program, as [build] returns it.
func (versionCommand) Run(s *shell.Session) error {
	_, err := fmt.Fprintln(s.Out, "lectern", build())
	return err
}

// build returns the version of the module, the revision unless the version contains the revision, and the version of
// Go. A program without build information has the version "(unknown)".
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
