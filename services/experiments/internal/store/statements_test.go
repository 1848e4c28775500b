package store

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// statements returns all statements of the package.
func statements(t *testing.T) map[string]string {
	t.Helper()
	all := pgtest.PackageStatements(t, ".")
	pgtest.AddList(all, "experiments", experiments)
	pgtest.AddList(all, "experimentsOfStatus", experimentsOfStatus)
	pgtest.AddList(all, "experimentsChanged", experimentsChanged)
	pgtest.AddNumbers(all, numbers)
	pgtest.AddList(all, "statusChanges", statusChanges)
	return all
}

func TestGoldenStatements(t *testing.T) { pgtest.CheckGolden(t, statements(t)) }

// TestStatements checks that every statement restricts each of its tables to one project, and reaches it by an index that
// leads with the project. In a distributed database every statement is one task of one node.
func TestStatements(t *testing.T) {
	pgtest.CheckStatements(t, Schema(), statements(t), 17, putExperiment)
}
