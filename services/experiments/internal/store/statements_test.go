package store

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/postgres/insert"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// statements returns all statements of the package.
func statements(t *testing.T) map[string]string {
	t.Helper()
	all := pgtest.PackageStatements(t, ".")
	pgtest.AddList(all, "experiments", experiments)
	pgtest.AddList(all, "experimentsOfStatus", experimentsOfStatus)
	pgtest.AddList(all, "statusChanges", statusChanges)
	return all
}

func TestGoldenStatements(t *testing.T) { pgtest.CheckGolden(t, statements(t)) }

// TestEveryStatementIsOfOneProject checks that every statement restricts each of its tables to one project, and reaches
// it by an index that leads with the project.
func TestEveryStatementIsOfOneProject(t *testing.T) {
	all := statements(t)
	if len(all) < 10 {
		t.Errorf("only %d statements were found", len(all))
	}
	if pgtest.Server(t).Citus() {
		t.Skip("plans of plain Postgres; those of Citus are below")
	}
	pgtest.CheckOneProject(t, pgtest.Database(t, Schema()), all)
}

// TestEveryStatementIsOneTask checks that in a distributed database every statement is one task of one node.
func TestEveryStatementIsOneTask(t *testing.T) {
	pgtest.NeedCitus(t)
	all := statements(t)
	all["putExperiment of three"] = insert.Rows(putExperiment, 3)
	pgtest.CheckOneTask(t, pgtest.Database(t, Schema()), all, nil)
}
