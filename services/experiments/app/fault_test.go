package app

import (
	"encoding/json"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/experiments/internal/store"
)

// reads returns reads with a key, which the service checks only if EXPERIMENTS_AUTH requires it.
func reads(s *servicetest.Service) servicetest.Reads {
	return servicetest.Reads{Service: s, Key: s.Keys.Key(project), Project: project, Paths: []string{"/experiments", "/experiments?status=draft", "/experiments/ex_1", "/experiments/ex_1/history"}}
}

func TestFaultsOfRedis(t *testing.T) {
	t.Parallel()
	for _, access := range []string{"none", "required"} {
		s := start(t, map[string]string{"EXPERIMENTS_AUTH": access, "ANON_RATE_LIMIT": "1000000"})
		s.MustIngest(t, "experiments", newExperiment(project, "ex_1", 1, "draft"))
		servicetest.CheckRedisFaults(t, reads(s))
	}
}

func TestFaultsOfPostgres(t *testing.T) {
	t.Parallel()
	b, server := servicetest.NewBreakable(t, store.Schema())
	s := startOn(t, b, servicetest.ShortTimeouts)
	s.AwaitIngest(t, "experiments", newExperiment(project, "ex_1", 1, "draft"))
	line, err := json.Marshal(newExperiment(project, "ex_2", 2, "draft"))
	if err != nil {
		t.Fatal(err)
	}
	servicetest.CheckPostgresFaults(t, server, reads(s), "experiments", string(line))
}
