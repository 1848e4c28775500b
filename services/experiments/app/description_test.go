package app

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/routes"
)

// The service has the routes, parameters and values that are described, and no others.
func TestDescriptionHolds(t *testing.T) {
	s := start(t, nil)
	s.CheckDescription(t, routes.Experiments, s.Keys.Key("pr_demo"))
}
