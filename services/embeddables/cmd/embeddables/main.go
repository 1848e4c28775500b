//go:debug x509usefallbackroots=1

// Command embeddables serves a project's embeddables and their versions (operations 5 and 6 of the API), and migrates
// their database.
package main

import (
	"os"

	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/embeddables/app"
)

func main() {
	os.Exit(service.Main("embeddables", os.Args[1:], os.Stderr,
		service.NewCommand("serve", app.Run),
		service.NewCommand("migrate", app.Migrate),
	))
}
