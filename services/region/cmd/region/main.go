// Command region serves operation 9, a project's region and offset, and the projects themselves. It also serves the
// published description of the API with its reference page.
package main

import (
	"os"

	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/region/app"
)

func main() {
	os.Exit(service.Main("region", os.Args[1:], os.Stderr,
		service.NewCommand("serve", app.Run),
		service.NewCommand("migrate", app.Migrate),
	))
}
