package store

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Every statement says its project in each table that it touches, and reaches it by an index that leads
// with it.
func TestEveryStatementIsOfOneProject(t *testing.T) {
	statements := pgtest.Statements(t, "statements.go")
	if len(statements) < 10 {
		t.Errorf("only %d statements were found", len(statements))
	}
	pgtest.CheckOneProject(t, pgtest.Database(t, Schema()), statements)
}
