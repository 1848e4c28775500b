package app

import (
	"encoding/json"
	"io"
	"net/http"
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
	s := start(t, nil)
	s.MustIngest(t, "embeddables", newEmbeddable(project, "emb_1"))
	s.MustIngest(t, "embeddable-versions", newVersion(project, "emb_1", 1))
	servicetest.CheckRedisFaults(t, reads(s))
}

func TestFaultsOfPostgres(t *testing.T) {
	b, server := servicetest.NewBreakable(t, store.Schema())
	s := startOn(t, b, map[string]string{"DATABASE_ACQUIRE_TIMEOUT": "1s", "STATEMENT_TIMEOUT": "2s", "INGEST_RETRY_TIME": "1s"})
	s.MustIngest(t, "embeddables", newEmbeddable(project, "emb_1"))
	s.MustIngest(t, "embeddable-versions", newVersion(project, "emb_1", 1))
	line, err := json.Marshal(newVersion(project, "emb_1", 2))
	if err != nil {
		t.Fatal(err)
	}
	servicetest.CheckPostgresFaults(t, server, reads(s), "embeddable-versions", string(line))
}

// TestFaultInTheMiddle checks that a client cannot mistake a list or a long definition that breaks after its first byte
// for a complete one.
func TestFaultInTheMiddle(t *testing.T) {
	s := start(t, nil)
	key := s.Keys.Key(project)
	fill(t, s, project, 100_000)
	s.MustIngest(t, "embeddables", servicetest.With(newEmbeddable(project, "emb_long"), "json_string_prod", long(12<<20)))
	for path, table := range map[string]string{"/embeddables": "embeddables", "/embeddables/emb_long": "definitions"} {
		req, err := http.NewRequest("GET", s.URL+"/projects/pr_1"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", key)
		req.Header.Set("Accept-Encoding", "identity") // a compressed body may be sent completely before the fault
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(resp.Body, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		s.Exec(t, `ALTER TABLE `+table+` RENAME TO gone`) // from now on every statement fails
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		s.Exec(t, `ALTER TABLE gone RENAME TO `+table)
		if err == nil {
			t.Errorf("%s: a broken answer looks complete", path)
		}
	}
}

// TestIncompleteDefinition checks that a definition with a missing part is never returned as complete.
func TestIncompleteDefinition(t *testing.T) {
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
