package app

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/region/internal/store"
)

// TestUpgrades checks that databases of all released versions upgrade in place.
func TestUpgrades(t *testing.T) {
	start := func(t testing.TB, b *servicetest.Backing) *servicetest.Service { return startOn(t, b, nil) }
	servicetest.CheckUpgrades(t, store.Schema(), start, "pr/ö", func(s *servicetest.Service) {
		put(t, s, "pr/ö", "\t\"ä€𝄞 '%\\", "America/Argentina/Buenos_Aires")
		put(t, s, "pr_none", "None", nil)
	}, "/projects/pr%2F%C3%B6")
}
