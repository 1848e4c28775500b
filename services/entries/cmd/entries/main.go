// Command entries serves operations 1 to 4: a project's entries, their events and page views.
package main

import (
	"os"

	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/entries/app"
)

func main() {
	os.Exit(service.Main("entries", os.Args[1:], os.Stderr,
		service.NewCommand("serve", app.Run),
		service.NewCommand("migrate", app.Migrate),
	))
}
