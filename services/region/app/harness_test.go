package app

import (
	"encoding/json"
	"testing"

	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/region/internal/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// object is a decoded JSON record.
type object = map[string]any

// start runs the service over the test's own databases.
func start(t testing.TB, environ map[string]string) *servicetest.Service {
	t.Helper()
	return startOn(t, servicetest.NewBacking(t, store.Schema()), environ)
}

func startOn(t testing.TB, b *servicetest.Backing, environ map[string]string) *servicetest.Service {
	t.Helper()
	return servicetest.Start(t, b, Run, func(c *Config) *service.Config { return &c.Config }, environ)
}

// put stores a project. A nil region means that the project has no region.
func put(t testing.TB, s *servicetest.Service, id, title string, region any) servicetest.Ingested {
	t.Helper()
	return s.MustIngest(t, "projects", object{"id": id, "title": title, "region": region})
}

// text returns v as JSON.
func text(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
