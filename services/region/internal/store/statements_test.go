package store

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// statements returns all statements of the package about one project.
func statements(t *testing.T) map[string]string {
	t.Helper()
	all := pgtest.PackageStatements(t, ".")
	if len(all) != 7 {
		t.Errorf("%d statements were found", len(all))
	}
	delete(all, "getTitles") // it is about several projects, each by its primary key
	return all
}

// TestEveryStatementIsOfOneProject checks that every statement about a project is restricted to it, and uses an index
// that leads with the project.
func TestEveryStatementIsOfOneProject(t *testing.T) {
	all := statements(t)
	if pgtest.Server(t).Citus() {
		t.Skip("plans of plain Postgres; those of Citus are below")
	}
	pgtest.CheckOneProject(t, pgtest.Database(t, Schema()), all)
}

// TestEveryStatementIsOneTask checks that in a distributed database every statement is one task of one node.
func TestEveryStatementIsOneTask(t *testing.T) {
	pgtest.NeedCitus(t)
	pgtest.CheckOneTask(t, pgtest.Database(t, Schema()), statements(t), nil)
}
