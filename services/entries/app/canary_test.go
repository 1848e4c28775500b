package app

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// canary is a value that stands for personal data.
const canary = "canary-4711"

// findCanary returns the columns, planner's statistics and indexes that contain the canary. On Citus it checks only the
// columns, because the workers have the statistics and indexes.
func findCanary(t *testing.T, db pgtest.DB) (found []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server := pgtest.Server(t)
	conn, err := pgx.Connect(ctx, server.Superuser(db))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	list := func(sql string, args ...any) []string {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return all
	}
	columns := list(`
		SELECT format('SELECT %L::text FROM %I.%I WHERE %I::text LIKE ''%%'' || $1 || ''%%'' LIMIT 1', c.table_name || '.' || c.column_name, c.table_schema, c.table_name, c.column_name)
		FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE t.table_type = 'BASE TABLE' AND c.table_schema = 'public'`)
	if len(columns) < 40 {
		t.Fatalf("only %d columns are searched", len(columns))
	}
	for _, sql := range columns {
		found = append(found, list(sql, canary)...)
	}
	if server.Citus() {
		return found
	}
	found = append(found, list(`
		SELECT 'statistics of ' || tablename || '.' || attname FROM pg_stats
		WHERE schemaname = 'public' AND concat(most_common_vals::text, histogram_bounds::text) LIKE '%' || $1 || '%'`, canary)...)
	if _, err := conn.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS pageinspect`); err != nil {
		t.Fatal(err)
	}
	return append(found, list(`
		SELECT DISTINCT 'index ' || c.relname
		FROM pg_class c
		CROSS JOIN LATERAL generate_series(1, pg_relation_size(c.oid) / current_setting('block_size')::int - 1) page
		CROSS JOIN LATERAL bt_page_items(c.oid::regclass::text, page::int) item
		WHERE c.relkind = 'i' AND c.relnamespace = 'public'::regnamespace
		  AND position(encode(convert_to($1, 'UTF8'), 'hex') IN replace(item.data, ' ', '')) > 0`, canary)...)
}

// TestErasureLeavesNothing checks that after an erasure no table, index, statistic, answer or log contains the person's
// data. This also holds after the source sends the data again. A follower drops its copy.
func TestErasureLeavesNothing(t *testing.T) {
	t.Parallel()
	b := servicetest.NewBacking(t, store.Schema())
	s := startOn(t, b, map[string]string{"LOG_LEVEL": "debug"})
	key := b.Keys.Key(project)
	fill(t, s, project, 500)
	entry := servicetest.With(servicetest.With(newEntry(project, "en_x", at(1)), "contact_id", canary), "entry_data", `{"name":"`+canary+`"}`)
	custom := func(name, entryID, contact string) object {
		event := pageView(project, entryID, 1, at(1))
		for field, value := range map[string]any{
			"contact_id": contact, "event_id": canary + name, "url": "https://example.com/?me=" + canary, "event_type": "custom",
			"custom_event_name": canary, "custom_event_props": `{"me":"` + canary + `"}`, "page_key": canary,
		} {
			event[field] = value
		}
		return event
	}
	events := []any{custom("1", "en_x", canary), custom("2", "en_x", "co_other"), custom("3", "en_never", canary)}
	s.MustIngest(t, "entries", entry)
	s.MustIngest(t, "events", events...)
	follower := map[string]bool{}
	follow := func(path string) (next string) {
		list, a := changesOf(t, s, key, path)
		for _, c := range list {
			switch c["change"] {
			case "entry":
				follower[c["entry"].(object)["entry_id"].(string)] = strings.Contains(fmt.Sprint(c), canary)
			case "event":
				id := c["event"].(object)["entry_id"].(string)
				follower[id] = follower[id] || strings.Contains(fmt.Sprint(c), canary)
			case "entry_removed":
				delete(follower, c["entry_id"].(string))
			}
		}
		return a.Header.Get("X-Next-Cursor")
	}
	next := follow(feed + "?limit=10000")
	s.Exec(t, `ANALYZE entries, events`)
	before := strings.Join(findCanary(t, b.DB), ", ")
	for _, place := range []string{"entries.contact_id", "entries.entry_data", "events.contact_id", "events.event_id", "events.url", "events.custom_event_props"} {
		if !strings.Contains(before, place) {
			t.Errorf("before the erasure the search does not find %s: %s", place, before)
		}
	}
	for _, place := range []string{"statistics of events.contact_id", "index events_by_contact"} {
		if !pgtest.Server(t).Citus() && !strings.Contains(before, place) {
			t.Errorf("before the erasure the search does not find the %s: %s", place, before)
		}
	}

	checkRemoval(t, s, "DELETE", internalProject+"/contacts/"+canary, "", `{"entries":1,"events":3}`)
	for range 2 {
		if in := s.Ingest(t, "entries", entry); in.Rejected != 1 || in.Rejects[0].Code != "erased" || strings.Contains(fmt.Sprint(in), canary) {
			t.Errorf("the entry sent again: %+v", in)
		}
		if in := s.Ingest(t, "events", events...); in.Rejected != 3 || in.Rejects[2].Code != "erased" || strings.Contains(fmt.Sprint(in), canary) {
			t.Errorf("the events sent again: %+v", in)
		}
	}
	s.Exec(t, `VACUUM (ANALYZE) entries, events, removals`)
	if found := findCanary(t, b.DB); len(found) > 0 {
		t.Errorf("after the erasure the database shows it in %s", strings.Join(found, ", "))
	}
	follow(feed + "?limit=10000&cursor=" + next)
	for id, has := range follower {
		if has {
			t.Errorf("the follower still has it in %s", id)
		}
	}
	if len(follower) != 500 {
		t.Errorf("the follower has %d entries; want those of the others", len(follower))
	}
	for _, path := range []string{
		"entries?limit=1000", "entries-page-views?limit=1000&include_urls=true", "entries-changes?limit=10000", "entries/en_x", "entries/en_x/events", "entries/en_never",
	} {
		if a := s.Get(t, key, "/projects/"+project+"/"+path); strings.Contains(string(a.Body), canary) || strings.Contains(fmt.Sprint(a.Header), canary) {
			t.Errorf("GET %s gives it out: %d", path, a.Status)
		}
	}
	if err := s.Stop(); err != nil { // flushes the log
		t.Fatal(err)
	}
	for line := range strings.Lines(s.Log()) {
		if strings.Contains(line, canary) {
			t.Errorf("the log has it: %s", line)
		}
	}
}
