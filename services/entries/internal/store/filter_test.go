package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

// TestIDFiltersUseTheirIndexes checks that lists by contact or embeddable in the default order use an index, also with a
// further filter. No statement sorts, or reads a row outside its page, so page 1,000 costs as much as page 1.
func TestIDFiltersUseTheirIndexes(t *testing.T) {
	t.Parallel()
	if pgtest.Server(t).Citus() {
		t.Skip("plans of plain Postgres; TestStatements has those of Citus")
	}
	conn := pgtest.Connect(t, pgtest.Database(t, Schema()).OwnerURL)
	const page, deepest, rows = 10, 1_000 * 10, 22_000
	// The entries with odd numbers belong to the contact and the embeddable of the filters.
	for _, sql := range []string{
		fmt.Sprintf(`INSERT INTO entries
		SELECT 'pr_1', 'en_' || i, 'gr_1', 'emb_' || i %% 2, 'co_' || i %% 2, to_timestamp(i), to_timestamp(i), '{}', i
		FROM generate_series(1, %d) i`, rows),
		`VACUUM (ANALYZE) entries`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	contact := entry.Condition{Filter: entry.Filter{Field: "contact_id", Kind: entry.Equal}, Value: "co_1"}
	embeddable := entry.Condition{Filter: entry.Filter{Parameter: "embeddable_id", Field: "embeddable_id", Kind: entry.Equal}, Value: "emb_1"}
	open := entry.Condition{Filter: entry.Filter{Field: "completed", Kind: entry.Is}, Value: false} // all, since none has a page view
	for _, list := range []struct {
		index string
		by    []entry.Condition
	}{
		{"entries_by_contact", []entry.Condition{contact}},
		{"entries_by_embeddable", []entry.Condition{embeddable}},
		{"entries_by_embeddable", []entry.Condition{embeddable, open}},
	} {
		index, l := list.index, entry.List{Selection: entry.Selection{ProjectID: "pr_1", Conditions: list.by}}
		for _, l.Descending = range []bool{false, true} {
			start, end := l.Bounds()
			before := 2*(deepest-page) - 1 // the last entry of page 999
			if l.Descending {
				before = rows - before
			}
			views := newViewSource(nil, l)
			q := views.Query
			for _, after := range []lists.Position{start, {Key: int64(before) * 1e6, ID: fmt.Sprintf("en_%d", before)}} {
				for _, plan := range []string{"force_custom_plan", "force_generic_plan"} {
					for _, s := range []struct {
						name, sql string
						args      []any
						rows      int
					}{
						{"chunk", q.SQL.Chunk, q.Arguments(after, end, page), page},
						{"nth", q.SQL.Nth, q.Arguments(after, end, page-1), page + 1},
						{"last", q.SQL.Last, q.Arguments(after, end), 1},
						{"page views", views.sql, q.Arguments(after, end, page, maxViewRows), page},
					} {
						got := scanOf(t, conn, "entries", plan, s.sql, s.args)
						if want := (scan{Index: index, Rows: s.rows}); got != want {
							t.Errorf("%s, descending %v, after %+v, %s, %s: %+v, want %+v", index, l.Descending, after, plan, s.name, got, want)
						}
					}
				}
			}
		}
	}
}

// TestInsightsUseTheirIndexes checks that insights of a period pass the rows of the period alone.
func TestInsightsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	if pgtest.Server(t).Citus() {
		t.Skip("plans of plain Postgres; TestStatements has those of Citus")
	}
	conn := pgtest.Connect(t, pgtest.Database(t, Schema()).OwnerURL)
	const rows, of = 20_000, 100 // created one a second; each of the embeddables has one of a hundred
	for _, sql := range []string{
		fmt.Sprintf(`INSERT INTO entries
		SELECT 'pr_1', 'en_' || i, 'gr_1', 'emb_' || i %% %d, 'co_1', to_timestamp(i), to_timestamp(i), '{}', i
		FROM generate_series(1, %d) i`, of, rows),
		`INSERT INTO progress (project_id, entry_id, part, several, embeddable_id, created_at, updated_at, furthest, ended, cells, first_view, latest_view)
		SELECT project_id, entry_id, 0, false, embeddable_id, created_at, updated_at, 0, false, '\x0000', 0, 0 FROM entries`,
		`VACUUM (ANALYZE) entries, progress`,
		`SET enable_bitmapscan = off`, // a bitmap heap scan does not name its index
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	period := []entry.Condition{
		{Filter: entry.Filter{Parameter: "created_after", Field: "created_at", Kind: entry.After}, Value: int64(1000 * 1e6)},
		{Filter: entry.Filter{Parameter: "created_before", Field: "created_at", Kind: entry.Before}, Value: int64(1501 * 1e6)},
	}
	embeddable := entry.Condition{Filter: entry.Filter{Parameter: "embeddable_id", Field: "embeddable_id", Kind: entry.Equal}, Value: "emb_1"}
	everything := entry.Selection{ProjectID: "pr_1", Conditions: period}
	one := entry.Selection{ProjectID: "pr_1", Conditions: append(period, embeddable)}
	counts := countsOf(insight.CountsQuestion{Selection: everything, Interval: insight.All, By: insight.ByEmbeddable}, nil)
	for _, tt := range []struct {
		name, table string
		of          statement
		want        scan
	}{
		{"counts", "entries", counts, scan{Index: "entries_by_created_at", Rows: 500}},
		{"counts", "progress", counts, scan{Index: "stored_progress_by_created_at", Rows: 500}},
		{"funnel", "progress", insightOf(funnelSQL, one, one), scan{Index: "stored_progress_by_embeddable", Rows: 5}},
	} {
		if got := scanOf(t, conn, tt.table, "force_custom_plan", tt.of.sql, tt.of.args); got != tt.want {
			t.Errorf("%s, table %s: %+v, want %+v", tt.name, tt.table, got, tt.want)
		}
	}
}

// scan is the node of a plan that reads a table, as EXPLAIN (ANALYZE) reports it.
type scan struct {
	Index    string `json:"Index Name"`
	Rows     int    `json:"Actual Rows"`
	Filtered int    `json:"Rows Removed by Filter"`
}

// node is a node of a plan.
type node struct {
	scan
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Loops    int    `json:"Actual Loops"`
	Plans    []node
}

// planOf runs a statement and returns all nodes of its plan, the outer ones first.
func planOf(t *testing.T, conn *pgx.Conn, mode, sql string, args []any) []node {
	t.Helper()
	literals := make([]string, len(args))
	for i, arg := range args {
		switch at := arg.(type) {
		case pgtype.Timestamptz:
			if arg, _ = at.Value(); at.InfinityModifier == pgtype.Finite {
				arg = at.Time.Format(time.RFC3339Nano)
			}
		case time.Time:
			arg = at.Format(time.RFC3339Nano)
		}
		literals[i] = fmt.Sprintf("'%v'", arg)
		if literals[i] == "'<nil>'" || literals[i] == "'[]'" {
			literals[i] = "NULL"
		}
	}
	var text []byte
	for _, set := range []string{"SET plan_cache_mode = " + mode, "DEALLOCATE ALL", "PREPARE plan AS " + sql} {
		if _, err := conn.Exec(t.Context(), set, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	err := conn.QueryRow(t.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE plan("+strings.Join(literals, ", ")+")",
		pgx.QueryExecModeSimpleProtocol).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	nodes := []node{plans[0].Plan}
	for i := 0; i < len(nodes); i++ {
		nodes = append(nodes, nodes[i].Plans...)
	}
	return nodes
}

// scanOf runs a statement and returns the node of its plan that reads a table.
func scanOf(t *testing.T, conn *pgx.Conn, table, mode, sql string, args []any) scan {
	t.Helper()
	nodes := planOf(t, conn, mode, sql, args)
	i := slices.IndexFunc(nodes, func(n node) bool { return n.Relation == table })
	if i < 0 {
		t.Fatalf("the plan does not read %s: %+v", table, nodes)
	}
	return nodes[i].scan
}

// TestFiltersOfANewProject checks that a filter reads the progress of each entry, and parses the entry, a few times only.
// Postgres has no statistics of the project, and so expects one row in place of many.
func TestFiltersOfANewProject(t *testing.T) {
	t.Parallel()
	if pgtest.Server(t).Citus() {
		t.Skip("plans of plain Postgres; the statements of Citus are the same")
	}
	conn := pgtest.Connect(t, pgtest.Database(t, Schema()).OwnerURL)
	const rows = 400
	fill := func(project string, rows int) {
		for _, sql := range []string{
			`INSERT INTO entries
			SELECT $1, 'en_' || i, 'x', 'x', 'x', to_timestamp(i), to_timestamp(i), '{"x":"x"}', i FROM generate_series(1, $2) i`,
			`INSERT INTO progress (project_id, entry_id, part, version, several, embeddable_id, created_at, updated_at, furthest, ended, cells, first_view, latest_view)
			SELECT $1, 'en_' || i, 0, 3, false, 'x', to_timestamp(i), to_timestamp(i), 3, false, '\x0000', 0, 0 FROM generate_series(1, $2) i`,
		} {
			if _, err := conn.Exec(t.Context(), sql, project, rows); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill("pr_old", 10*rows)
	if _, err := conn.Exec(t.Context(), "ANALYZE entries, progress, events"); err != nil {
		t.Fatal(err)
	}
	fill("pr_1", rows)
	all := map[string]statement{}
	for name, by := range filtered(entry.Insights) {
		all["counts"+name] = insightOf(countsSQL, by, by, nil, "version")
		all["overview"+name] = insightOf(overviewSQL, by, by, nil, nil)
		all["funnel"+name] = insightOf(funnelSQL, by, by)
		all["answers"+name] = insightOf(answersSQL, by, by, nil, 10, insight.WhiteSpace, nil, nil)
		all["count at most"+name] = atMostOf(by, rows)
	}
	for name, s := range all {
		read := 0
		for _, n := range planOf(t, conn, "force_custom_plan", s.sql, s.args) {
			if n.Relation == "progress" || n.Type == "Function Scan" {
				read += n.Loops * (n.Rows + n.Filtered)
			}
		}
		if most := 20 * rows; read > most {
			t.Errorf("%s: %d rows are read, want at most %d", name, read, most)
		}
	}
}
