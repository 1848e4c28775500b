//go:debug x509usefallbackroots=1

// Command experiments serves a project's experiments, with the history of their statuses. The internal listener takes
// in experiments, and removes the experiments of a project for administrators. The argument migrate migrates the
// database instead.
package main

import (
	"os"

	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/experiments/app"
)

func main() {
	os.Exit(service.Main("experiments", os.Args[1:], os.Stderr,
		service.NewCommand("serve", app.Run),
		service.NewCommand("migrate", app.Migrate),
	))
}
