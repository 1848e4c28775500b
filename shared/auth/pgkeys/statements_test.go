package pgkeys_test

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// TestEveryStatementIsOneTask checks that every statement is one task of one node in a distributed database, except
// those over all projects.
func TestEveryStatementIsOneTask(t *testing.T) {
	pgtest.NeedCitus(t)
	statements := pgtest.PackageStatements(t, ".")
	if len(statements) < 13 {
		t.Errorf("only %d statements were found", len(statements))
	}
	pgtest.CheckOneTask(t, pgtest.Database(t, pgkeys.Schema()), statements, map[string]pgtest.NotOneTask{
		"foreign":  {Why: "a process holds the hashes of all projects' foreign keys, so that random keys ask no database"},
		"realm":    {Why: "the operator looks for keys whose objects are gone, so their projects are unknown"},
		"projects": {Why: "a client asks for the projects of its own key or identity"},
		"clock":    {NoTable: true, Why: "the time is the coordinator's, as that of created_at is"},
	})
}
