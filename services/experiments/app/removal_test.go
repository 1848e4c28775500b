package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestRemoveProject(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	demonstrate(t, s, project)
	s.MustIngest(t, "experiments", with(newExperiment(project, "ex_1", 1, "running"), "updated_at", at(20)))
	servicetest.CheckProjectRemoval(t, s, startOn(t, s.Backing, map[string]string{"REMOVE_DATABASE_URL": ""}), project,
		`{"experiments":8,"status_changes":9}`,
		`{"experiments":0,"status_changes":0}`)
	// An experiment that is stored later has a history of its own.
	s.MustIngest(t, "experiments", newExperiment(project, "ex_1", 1, "paused"))
	if diff := cmp.Diff([]string{at(1) + " paused"}, history(t, s, project, "ex_1")); diff != "" {
		t.Error(diff)
	}
}
