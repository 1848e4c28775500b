package app

import (
	"fmt"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/embeddables/internal/store"
)

func TestMain(m *testing.M) { servicetest.Main(m) }

const project = "pr_1"

type object = servicetest.Object

// start runs the service over the test's own databases.
func start(t testing.TB, environ map[string]string) *servicetest.Service {
	t.Helper()
	return startOn(t, servicetest.NewBacking(t, store.Schema()), environ)
}

func startOn(t testing.TB, b *servicetest.Backing, environ map[string]string) *servicetest.Service {
	t.Helper()
	return servicetest.Start(t, b, Run, func(c *Config) *service.Config { return &c.Config }, environ)
}

var sharedService servicetest.Shared

// shared returns a service that tests share, a project of t's own, and a key of the project.
func shared(t *testing.T) (s *servicetest.Service, project, key string) {
	t.Helper()
	s, project = sharedService.Get(t, func(t testing.TB) *servicetest.Service { return start(t, nil) })
	return s, project, s.Keys.Key(project)
}

// newEmbeddable returns a valid embeddable of a project.
func newEmbeddable(project, id string) object {
	return object{
		"embeddable_id": id, "title": "Title of " + id, "group_id": "gr_1", "project_id": project,
		"json_string_prod": `{"flow":"` + id + `"}`,
	}
}

// newVersion returns a valid version of an embeddable.
func newVersion(project, id string, number int) object {
	return object{
		"embeddable_id": id, "project_id": project, "version_number": number,
		"saved_at":    time.Date(2022, 1, 1, 0, 0, number, 0, time.UTC).Format(time.RFC3339Nano),
		"json_string": fmt.Sprintf(`{"flow":"%s","version":%d}`, id, number),
	}
}

// listed returns a version as a list shows it.
func listed(version object) object {
	return object{
		"embeddable_id": version["embeddable_id"], "version_number": float64(version["version_number"].(int)), "saved_at": version["saved_at"],
	}
}

// demo is [shared] with the records of demonstrate.
func demo(t *testing.T) (s *servicetest.Service, project, key string) {
	t.Helper()
	s, project, key = shared(t)
	demonstrate(t, s, project)
	return s, project, key
}

// demonstrate stores three embeddables: the second with three versions, the others with none.
func demonstrate(t *testing.T, s *servicetest.Service, project string) {
	t.Helper()
	s.MustIngest(t, "embeddables", newEmbeddable(project, "emb_2"), newEmbeddable(project, "emb_1"), newEmbeddable(project, "emb_3"),
		newEmbeddable("pr_2", "emb_other"))
	s.MustIngest(t, "embeddable-versions", newVersion(project, "emb_2", 10), newVersion(project, "emb_2", 2), newVersion(project, "emb_2", 1),
		newVersion("pr_2", "emb_other", 7))
}

// fill stores n embeddables of project in bulk.
func fill(t testing.TB, s *servicetest.Service, project string, n int) {
	t.Helper()
	s.Exec(t, `
		INSERT INTO embeddables
		SELECT $1, 'emb_' || lpad(i::text, 7, '0'), 'Title ' || i, 'gr_1', sha256('{}') FROM generate_series(1, $2::int) i`, project, n)
	s.Exec(t, `INSERT INTO definitions VALUES ($1, sha256('{}'), 0, '{}')`, project)
	s.Exec(t, `ANALYZE`)
}
