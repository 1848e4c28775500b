//go:debug x509usefallbackroots=1

// Command proxy is the credential proxy: serve (the default) or migrate, configured by the environment. This build
// reads its policy from a folder of manifests.
package main

import (
	"io"
	"log"
	"os"

	"github.com/lectern-dev/lectern/proxy/app"
	"github.com/lectern-dev/lectern/shared/service"
)

func main() {
	// net/http logs the bytes that a target sends on an idle connection, which may contain a credential.
	log.SetOutput(io.Discard)
	os.Exit(service.Main("proxy", os.Args[1:], os.Stderr,
		service.NewCommand("serve", app.Run),
		service.NewCommand("migrate", app.Migrate),
	))
}
