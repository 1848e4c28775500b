package app

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/experiments/internal/store"
)

// TestUpgrades checks that databases of all released versions upgrade in place.
func TestUpgrades(t *testing.T) {
	start := func(t testing.TB, b *servicetest.Backing) *servicetest.Service { return startOn(t, b, nil) }
	servicetest.CheckUpgrades(t, store.Schema(), start, project, func(s *servicetest.Service) {
		demonstrate(t, s, project)
		s.MustIngest(t, "experiments", with(newExperiment(project, "ex ' %\\ ü", 9, "running"), "variants", ` {"control":{"weight":1e400}} `))
		s.MustIngest(t, "experiments", with(newExperiment(project, "ex_2", 2, "completed"), "updated_at", at(20)))
	},
		"/projects/pr_1/experiments", "/projects/pr_1/experiments/ex%20%27%20%25%5C%20%C3%BC", "/projects/pr_1/experiments/ex_2/history")
}
