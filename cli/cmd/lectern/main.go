// Command lectern runs the platform on this machine, gets data in and out, and manages API keys. See
// lectern --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once, as if none had been caught.
	context.AfterFunc(ctx, stop)
	environ := map[string]string{}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		environ[name] = value
	}
	os.Exit(command.Main(&command.Session{
		Context: ctx, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: environ, Now: time.Now,
	}, os.Args[1:]))
}
