package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/roots"
)

// Exit codes of a service's command.
const (
	exitOK    = 0
	exitFault = 1 // the command ran and failed
	exitUsage = 2 // the command line or the environment is not valid
)

// gcPercent is the value of GOGC unless the environment sets GOGC. The live heap of a service is small compared with
// the garbage of its requests. With Go's default of 100, the garbage collector would run every few megabytes. The
// higher value costs about 10 MB of memory under load.
const gcPercent = 300

// Command is one command of a service's program, such as serve or migrate. [NewCommand] makes a Command for [Main].
type Command struct {
	name string
	run  func(program string, stderr io.Writer) int
}

// NewCommand returns a command that loads a configuration of type C from the environment and calls do with it.
func NewCommand[C any](name string, do func(context.Context, C) error) Command {
	return Command{name, func(program string, stderr io.Writer) int { return run(program, name, stderr, do) }}
}

// Main runs the command that args name, or "serve" if args are empty. The environment configures the command. Main
// returns the exit code: 0 done, 1 failed, 2 wrong arguments or settings. The first SIGINT or SIGTERM shuts the
// command down gracefully. The second signal ends the process at once.
func Main(name string, args []string, stderr io.Writer, commands ...Command) int {
	var names []string
	for _, c := range commands {
		if c.name == command(args) {
			return c.run(name, stderr)
		}
		names = append(names, c.name)
	}
	fmt.Fprintf(stderr, "usage: %s %s\nConfigured by environment variables: see docs/reference/settings.md.\n", name, strings.Join(names, " | "))
	return exitUsage
}

// run loads the configuration of a program's command from the environment, calls do, and returns the exit code. run
// writes an error to stderr, and sets the garbage collector to gcPercent unless the environment has GOGC.
func run[C any](program, command string, stderr io.Writer, do func(context.Context, C) error) int {
	var cfg C
	var trusted roots.Config
	err := config.Load(&trusted, nil)
	if err == nil {
		err = trusted.Trust()
	}
	if err = errors.Join(err, config.LoadFor(command, &cfg, nil)); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", program, err)
		return exitUsage
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills
	if err := do(ctx, cfg); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", program, roots.Explain(err))
		if _, ok := errors.AsType[*config.Fault](err); ok {
			return exitUsage
		}
		return exitFault
	}
	return exitOK
}

func command(args []string) string {
	switch len(args) {
	case 0:
		return "serve"
	case 1:
		return args[0]
	}
	return ""
}
