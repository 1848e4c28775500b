package app

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/routes"
)

// TestDescriptionHolds checks that the service has exactly the routes, parameters and values of its description.
func TestDescriptionHolds(t *testing.T) {
	t.Parallel()
	s, _, _ := shared(t)
	s.MustIngest(t, "entries", newEntry("pr_demo", "en_1", at(1))) // without an entry the feed would wait for a change
	s.CheckDescription(t, routes.Entries, s.Keys.Key("pr_demo"))
}
