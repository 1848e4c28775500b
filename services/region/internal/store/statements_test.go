package store

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// statements are all that the service says of projects; announce is of none, and is looked at apart.
func statements(t *testing.T) map[string]string {
	t.Helper()
	all := pgtest.PackageStatements(t, ".")
	if len(all) != 6 {
		t.Errorf("%d statements were found", len(all))
	}
	return all
}

// Every statement of a project says so, and reaches it by an index that leads with it.
func TestEveryStatementIsOfOneProject(t *testing.T) {
	all := statements(t)
	if pgtest.Server(t).Citus() {
		t.Skip("plans of plain Postgres; those of Citus are below")
	}
	delete(all, "announce")
	pgtest.CheckOneProject(t, pgtest.Database(t, Schema()), all)
}

// Where tables are distributed every statement is one task of one machine.
func TestEveryStatementIsOneTask(t *testing.T) {
	pgtest.NeedCitus(t)
	pgtest.CheckOneTask(t, pgtest.Database(t, Schema()), statements(t), map[string]pgtest.NotOneTask{
		"announce": {NoTable: true, Why: "it tells those who listen at the coordinator, whatever machine the project is on"},
	})
}
