package app

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/routes"
)

// TestDescriptionHolds checks that the service has exactly the routes, parameters and values of its description.
func TestDescriptionHolds(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.CheckDescription(t, routes.Embeddables, s.Keys.Key("pr_demo"))
}
