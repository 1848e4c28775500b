package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// layout is the version of the tables below. A copy with another version is not touched.
const layout = 2

// column is a column of a table of the copy.
type column struct{ name, kind, rule string }

// Text of identifiers is compared as bytes, as in the API.
const bytewise = ` COLLATE "C"`

// The tables are described in docs/reference/copies.md.
var (
	entryColumns = []column{
		{"entry_id", "text", bytewise + " PRIMARY KEY"},
		{"group_id", "text", bytewise + " NOT NULL"},
		{"project_id", "text", bytewise + " NOT NULL"},
		{"embeddable_id", "text", bytewise + " NOT NULL"},
		{"contact_id", "text", bytewise + " NOT NULL"},
		{"created_at", "timestamptz", " NOT NULL"},
		{"updated_at", "timestamptz", " NOT NULL"},
		{"entry_data", "jsonb", ""},
		{"entry_data_text", "text", ""},
		{"entry_columns", "jsonb", ""},
		{"seq", "bigint", " NOT NULL"},
		{"removed_at", "timestamptz", ""},
		{"removal_reason", "text", ""},
	}
	eventColumns = []column{
		{"event_key", "text", bytewise + " PRIMARY KEY"},
		{"event_id", "text", bytewise},
		{"entry_id", "text", bytewise + " NOT NULL"},
		{"contact_id", "text", bytewise + " NOT NULL"},
		{"project_id", "text", bytewise + " NOT NULL"},
		{"group_id", "text", bytewise + " NOT NULL"},
		{"embeddable_id", "text", bytewise + " NOT NULL"},
		{"embeddable_version_number", "bigint", ""},
		{"timestamp", "timestamptz", " NOT NULL"},
		{"page_id", "text", ""},
		{"page_key", "text", ""},
		{"page_index", "bigint", ""},
		{"max_page_id", "text", ""},
		{"max_page_key", "text", ""},
		{"max_page_index", "bigint", ""},
		{"total_pages", "bigint", ""},
		{"event_type", "text", " NOT NULL"},
		{"view_type", "text", ""},
		{"custom_event_name", "text", ""},
		{"custom_event_props", "text", ""},
		{"url", "text", ""},
		{"seq", "bigint", " NOT NULL"},
		{"removed_at", "timestamptz", ""},
		{"removal_reason", "text", ""},
	}
	stateColumns = []column{
		{"only_row", "boolean", " PRIMARY KEY DEFAULT true CHECK (only_row)"},
		{"layout", "bigint", " NOT NULL"},
		{"project_id", "text", " NOT NULL"},
		{"url", "text", " NOT NULL"},
		{"cursor", "text", " NOT NULL"},
		{"seq", "bigint", " NOT NULL"},
		{"changed_at", "timestamptz", " NOT NULL"},
		{"current_at", "timestamptz", ""},
		{"verified_at", "timestamptz", ""},
		{"differences", "bigint", ""},
		{"columns", "text", " NOT NULL"},
		{"soft_delete", "boolean", " NOT NULL"},
	}
	columnColumns = []column{
		{"embeddable_id", "text", bytewise + " NOT NULL"},
		{"position", "bigint", " NOT NULL"},
		{"key", "text", bytewise + " NOT NULL"},
		{"name", "text", bytewise + " NOT NULL"},
		{"type", "text", " NOT NULL"},
	}
	tables = []struct {
		name    string
		columns []column
	}{{"entries", entryColumns}, {"events", eventColumns}, {stateTable, stateColumns}, {columnsTable, columnColumns}}
)

const (
	// stateTable is the table of the copy's source and position.
	stateTable = "lectern_sync"
	// columnsTable is the table of the columns of the views.
	columnsTable = "lectern_columns"
)

// Staging tables take a batch. They are this connection's own, and empty after each transaction.
const (
	newEntries = "lectern_new_entries"
	newEvents  = "lectern_new_events"
)

// toJSONB returns null for JSON that jsonb cannot hold. That is \u0000, halves of surrogate pairs, numbers out of range,
// and values that are nested too deeply for the server's stack.
const toJSONB = `
CREATE OR REPLACE FUNCTION pg_temp.lectern_to_jsonb(data text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    RETURN data::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN NULL;
END $$`

// definitions lists the columns as CREATE TABLE has them; without their rules if they are of a staging table.
func definitions(columns []column, staging bool) string {
	var b strings.Builder
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(pgx.Identifier{c.name}.Sanitize() + " " + c.kind)
		if !staging {
			b.WriteString(c.rule)
		}
	}
	return b.String()
}

// names returns the names of the columns, except those in but.
func names(columns []column, but ...string) []string {
	var list []string
next:
	for _, c := range columns {
		for _, name := range but {
			if c.name == name {
				continue next
			}
		}
		list = append(list, c.name)
	}
	return list
}

// listed joins quoted names, each after prefix.
func listed(prefix string, names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = prefix + pgx.Identifier{name}.Sanitize()
	}
	return strings.Join(quoted, ", ")
}

// stagedEntryColumns are the columns of an entry in a batch. plain reports that jsonb certainly accepts entry_data, and fits
// that all values fit their columns. entry_columns is only there if one of them is false.
var stagedEntryColumns = []column{
	{"entry_id", "text", ""}, {"group_id", "text", ""}, {"project_id", "text", ""}, {"embeddable_id", "text", ""}, {"contact_id", "text", ""},
	{"created_at", "timestamptz", ""}, {"updated_at", "timestamptz", ""}, {"entry_data", "text", ""}, {"seq", "bigint", ""},
	{"plain", "boolean", ""}, {"fits", "boolean", ""}, {"entry_columns", "text", ""},
}

