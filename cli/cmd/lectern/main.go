//go:debug x509usefallbackroots=1

// Command lectern runs the platform on this machine, gets data in and out, and manages API keys. lectern --help lists
// the commands.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/lectern-dev/lectern/cli/internal/command"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/roots"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once, as if none had been caught.
	context.AfterFunc(ctx, stop)
	if err := (roots.Config{CAFile: os.Getenv("CA_FILE")}).Trust(); err != nil {
		fmt.Fprintln(os.Stderr, "lectern:", err)
		os.Exit(shell.ExitUsage)
	}
	os.Exit(command.Main(shell.ProcessSession(ctx), os.Args[1:]))
}
