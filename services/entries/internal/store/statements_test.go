package store

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/pginsert"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// statements returns all statements of the package.
func statements(t *testing.T) map[string]string {
	t.Helper()
	all := pgtest.PackageStatements(t, ".")
	pgtest.AddList(all, "entriesByUpdatedAtAscending", entriesByUpdatedAt.Ascending)
	pgtest.AddList(all, "entriesByUpdatedAtDescending", entriesByUpdatedAt.Descending)
	pgtest.AddList(all, "entriesByCreatedAtAscending", entriesByCreatedAt.Ascending)
	pgtest.AddList(all, "entriesByCreatedAtDescending", entriesByCreatedAt.Descending)
	pgtest.AddList(all, "eventsAscending", events.Ascending)
	pgtest.AddList(all, "eventsDescending", events.Descending)
	for types, list := range changes {
		pgtest.AddList(all, "changes of "+types.String(), list)
	}
	all["pageViewsAscending"], all["pageViewsDescending"] = pageViews[false], pageViews[true]
	return all
}

func TestGoldenStatements(t *testing.T) { pgtest.CheckGolden(t, statements(t)) }

// Every statement restricts each of its tables to one project, and reaches it by an index that leads with the
// project.
func TestEveryStatementIsOfOneProject(t *testing.T) {
	all := statements(t)
	if len(all) < 20 {
		t.Errorf("only %d statements were found", len(all))
	}
	if pgtest.Server(t).Citus() {
		t.Skip("plans of plain Postgres; those of Citus are below")
	}
	delete(all, "unnumbered") // finds projects
	pgtest.CheckOneProject(t, pgtest.Database(t, Schema()), all)
}

// On distributed tables every statement is one task of one node.
func TestEveryStatementIsOneTask(t *testing.T) {
	pgtest.NeedCitus(t)
	all := statements(t)
	for name, sql := range map[string]string{"putEntry": putEntry, "putEvent": putEvent} {
		all[name+" of three"] = pginsert.Rows(sql, 3)
	}
	delete(all, "unnumbered") // finds projects
	pgtest.CheckOneTask(t, pgtest.Database(t, Schema()), all, nil)
}
