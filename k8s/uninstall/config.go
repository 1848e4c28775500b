package uninstall

import (
	"io"

	"github.com/lectern-dev/lectern/k8s/cluster"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// Config holds the settings of the uninstall job, which the program reads from environment variables.
type Config struct {
	Cluster   cluster.Config
	Lease     cluster.Lease
	Telemetry telemetry.Config

	// LogOutput takes the log. Nil: standard error.
	LogOutput io.Writer `env:"-"`
}
