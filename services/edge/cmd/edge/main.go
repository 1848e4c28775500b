//go:debug x509usefallbackroots=1

// Command edge routes requests to the services by their paths. The edge has no database.
package main

import (
	"os"

	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/edge/app"
)

func main() {
	os.Exit(service.Main("edge", os.Args[1:], os.Stderr, service.NewCommand("serve", app.Run)))
}
