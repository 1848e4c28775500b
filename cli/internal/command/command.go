// Package command is the command line of lectern: its commands, flags, help and output. Other packages in cli/internal
// do the work.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/lectern-dev/lectern/cli/internal/screen"
	"github.com/lectern-dev/lectern/client"
)

// The exit codes. They are documented in the help and do not change.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitRejected    = 3
	exitInterrupted = 130 // as shells count an end by SIGINT
)

// Session is the environment of a command. The text that a command writes to Out and Err may be from elsewhere: see package screen.
type Session struct {
	Context context.Context
	In      io.Reader
	Out     io.Writer // results only
	Err     io.Writer // all other messages
	Environ map[string]string
	Width   int  // the columns of the terminal that Out is; 0: it is none
	Quiet   bool // Err gets errors alone; the flag --quiet sets it

	// ReadSecret reads a line from the terminal that In is, and does not show it; nil if In is none.
	ReadSecret func() (string, error)
	// ConfigFolder is the folder of the user's settings; "" if there is none.
	ConfigFolder string
	Now          func() time.Time
}

// ProcessSession returns the environment of this process. It unsets variables of this program that are empty, so that a
// default or --env-file applies.
func ProcessSession(ctx context.Context) *Session {
	s := &Session{Context: ctx, In: os.Stdin, Out: screen.Of(os.Stdout), Err: screen.Of(os.Stderr), Environ: map[string]string{}, Now: time.Now}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if value == "" && strings.HasPrefix(name, "LECTERN_") { // kong refuses it, before --env-file is read
			_ = os.Unsetenv(name)
			continue
		}
		s.Environ[name] = value
	}
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		s.Width = max(width, 40)
	}
	in := int(os.Stdin.Fd())
	if state, err := term.GetState(in); err == nil {
		s.ReadSecret = func() (string, error) {
			// An interrupt ends the command, but not the read: then the terminal shows what is typed again.
			defer context.AfterFunc(ctx, func() { _ = term.Restore(in, state) })()
			secret, err := term.ReadPassword(in)
			return string(secret), err
		}
	}
	if folder, err := os.UserConfigDir(); err == nil {
		s.ConfigFolder = filepath.Join(folder, "lectern")
	}
	return s
}

// errRejected ends a command that did its work, except for rejected records. The command has printed them.
var errRejected = errors.New("some records were rejected")

// usageError is a fault of the command line beyond its syntax.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// advisedError has better advice than that for its code.
type advisedError struct {
	error
	advice string
}

func (e advisedError) Unwrap() error { return e.error }

// commands is the whole command line.
type commands struct {
	EnvFile string  `help:"Read variables from FILE, such as .lectern/demo.env; those of the environment win." placeholder:"FILE"`
	Context string  `type:"context" env:"LECTERN_CONTEXT" help:"Use this context of lectern login, instead of the current one." placeholder:"NAME"`
	Quiet   bool    `short:"q" help:"Print only errors on standard error, and no progress bars."`
	Number  version `name:"version" help:"Print the version."`

	Up      upCommand      `cmd:"" group:"Try it on this machine:" help:"Run everything on this machine, with a demo project."`
	Console consoleCommand `cmd:"" group:"Try it on this machine:" help:"Open the web console in the browser, signed in."`
	Demo    demoCommand    `cmd:"" group:"Try it on this machine:" help:"Print the demo project's records, to send them elsewhere."`

	Get     getCommands    `cmd:"" group:"Read:" help:"Print records."`
	Export  exportCommands `cmd:"" group:"Read:" help:"Write whole lists to a file, page by page; continues where it was cut."`
	Changes changesCommand `cmd:"" group:"Read:" help:"Print all stored and removed records, from the beginning or from where the last run ended."`
	Sync    syncCommand    `cmd:"" group:"Read:" help:"Keep a copy of the project's entries and events, in Postgres or Parquet files, or push its changes to a receiver."`
	Singer  singerCommand  `cmd:"" group:"Read:" help:"Print the project's changes as messages, as a Singer tap."`
	Airbyte airbyteCommand `cmd:"" group:"Read:" help:"Print the project's changes as messages, as a source of Airbyte."`
	Listen  listenCommand  `cmd:"" group:"Read:" help:"Forward the project's changes to a receiver of webhooks on this machine, while you write it."`
	Region  regionCommand  `cmd:"" group:"Read:" help:"Print a project's region and its offset from UTC."`
	API     apiCommand     `cmd:"" name:"api" group:"Read:" help:"Send a GET request to any path of the API."`

	Import importCommands `cmd:"" group:"Send and remove:" help:"Send files of records; continues where it was cut."`
	Erase  eraseCommand   `cmd:"" group:"Send and remove:" help:"Remove an entry, all of a contact, or a whole project, for good."`
	Purge  purgeCommand   `cmd:"" group:"Send and remove:" help:"Remove entries that were last updated long ago."`

	Login  loginCommand    `cmd:"" group:"Access:" help:"Store a URL, a project and its key for later commands."`
	Whoami whoamiCommand   `cmd:"" group:"Access:" help:"Print what the key is and may do."`
	Named  contextCommands `cmd:"" name:"context" group:"Access:" help:"List, choose and remove what lectern login stored."`
	Keys   keysCommands    `cmd:"" group:"Access:" help:"Mint, list, rotate and revoke API keys."`
	Proxy  proxyCommands   `cmd:"" group:"Access:" help:"Check the credential proxy's rules."`

	Check          checkCommand   `cmd:"" group:"Operate:" help:"Call every operation once, and report wrong answers."`
	Databases      rolesCommand   `cmd:"" group:"Operate:" help:"Make the databases and roles of an installation, and their Secrets."`
	MigrateToCitus migrateCommand `cmd:"" group:"Operate:" name:"migrate-to-citus" help:"Distribute a service's database over the machines of a Citus cluster, in place; or bring it back."`

	Completion completionCommand `cmd:"" group:"This program:" help:"Print the completion script of a shell."`
	Version    versionCommand    `cmd:"" group:"This program:" help:"Print the version."`
}

