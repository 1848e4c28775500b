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
	pgtest.AddList(all, "embeddables", embeddables)
	pgtest.AddList(all, "embeddablesChanged", embeddablesChanged)
	pgtest.AddList(all, "versionsChangedAscending", versionsChanged.Ascending)
	pgtest.AddList(all, "versionsChangedDescending", versionsChanged.Descending)
	pgtest.AddNumbers(all, numbers)
	pgtest.AddList(all, "versionsAscending", versions.Ascending)
	pgtest.AddList(all, "versionsDescending", versions.Descending)
	return all
}

func TestGoldenStatements(t *testing.T) { pgtest.CheckGolden(t, statements(t)) }

// TestStatements checks that every statement restricts each of its tables to one project, and reaches it by an index that
// leads with the project. In a distributed database every statement is one task of one node.
func TestStatements(t *testing.T) {
	pgtest.CheckStatements(t, Schema(), statements(t), 32, putEmbeddable, putVersion, putDefinition)
}
