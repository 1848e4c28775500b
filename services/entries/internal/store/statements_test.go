package store

import (
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/pginsert"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// statements returns all statements of the package.
func statements(t *testing.T) map[string]string {
	t.Helper()
	all := pgtest.PackageStatements(t, ".")
	for ids := range entriesByUpdatedAt {
		by := ""
		if columns := idFilter(ids).columns(); columns != nil {
			by = " by " + strings.ReplaceAll(strings.Join(columns, ","), "_id", "") // Postgres shortens names of over 63 bytes
		}
		pgtest.AddList(all, "entriesByUpdatedAtAscending"+by, entriesByUpdatedAt[ids].Ascending)
		pgtest.AddList(all, "entriesByUpdatedAtDescending"+by, entriesByUpdatedAt[ids].Descending)
		pgtest.AddList(all, "createdByUpdatedAtAscending"+by, createdByUpdatedAt[ids].Ascending)
		pgtest.AddList(all, "createdByUpdatedAtDescending"+by, createdByUpdatedAt[ids].Descending)
		pgtest.AddList(all, "entriesByCreatedAtAscending"+by, entriesByCreatedAt[ids].Ascending)
		pgtest.AddList(all, "entriesByCreatedAtDescending"+by, entriesByCreatedAt[ids].Descending)
		all["pageViewsAscending"+by], all["pageViewsDescending"+by] = pageViews[ids][false], pageViews[ids][true]
	}
	pgtest.AddList(all, "eventsAscending", events.Ascending)
	pgtest.AddList(all, "eventsDescending", events.Descending)
	for types, list := range changes {
		pgtest.AddList(all, "changes of "+types.String(), list)
	}
	version := int64(1)
	any := insight.Filter{ProjectID: "pr_1", CreatedAfter: wire.BeforeAll, CreatedBefore: wire.AfterAll, UpdatedAfter: wire.BeforeAll, UpdatedBefore: wire.AfterAll}
	for name, f := range map[string]insight.Filter{"": any, " filtered": {ProjectID: "pr_1", EmbeddableID: "emb_1", Version: &version}} {
		for _, interval := range []string{"day", "all"} {
			for _, by := range []insight.By{insight.ByNone, insight.ByEmbeddable, insight.ByVersion} {
				all["counts of "+interval+" by "+string(by)+name] = countsOf(insight.CountsQuestion{Filter: f, Interval: interval, By: by, Timezone: "UTC"}).sql
			}
		}
		all["funnel"+name] = funnelOf(insight.FunnelQuestion{Filter: f}).sql
		all["funnel by version"+name] = funnelOf(insight.FunnelQuestion{Filter: f, ByVersion: true}).sql
		for how, careful := range map[string]bool{"": false, " careful": true} {
			all["keys"+name+how], all["answers"+name+how] = keysOf(f, careful).sql, answersOf(f, "key", careful).sql
		}
	}
	return all
}

func TestGoldenStatements(t *testing.T) { pgtest.CheckGolden(t, statements(t)) }

// TestEveryStatementIsOfOneProject checks that every statement restricts each of its tables to one project, and reaches
// it by an index that leads with the project.
func TestEveryStatementIsOfOneProject(t *testing.T) {
	all := statements(t)
	if len(all) < 20 {
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
	for name, sql := range map[string]string{"putEntry": putEntry, "putEvent": putEvent} {
		all[name+" of three"] = pginsert.Rows(sql, 3)
	}
	pgtest.CheckOneTask(t, pgtest.Database(t, Schema()), all, nil)
}
