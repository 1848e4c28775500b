// Command experiments serves operations 7 and 8: a project's experiments.
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
