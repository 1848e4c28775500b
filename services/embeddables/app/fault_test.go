package app

import (
	"encoding/json"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/embeddables/internal/store"
)

func reads(s *servicetest.Service) servicetest.Reads {
	return servicetest.Reads{Service: s, Key: s.Keys.Key(project), Project: project, Paths: []string{
		"/embeddables", "/embeddables/emb_1", "/embeddables/emb_1/versions", "/embeddables/emb_1/versions/1",
	}}
}

func TestFaultsOfRedis(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.MustIngest(t, "embeddables", newEmbeddable(project, "emb_1"))
	s.MustIngest(t, "embeddable-versions", newVersion(project, "emb_1", 1))
	servicetest.CheckRedisFaults(t, reads(s))
}

func TestFaultsOfPostgres(t *testing.T) {
	t.Parallel()
	b, server := servicetest.NewBreakable(t, store.Schema())
	s := startOn(t, b, servicetest.ShortTimeouts)
	s.AwaitIngest(t, "embeddables", newEmbeddable(project, "emb_1"))
	s.AwaitIngest(t, "embeddable-versions", newVersion(project, "emb_1", 1))
	line, err := json.Marshal(newVersion(project, "emb_1", 2))
	if err != nil {
		t.Fatal(err)
	}
	servicetest.CheckPostgresFaults(t, server, reads(s), "embeddable-versions", string(line))
}

// TestFaultInTheMiddle checks that a client cannot mistake a list that breaks after its first byte for a complete one.
// TestIncompleteDefinition checks the same of a long definition.
func TestFaultInTheMiddle(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	fill(t, s, project, 8000)
	s.BreakRows(t, "embeddables", "title", "embeddable_id = 'emb_0008000'")
	s.CheckBrokenOff(t, s.Keys.Key(project), "/projects/pr_1/embeddables", "application/json", "application/x-ndjson")
}

// TestIncompleteDefinition checks that a definition with a missing part is never returned as complete.
func TestIncompleteDefinition(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key := s.Keys.Key(project)
	const part = 256 << 10
	for n, missing := range map[int]int{2 * part: 1, 3 * part: 0, 8 * part: 7, 7*part + 1: 5} {
		s.MustIngest(t, "embeddables", servicetest.With(newEmbeddable(project, "emb_1"), "json_string_prod", long(n)))
		s.Exec(t, `DELETE FROM definitions WHERE part = $1`, missing)
		a := s.Get(t, key, "/projects/pr_1/embeddables/emb_1")
		if a.Status == 200 && a.Err == nil || a.Status != 200 && a.Status != 500 {
			t.Errorf("%d bytes without part %d: %d, %d bytes, %v", n, missing, a.Status, len(a.Body), a.Err)
		}
		s.Exec(t, `TRUNCATE definitions, embeddables`)
	}
}
