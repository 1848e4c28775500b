//go:debug x509usefallbackroots=1

// Command region serves the look-up of a project's region and offset, the projects themselves, and the administration
// of API keys. The command also serves the published description of the API with its reference page. The argument
// migrate migrates the database instead.
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
