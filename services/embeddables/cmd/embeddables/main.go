// Command embeddables serves operations 5 and 6: a project's embeddables and their versions.
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
