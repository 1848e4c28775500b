package app

import (
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/experiments/internal/store"
)

func TestMain(m *testing.M) { servicetest.Main(m) }

const project = "pr_1"

type object = servicetest.Object

// with returns a copy of o with name set to value.
func with(o object, name string, value any) object { return servicetest.With(o, name, value) }

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

// shared returns a service that tests share, and a project of t's own.
func shared(t *testing.T) (s *servicetest.Service, project string) {
	t.Helper()
	return sharedService.Get(t, func(t testing.TB) *servicetest.Service { return start(t, nil) })
}

// at returns the time n seconds into 2022, as the API returns it.
func at(n int) string {
	return time.Date(2022, 1, 1, 0, 0, n, 0, time.UTC).Format(time.RFC3339Nano)
}

// newExperiment returns a valid experiment of a project, created at that second. No field is null.
func newExperiment(project, id string, created int, status string) object {
	return object{
		"project_id": project, "id": id, "experimentId": id, "flowId": "emb_1", "name": "Name of " + id, "hypothesis": "It helps.",
		"impact_metrics": []any{"conversion", "time \"on\" page"}, "no_impact_metrics": []any{},
		"created_at": at(created), "updated_at": at(created), "observations": "none", "outcome": "open",
		"attachments": `[ {"url":"https://example.com/a.png","name":"a"} ]`, "variants": `{"control":{"weight":1.0},"variant_a":{"weight":1}}`,
		"flow_ids": []any{"emb_1", "emb_2"}, "paused_showing_variant": "control", "winner_variant": "variant_a", "status": status,
	}
}

// given returns an ingested experiment as the API returns it.
func given(e object) object { return with(e, "project_id", servicetest.Absent) }

// demo is [shared] with the records of demonstrate.
func demo(t *testing.T) (s *servicetest.Service, project string) {
	t.Helper()
	s, project = shared(t)
	demonstrate(t, s, project)
	return s, project
}

// demonstrate stores an experiment of each status and one without a status.
func demonstrate(t *testing.T, s *servicetest.Service, project string) {
	t.Helper()
	s.MustIngest(t, "experiments",
		newExperiment(project, "ex_1", 1, "draft"), newExperiment(project, "ex_2", 2, "running"), newExperiment(project, "ex_3", 3, "paused"),
		newExperiment(project, "ex_4", 4, "winner_picked"), newExperiment(project, "ex_5", 5, "completed"), newExperiment(project, "ex_6", 6, "discarded"),
		newExperiment(project, "ex_8", 2, "running"), with(newExperiment(project, "ex_7", 7, "draft"), "status", nil),
		newExperiment("pr_2", "ex_other", 9, "running"))
}

// fill stores n experiments of project in bulk, in threes of equal times.
func fill(t testing.TB, s *servicetest.Service, project string, n int) {
	t.Helper()
	s.Exec(t, `
		INSERT INTO experiments (project_id, experiment_id, flow_id, created_at, updated_at, status, changes)
		SELECT $1, 'ex_' || lpad(i::text, 7, '0'), 'emb_1', '2022-01-01Z'::timestamptz + (i / 3) * interval '1 s', '2022-01-01Z',
		       (ARRAY['draft', 'running', NULL])[1 + i % 3], 1
		FROM generate_series(1, $2::int) i`, project, n)
	s.Exec(t, `ANALYZE`)
}
