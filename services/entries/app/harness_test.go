package app

import (
	"fmt"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

func TestMain(m *testing.M) { servicetest.Main(m, service.NewCommand("serve", Run)) }

// start runs the service over the test's own databases.
func start(t testing.TB, environ map[string]string) *servicetest.Service {
	t.Helper()
	return startOn(t, servicetest.NewBacking(t, store.Schema()), environ)
}

func startOn(t testing.TB, b *servicetest.Backing, environ map[string]string) *servicetest.Service {
	t.Helper()
	return servicetest.Start(t, b, Run, common, environ)
}

var sharedService servicetest.Shared

// shared returns a service that tests share, a project of t's own, and a key of the project.
func shared(t *testing.T) (s *servicetest.Service, project, key string) {
	t.Helper()
	s, project = sharedService.Get(t, func(t testing.TB) *servicetest.Service { return start(t, nil) })
	return s, project, s.Keys.Key(project)
}

// common returns the part of a configuration that all services have.
func common(c *Config) *service.Config { return &c.Config }

// at returns the time n seconds into 2022.
func at(n int) time.Time { return time.Date(2022, 1, 1, 0, 0, n, 0, time.UTC) }

// object is a decoded JSON record.
type object = servicetest.Object

// newEntry returns a valid entry of a project.
func newEntry(project, id string, updated time.Time) object {
	return object{
		"entry_id": id, "group_id": "gr_1", "project_id": project, "embeddable_id": "emb_1", "contact_id": "co_1",
		"created_at": "2022-01-01T00:00:00Z", "updated_at": updated.UTC().Format(time.RFC3339Nano),
		"entry_data": `{"entry":"` + id + `"}`,
	}
}

// pageView returns a valid page view of an entry.
func pageView(project, id string, page int, when time.Time) object {
	return object{
		"entry_id": id, "contact_id": "co_1", "project_id": project, "group_id": "gr_1", "embeddable_id": "emb_1",
		"embeddable_version_number": 3, "timestamp": when.UTC().Format(time.RFC3339Nano),
		"page_id": fmt.Sprintf("pg_%d", page), "page_key": fmt.Sprintf("page-%d", page), "page_index": page,
		"max_page_id": "pg_9", "max_page_key": "page-9", "max_page_index": 9, "total_pages": 10,
		"event_type": "flowpage.viewed", "view_type": "flowpage", "custom_event_name": nil, "custom_event_props": nil,
	}
}

// fill stores n entries of project in bulk, in pairs of equal times, with one page view each.
func fill(t testing.TB, s *servicetest.Service, project string, n int) {
	t.Helper()
	s.Exec(t, `
		INSERT INTO entries
		SELECT $1, 'en_' || lpad(i::text, 7, '0'), 'gr_1', 'emb_1', 'co_1',
		       '2022-01-01Z'::timestamptz + (i % 1000) * interval '1 s', '2022-01-01Z'::timestamptz + (i / 2) * interval '1 s',
		       '{"n":' || i || '}', i
		FROM generate_series(1, $2::int) i`, project, n)
	s.Exec(t, `
		INSERT INTO events (project_id, event_key, entry_id, contact_id, group_id, embeddable_id, "timestamp",
		                    page_id, page_key, page_index, event_type, view_type, seq)
		SELECT $1, decode(md5($1 || i), 'hex'), 'en_' || lpad(i::text, 7, '0'), 'co_1', 'gr_1', 'emb_1',
		       '2022-01-01Z'::timestamptz + i * interval '1 s', 'pg_1', 'page-1', 1, 'flowpage.viewed', 'flowpage', $2::int + i
		FROM generate_series(1, $2::int) i`, project, n)
	s.Exec(t, `ANALYZE`)
}
