//go:debug x509usefallbackroots=1

// Command entries serves a project's entries, their events and page views, the change feed and the insights. The
// internal listener takes in records, and removes records for administrators. The argument migrate migrates the
// database instead.
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
