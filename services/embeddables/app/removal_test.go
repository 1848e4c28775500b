package app

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestRemoveProject(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	demonstrate(t, s, project)
	key := s.Keys.Key(project)
	fill(t, s, project, 9_997)
	servicetest.CheckProjectRemoval(t, s, startOn(t, s.Backing, map[string]string{"REMOVE_DATABASE_URL": ""}), project,
		`{"embeddables":10000,"versions":0,"definitions":0,"more":true}`,
		`{"embeddables":0,"versions":3,"definitions":7}`,
		`{"embeddables":0,"versions":0,"definitions":0}`)
	if a := s.Get(t, key, "/projects/"+project+"/embeddables"); a.Status != 200 || string(a.Body) != "[]\n" && string(a.Body) != "[]" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	// Later records are stored completely.
	s.MustIngest(t, "embeddables", newEmbeddable(project, "emb_1"))
	if a := s.Get(t, key, fmt.Sprintf("/projects/%s/embeddables/emb_1", project)); a.Status != 200 {
		t.Errorf("an embeddable that came later: %d %s", a.Status, a.Body)
	}
}

// purge purges the project's definitions, and checks the answer.
func purge(t *testing.T, s *servicetest.Service, project, body, want string) {
	t.Helper()
	a := s.DoInternal(t, servicetest.Request{
		Method: "POST", Path: "/internal/projects/" + project + "/definitions/purge", Key: servicetest.AdminKey,
		Body: strings.NewReader(body), Headers: map[string]string{"Content-Type": "application/json"},
	})
	if got := strings.TrimSpace(string(a.Body)); !strings.HasPrefix(got, want) {
		t.Errorf("a purge with %s: %d %s; want %s", body, a.Status, got, want)
	}
}

// TestPurgeDefinitions checks that a purge removes the definitions that nothing refers to, and no others.
func TestPurgeDefinitions(t *testing.T) {
	t.Parallel()
	s, project, key := demo(t)
	purge(t, s, project, `{}`, `{"definitions":0}`)
	purge(t, s, "pr_never", `{}`, `{"definitions":0}`)
	s.Exec(t, `SELECT 1 / (SELECT count(*) = 0 FROM embeddable_changes WHERE project_id = 'pr_never')::int`) // nothing is stored
	// A definition of three parts in production, then of a version alone, and 2,050 that are replaced.
	kept := long(600 << 10)
	embeddables := make([]any, 2_050)
	for i := range embeddables {
		embeddables[i] = newEmbeddable(project, fmt.Sprint("replaced_", i))
	}
	s.MustIngest(t, "embeddables", append(embeddables, servicetest.With(newEmbeddable(project, "emb_1"), "json_string_prod", kept))...)
	s.MustIngest(t, "embeddable-versions", servicetest.With(newVersion(project, "emb_1", 1), "json_string", kept))
	s.MustIngest(t, "embeddables", servicetest.With(newEmbeddable(project, "emb_1"), "json_string_prod", long(600<<10+1)))
	for i := range embeddables {
		embeddables[i] = servicetest.With(newEmbeddable(project, fmt.Sprint("replaced_", i)), "json_string_prod", `{}`)
	}
	s.MustIngest(t, "embeddables", embeddables...)

	// The first definition of emb_1, of demo, is the one more.
	purge(t, s, project, `{"dry_run": true}`, `{"definitions":2051,"dry_run":true}`)
	purge(t, s, project, `{"dry_run": false}`, `{"definitions":2000,"more":true}`)
	purge(t, s, project, `{}`, `{"definitions":51}`)
	purge(t, s, project, `{"dry_run": 1}`, `{"error":{"code":"invalid_body","message":"\"dry_run\" was given as 1; allowed: true or false."`)
	if got := definitionOf(t, s, project, key, "emb_1/versions/1", "json_string"); got != kept {
		t.Errorf("the definition of a version comes back as %d bytes", len(got))
	}
	for _, id := range []string{"emb_1", "emb_2", "emb_3", "replaced_0", "emb_2/versions/10"} {
		if a := s.Get(t, key, "/projects/"+project+"/embeddables/"+id); a.Status != 200 || a.Err != nil {
			t.Errorf("%s: %d %v", id, a.Status, a.Err)
		}
	}
}

// TestPurgeBesideIngest checks that an embeddable always has its definition while definitions are purged, even if it
// takes back one that it had.
func TestPurgeBesideIngest(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	done, purged := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(purged)
		for ended := false; !ended; {
			select {
			case <-done:
				ended = true
			default:
			}
			purge(t, s, project, `{}`, `{"definitions":`)
		}
	}()
	for i := range 200 {
		want := fmt.Sprintf(`{"of":%d}`, i%2)
		s.MustIngest(t, "embeddables", servicetest.With(newEmbeddable(project, "emb_1"), "json_string_prod", want))
		if got := definitionOf(t, s, project, key, "emb_1", "json_string_prod"); got != want {
			t.Errorf("round %d: %s; want %s", i, got, want)
		}
	}
	close(done)
	<-purged
	purge(t, s, project, `{}`, `{"definitions":0}`)
}

// TestRemovalBesideIngest checks that an embeddable that is stored during the removal of its project has its definition.
func TestRemovalBesideIngest(t *testing.T) {
	t.Parallel()
	if pgtest.Server(t).Citus() {
		t.Skip("waits for locks of one server")
	}
	s := start(t, nil)
	project, one := "pr_1", newEmbeddable("pr_1", "emb_1")
	s.MustIngest(t, "embeddables", one)
	hold, err := pgtest.Connect(t, s.DB.OwnerURL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hold.Exec(t.Context(), `SELECT FROM definitions FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	looks := pgtest.Connect(t, s.DB.OwnerURL)
	waiting := func(n int) (ok bool) {
		const wait = `SELECT count(*) = $1 FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`
		return looks.QueryRow(t.Context(), wait, n).Scan(&ok) == nil && ok
	}
	var both sync.WaitGroup
	both.Go(func() {
		if a := s.DoInternal(t, servicetest.Request{Method: "DELETE", Path: "/internal/projects/" + project, Key: servicetest.AdminKey}); a.Status != 200 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
	eventually.True(t, "the removal waits for the definition", func() bool { return waiting(1) })
	stored := make(chan struct{})
	both.Go(func() { s.MustIngest(t, "embeddables", one); close(stored) })
	eventually.True(t, "the embeddable is stored, or waits for the removal", func() bool {
		select {
		case <-stored:
			return true
		default:
			return waiting(2)
		}
	})
	if err := hold.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	both.Wait()
	if a := s.Get(t, s.Keys.Key(project), "/projects/"+project+"/embeddables/emb_1"); a.Status != 200 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
