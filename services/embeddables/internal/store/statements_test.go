package store

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/pgrecord"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestGoldenStatements(t *testing.T) { pgtest.CheckGolden(t, pgtest.PackageStatements(t, ".")) }

// Every statement says its project in each table that it touches, and reaches it by an index that leads
// with it.
func TestEveryStatementIsOfOneProject(t *testing.T) {
	statements := pgtest.PackageStatements(t, ".")
	if len(statements) < 15 {
		t.Errorf("only %d statements were found", len(statements))
	}
	if pgtest.Server(t).Citus() {
		t.Skip("plans of plain Postgres; those of Citus are below")
	}
	pgtest.CheckOneProject(t, pgtest.Database(t, Schema()), statements)
}

// Where tables are distributed every statement is one task of one machine.
func TestEveryStatementIsOneTask(t *testing.T) {
	pgtest.NeedCitus(t)
	statements := pgtest.PackageStatements(t, ".")
	for name, sql := range map[string]string{"putEmbeddable": putEmbeddable, "putVersion": putVersion, "putDefinition": putDefinition} {
		statements[name+" of three"] = pgrecord.Rows(sql, 3)
	}
	pgtest.CheckOneTask(t, pgtest.Database(t, Schema()), statements, nil)
}
