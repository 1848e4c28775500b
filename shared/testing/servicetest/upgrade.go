package servicetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// CheckUpgrades is [pgtest.CheckUpgrades] for a service, which start runs. fill stores records of project. The service
// answers requests for paths, with a key of project, as the service of the version that made the dump.
func CheckUpgrades(t *testing.T, schema migrate.Schema, start func(testing.TB, *Backing) *Service, project string, fill func(*Service), paths ...string) {
	t.Helper()
	on := func(t *testing.T, db pgtest.DB) *Service {
		redis := redistest.Start(t)
		return start(t, &Backing{DB: db, Redis: redis, Keys: authtest.New(t, redis.URL)})
	}
	pgtest.CheckUpgrades(t, schema, func(t *testing.T, db pgtest.DB) { fill(on(t, db)) }, func(t *testing.T, db pgtest.DB) string {
		s := on(t, db)
		key := s.Keys.Key(project)
		var answers strings.Builder
		for _, path := range paths {
			a := s.Get(t, key, path)
			fmt.Fprintf(&answers, "GET %s\n%d %s\n\n", path, a.Status, a.Body)
		}
		return answers.String()
	})
}
