package store

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/pgtest"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
)

// TestFeedReadsItsPageAlone checks that a chunk of the feed reads only the rows that it returns, even if many changes
// follow. So does the search for a page's end.
func TestFeedReadsItsPageAlone(t *testing.T) {
	t.Parallel()
	if pgtest.Server(t).Citus() {
		t.Skip("plans of plain Postgres; TestStatements has those of Citus")
	}
	conn := pgtest.Connect(t, pgtest.Database(t, Schema()).OwnerURL)
	for _, sql := range []string{`
		INSERT INTO entries
		SELECT 'pr_1', 'en_' || i, 'gr_1', 'emb_1', 'co_1', to_timestamp(i), to_timestamp(i), '{}', i
		FROM generate_series(1, 20000) i`,
		`VACUUM (ANALYZE) entries`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	sql := changes[change.All]
	for _, plan := range []string{"force_custom_plan", "force_generic_plan"} {
		for _, s := range []struct {
			name, sql string
			args      []any
			rows      int
		}{
			{"chunk", sql.Chunk, []any{"pr_1", 0, 1_000_000, 100}, 100},
			{"chunk in the middle", sql.Chunk, []any{"pr_1", 10_000, 1_000_000, 100}, 100},
			{"nth", sql.Nth, []any{"pr_1", 0, 1_000_000, 99}, 101},
			{"last", sql.Last, []any{"pr_1", 0, 1_000_000}, 1},
		} {
			if got, want := scanOf(t, conn, "entries", plan, s.sql, s.args), (scan{Index: "entries_by_seq", Rows: s.rows}); got != want {
				t.Errorf("%s, %s: %+v, want %+v", plan, s.name, got, want)
			}
		}
	}
}
