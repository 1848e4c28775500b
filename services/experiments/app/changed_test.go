package app

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestChangedExperiments(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	created := map[string]int{"a": 3, "b": 2, "c": 1} // the list is in descending order of creation
	servicetest.CheckChanges(t, s, "", "/projects/pr_1/experiments", "id", "experiments", "experiment_changes",
		func(id string) { s.MustIngest(t, "experiments", newExperiment("pr_1", id, created[id], "draft")) })
}