// stagedEventColumns are the columns of an event in a batch.
var stagedEventColumns = eventColumns[:len(eventColumns)-2]

// statements are the SQL of one copy.
type statements struct {
	deleteEntries, deleteEvents, markEntries, markEvents, putEntries, putEvents, setPosition, readState, insertState, setURL, readColumns, putColumn string
}

func newStatements(schema string) statements {
	in := func(table string) string { return pgx.Identifier{schema, table}.Sanitize() }
	const removals = ` unnest($1::text[], $2::bigint[], $3::timestamptz[], $4::text[]) AS r (entry_id, seq, removed_at, reason)
WHERE t.entry_id = r.entry_id AND t.seq < r.seq`
	remove := func(table string) string { return `DELETE FROM ` + in(table) + ` AS t USING` + removals }
	mark := func(table string) string {
		return `UPDATE ` + in(table) + ` AS t SET seq = r.seq, removed_at = r.removed_at, removal_reason = r.reason FROM` + removals
	}
	update := func(columns []column, key string) string {
		all := names(columns, key, "removed_at", "removal_reason")
		return `
ON CONFLICT (` + key + `) DO UPDATE
SET (` + listed("", all) + `, removed_at, removal_reason) = (` + listed("excluded.", all) + `, NULL, NULL)
WHERE t.seq < excluded.seq`
	}
	entries := names(entryColumns, "entry_data", "entry_data_text", "entry_columns", "removed_at", "removal_reason")
	events := names(eventColumns, "removed_at", "removal_reason")
	return statements{
		deleteEntries: remove("entries"),
		deleteEvents:  remove("events"),
		markEntries:   mark("entries"),
		markEvents:    mark("events"),
		// OFFSET 0 keeps the planner from evaluating j.data twice.
		putEntries: `
WITH put AS (
    INSERT INTO ` + in("entries") + ` AS t (` + listed("", entries) + `, entry_data, entry_data_text, entry_columns)
    SELECT ` + listed("n.", entries) + `, j.data, CASE WHEN j.data IS NULL THEN n.entry_data END,
        CASE WHEN j.data IS NULL OR NOT n.fits THEN n.entry_columns::jsonb END
    FROM pg_temp.` + newEntries + ` AS n, LATERAL (
        SELECT CASE WHEN n.plain THEN n.entry_data::jsonb ELSE pg_temp.lectern_to_jsonb(n.entry_data) END AS data OFFSET 0
    ) AS j` + update(entryColumns, "entry_id") + `
    RETURNING entry_data_text IS NOT NULL AS refused
)
SELECT count(*) FILTER (WHERE refused) FROM put`,
		putEvents: `
INSERT INTO ` + in("events") + ` AS t (` + listed("", events) + `)
SELECT ` + listed("n.", events) + `
FROM pg_temp.` + newEvents + ` AS n` + update(eventColumns, "event_key"),
		setPosition: `
UPDATE ` + in(stateTable) + `
SET cursor = $2, seq = $3, changed_at = CASE WHEN $4 THEN now() ELSE changed_at END, current_at = CASE WHEN $5 THEN now() ELSE current_at END
WHERE cursor = $1`,
		readState: `
SELECT layout, project_id, url, cursor, seq, columns, soft_delete FROM ` + in(stateTable),
		insertState: `
INSERT INTO ` + in(stateTable) + ` (layout, project_id, url, cursor, seq, changed_at, columns, soft_delete)
VALUES ($1, $2, $3, '', 0, now(), $4, $5)`,
		setURL: `
UPDATE ` + in(stateTable) + ` SET url = $1`,
		readColumns: `
SELECT embeddable_id, key, name, type FROM ` + in(columnsTable) + ` ORDER BY embeddable_id, position`,
		putColumn: `
INSERT INTO ` + in(columnsTable) + ` (embeddable_id, position, key, name, type)
VALUES ($1, $2, $3, $4, $5)`,
	}
}

// create makes the tables of a new copy.
func create(ctx context.Context, tx pgx.Tx, schema string) error {
	for _, t := range tables {
		if _, err := tx.Exec(ctx, fmt.Sprintf(`CREATE TABLE %s (%s)`, pgx.Identifier{schema, t.name}.Sanitize(), definitions(t.columns, false))); err != nil {
			return err
		}
	}
	for _, sql := range []string{
		`CREATE INDEX events_by_entry ON ` + pgx.Identifier{schema, "events"}.Sanitize() + ` (entry_id, "timestamp")`,
		`CREATE INDEX entries_by_embeddable ON ` + pgx.Identifier{schema, "entries"}.Sanitize() + ` (embeddable_id)`,
		`CREATE INDEX entries_by_seq ON ` + pgx.Identifier{schema, "entries"}.Sanitize() + ` (seq)`,
		`CREATE INDEX events_by_seq ON ` + pgx.Identifier{schema, "events"}.Sanitize() + ` (seq)`,
		`CREATE UNIQUE INDEX ` + columnsTable + `_by_position ON ` + pgx.Identifier{schema, columnsTable}.Sanitize() + ` (embeddable_id, position)`,
	} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// prepare creates the temporary objects of the connection.
func prepare(ctx context.Context, conn *pgx.Conn) error {
	for _, sql := range []string{
		toJSONB,
		`CREATE TEMP TABLE ` + newEntries + ` (` + definitions(stagedEntryColumns, true) + `) ON COMMIT DELETE ROWS`,
		`CREATE TEMP TABLE ` + newEvents + ` (` + definitions(stagedEventColumns, true) + `) ON COMMIT DELETE ROWS`,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
