//go:debug x509usefallbackroots=1

// Command console serves the web console, a static application. The service has no database.
package main

import (
	"os"

	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/console/app"
)

func main() {
	os.Exit(service.Main("console", os.Args[1:], os.Stderr, service.NewCommand("serve", app.Run)))
}
