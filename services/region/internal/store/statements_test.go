package store

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// statements returns all statements about projects. announce is about none and is checked separately.
func statements(t *testing.T) map[string]string {
	t.Helper()
	all := pgtest.PackageStatements(t, ".")
	if len(all) != 6 {
		t.Errorf("%d statements were found", len(all))
	}
	return all
}

// Every statement about a project is restricted to it, and uses an index that leads with the project.
func TestEveryStatementIsOfOneProject(t *testing.T) {
	all := statements(t)
	if pgtest.Server(t).Citus() {
		t.Skip("plans of plain Postgres; those of Citus are below")
	}
	delete(all, "announce")
	pgtest.CheckOneProject(t, pgtest.Database(t, Schema()), all)
}

// In a distributed database every statement is one task of one machine.
func TestEveryStatementIsOneTask(t *testing.T) {
	pgtest.NeedCitus(t)
	pgtest.CheckOneTask(t, pgtest.Database(t, Schema()), statements(t), map[string]pgtest.NotOneTask{
		"announce": {NoTable: true, Why: "it tells those who listen at the coordinator, whatever machine the project is on"},
	})
}