const description = `Lectern's command line: run the platform on this machine, get data in and out, manage API keys.

Exit codes: 0 success; 1 failure, and the last line on standard error says why; 2 wrong command line; 3 done, but some records were rejected; 130 interrupted. Export, import, sync, and changes with a cursor file then continue when you run them again.

Variables: the help of a flag names its variable in parentheses. Flags win over variables, these over --env-file, and all over the context that lectern login stored. A key and a file with a key are alternatives: the first source with either wins.`

// exited carries an exit code out of the parser, which ends the process for --help.
type exited int

// Main runs the command line args and returns the exit code.
func Main(s *Session, args []string) (code int) {
	if len(args) > 0 && args[0] == completeWord {
		return complete(s, args[1:])
	}
	defer func() {
		if fault := recover(); fault != nil {
			e, ok := fault.(exited)
			if !ok {
				panic(fault)
			}
			code = int(e)
		}
	}()
	var c commands
	parser, err := newParser(s, &c)
	if err != nil {
		return s.fail(err)
	}
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:], "--help")
	}
	parsed, err := parser.Parse(args)
	if refused, ok := errors.AsType[*kong.ParseError](err); ok {
		if incomplete(refused) {
			return s.fail(refused.Context.PrintUsage(false))
		}
		return s.fail(usagef("%s", refusal(refused)))
	}
	if err != nil {
		return s.fail(err)
	}
	return s.fail(parsed.Run())
}

func newParser(s *Session, c *commands) (*kong.Kong, error) {
	options := append(mappers(),
		kong.Name("lectern"),
		kong.Description(description),
		kong.Writers(s.Out, s.Err),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100, NoExpandSubcommands: true}),
		kong.Bind(s),
	)
	parser, err := kong.New(c, options...)
	if err != nil {
		return nil, err
	}
	parser.Model.HelpFlag.Help = "Print help about a command."
	for _, command := range parser.Model.Children {
		for _, child := range command.Children {
			child.Group = &kong.Group{Key: "commands", Title: "Commands:"}
			if command.Name == "import" && child.Detail == "" {
				child.Detail = linesHelp[child.Name]
			}
		}
	}
	return parser, nil
}

// fail prints the error in one line, and returns the exit code.
func (s *Session) fail(err error) int {
	switch _, usage := errors.AsType[usageError](err); {
	case err == nil:
		return exitOK
	case errors.Is(err, errRejected):
		return exitRejected
	case s.Context.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(s.Err, "lectern: interrupted")
		return exitInterrupted
	case usage:
		fmt.Fprintf(s.Err, "lectern: %s\n", oneLine(err))
		return exitUsage
	}
	fmt.Fprintf(s.Err, "lectern: %s%s\n", oneLine(err), advice(err))
	return exitFailure
}

// oneLine returns the text of err as one line, with each distinct line of err.
func oneLine(err error) string {
	var lines []string
	for _, line := range strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }) {
		// pgx tries an address with TLS and without, and reports the same line for both.
		if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}

// advice returns what to do about an error of the API.
func advice(err error) string {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "; nothing listens there: is it running, and the address right?"
	}
	if a, ok := errors.AsType[advisedError](err); ok {
		return "; " + a.advice
	}
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return ""
	}
	switch e.Code {
	case "unauthorized":
		return "; check the key (LECTERN_API_KEY, or lectern login) and that it is one of this project"
	case "insufficient_scope":
		return "; mint a key with that scope: lectern keys mint --scope"
	case "unavailable", "rate_limited":
		if e.RetryAfter < time.Hour { // otherwise the message says what to do
			return "; try again later"
		}
	case "":
		return "; check the URL"
	}
	return ""
}

// Note prints a message to standard error, unless --quiet is set.
func (s *Session) Note(format string, args ...any) {
	if !s.Quiet {
		fmt.Fprintf(s.Err, format+"\n", args...)
	}
}

// version is the flag --version.
type version bool

// BeforeReset prints the version, and ends the command.
func (version) BeforeReset(app *kong.Kong, s *Session) error {
	if err := (versionCommand{}).Run(s); err != nil {
		return err
	}
	app.Exit(exitOK)
	return nil
}

type versionCommand struct{}

// Run prints the version that the build noted.
func (versionCommand) Run(s *Session) error {
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
