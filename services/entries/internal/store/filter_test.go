package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lectern-dev/lectern/shared/http/pagelist"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// TestIDFiltersUseTheirIndexes checks that lists by contact or embeddable in the default order use an index, also with a
// further filter. No statement sorts, or reads a row outside its page, so page 1,000 costs as much as page 1.
func TestIDFiltersUseTheirIndexes(t *testing.T) {
	t.Parallel()
	if pgtest.Server(t).Citus() {
		t.Skip("plans of plain Postgres; TestEveryStatementIsOneTask has those of Citus")
	}
	conn, err := pgx.Connect(t.Context(), pgtest.Database(t, Schema()).OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
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
	embeddable := entry.Condition{Filter: entry.Filter{Field: "embeddable_id", Kind: entry.Equal}, Value: "emb_1"}
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
			for _, after := range []pagelist.Position{start, {Key: int64(before) * 1e6, ID: fmt.Sprintf("en_%d", before)}} {
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
						got := scanOfEntries(t, conn, plan, s.sql, s.args)
						if want := (scan{Index: index, Rows: s.rows}); got != want {
							t.Errorf("%s, descending %v, after %+v, %s, %s: %+v, want %+v", index, l.Descending, after, plan, s.name, got, want)
						}
					}
				}
			}
		}
	}
}

// scan is the node of a plan that reads the table entries, as EXPLAIN (ANALYZE) reports it.
type scan struct {
	Index    string `json:"Index Name"`
	Rows     int    `json:"Actual Rows"`
	Filtered int    `json:"Rows Removed by Filter"`
}

// scanOfEntries runs a statement and returns the node of its plan that reads entries.
func scanOfEntries(t *testing.T, conn *pgx.Conn, mode, sql string, args []any) scan {
	t.Helper()
	literals := make([]string, len(args))
	for i, arg := range args {
		if at, ok := arg.(pgtype.Timestamptz); ok {
			if arg, _ = at.Value(); at.InfinityModifier == pgtype.Finite {
				arg = at.Time.Format("2006-01-02T15:04:05.999999Z07:00")
			}
		}
		literals[i] = fmt.Sprintf("'%v'", arg)
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
	type node struct {
		scan
		Relation string `json:"Relation Name"`
		Plans    []node
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	for nodes := []node{plans[0].Plan}; len(nodes) > 0; nodes = append(nodes[1:], nodes[0].Plans...) {
		if nodes[0].Relation == "entries" {
			return nodes[0].scan
		}
	}
	t.Fatalf("the plan does not read entries:\n%s", text)
	return scan{}
}
