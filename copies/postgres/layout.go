package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/fields"
	"github.com/lectern-dev/lectern/copies/internal/since"
)

// layout is the version of the tables that this package creates. A copy with another version is an error.
const layout = 4

// column describes a column of a table of the copy: its name, its SQL type, its constraints, and its comment in the
// database.
type column struct{ name, kind, rule, comment string }

// table describes a table of the copy. keys is the number of columns in the primary key, which are the first columns. A
// table with 0 keys gets its primary key at the end of the first load. Until then, the whole row is the replica
// identity, which makes inserts no slower. Without an identity, Postgres would refuse updates and deletes of a table
// that a user publishes.
type table struct {
	name    string
	columns []column
	keys    int
	comment string
}

// bytewise lets a column with identifiers compare text by bytes, as the API does.
const bytewise = ` COLLATE "C"`

// entryFields and eventFields are the fields of the API's entries and events, in the order of their columns.
var (
	entryFields = fields.Of[client.Entry]()
	eventFields = fields.Of[client.ChangedEvent]()
)

// dataField is the name of the field whose column is jsonb. All other columns have the type text, bigint or
// timestamptz.
const dataField = "entry_data"

// comments has the comments in the database for the columns of entries and events, by the name of the column.
var comments = map[string]string{
	"entry_id":                  "Entry; its events may come before it",
	"contact_id":                "Person who answered",
	"project_id":                "Project",
	"group_id":                  "Group that the embeddable belongs to",
	"embeddable_id":             "Embeddable that was answered",
	"created_at":                "Time of the first answer",
	"updated_at":                "Time of the last answer",
	"entry_data":                "Answers, by key; null if jsonb cannot hold them",
	"event_key":                 "Stable key of the event",
	"event_id":                  "Identifier at the source, or null",
	"embeddable_version_number": "Version of the embeddable that was shown",
	"timestamp":                 "Time of the event",
	"page_id":                   "Page",
	"page_key":                  "Name of the page",
	"page_index":                "Position of the page",
	"max_page_id":               "Furthest page so far",
	"max_page_key":              "Name of the furthest page",
	"max_page_index":            "Position of the furthest page",
	"total_pages":               "Number of pages",
	"event_type":                "Type, such as flowpage.viewed",
	"view_type":                 "Type of the view",
	"custom_event_name":         "Name of a custom event",
	"custom_event_props":        "Properties of a custom event, as JSON text",
	"url":                       "Address of the page that embeds",
}

// apiColumns returns a column for each field in all, with the constraints that the field requires. The column of
// entry_data has the SQL type data, and may be null.
func apiColumns(all []fields.Field, data string) (list []column) {
	for _, f := range all {
		c := column{name: f.Name, kind: "text", comment: comments[f.Name]}
		switch {
		case f.Name == dataField:
			c.kind, f.Nullable = data, true
		case f.Time():
			c.kind = "timestamptz"
		case f.Integer():
			c.kind = "bigint"
		case strings.HasSuffix(f.Name, "_id"), f.Name == "event_key":
			c.rule = bytewise
		}
		if !f.Nullable {
			c.rule += " NOT NULL"
		}
		list = append(list, c)
	}
	return list
}

// The tables of a copy and their columns, which docs/reference/copies.md describes.
var (
	// With Options.SoftDelete, the row of a purged entry or of its event remains. The row then has the time and the
	// reason of the removal.
	markColumns = []column{
		{"seq", "bigint", " NOT NULL", "Number of the last change"},
		{"removed_at", "timestamptz", "", "Time of the removal; null if the row is current"},
		{"removal_reason", "text", "", "Reason of the removal"},
	}
	entryColumns = slices.Concat(apiColumns(entryFields, "jsonb"), []column{
		{"entry_data_text", "text", "", "Answers that jsonb cannot hold, byte for byte; otherwise null"},
		{"entry_columns", "jsonb", "", "Values that the view of the embeddable shows, if they are not those of entry_data; otherwise null"},
	}, markColumns)
	eventColumns = slices.Concat(apiColumns(eventFields, ""), markColumns)
	stateColumns = []column{
		{"only_row", "boolean", " DEFAULT true CHECK (only_row)", ""},
		{"layout", "bigint", " NOT NULL", "Version of the tables"},
		{"project_id", "text", " NOT NULL", "Project of the copy"},
		{"url", "text", " NOT NULL", "Address of the API"},
		{"cursor", "text", " NOT NULL", "Position in the feed"},
		{"seq", "bigint", " NOT NULL", "Number of the last change that the copy has"},
		{"changed_at", "timestamptz", " NOT NULL", "Time of the last change of the copy"},
		{"current_at", "timestamptz", "", "Time at which the copy last had all changes"},
		{"verified_at", "timestamptz", "", "Time of the last comparison with the source"},
		{"differences", "bigint", "", "Differences that it found"},
		{"load_to", "bigint", "", "Number of the newest change when the first load began; null once it has ended and keys and indexes are made"},
		{"project", "text", " NOT NULL", "Digest of the embeddables and experiments that the copy has"},
		{"columns", "text", " NOT NULL", "Choice of columns"},
		{"soft_delete", "boolean", " NOT NULL", "Whether removed rows stay"},
		{"masked", "text", " NOT NULL", "Columns and keys of entry_data that are left out or hashed"},
		{"revision", "bigint", "", "Newest revision of the tables that a version has written"},
		{"unfilled_from", "bigint", "", "Number of the change after which rows may lack values in columns that a version added; null if none do"},
		{"unfilled_cursor", "text", "", "Position in the feed of that change"},
	}
	columnColumns = []column{
		{"embeddable_id", "text", bytewise + " NOT NULL", "Embeddable of the view"},
		{"position", "bigint", " NOT NULL", "Position of the column, from 0"},
		{"key", "text", bytewise + " NOT NULL", "Key in entry_data"},
		{"name", "text", bytewise + " NOT NULL", "Name of the column"},
		{"type", "text", " NOT NULL", "Type of the column"},
	}
	embeddableColumns = []column{
		{"embeddable_id", "text", bytewise + " NOT NULL", "Identifier of the embeddable"},
		{"title", "text", " NOT NULL", "Title"},
		{"group_id", "text", bytewise + " NOT NULL", "Group that it belongs to"},
		{"project_id", "text", bytewise + " NOT NULL", "Project"},
		{"definition", "text", " NOT NULL", "Content in production, as JSON text"},
	}
	versionColumns = []column{
		{"embeddable_id", "text", bytewise + " NOT NULL", "Embeddable"},
		{"version_number", "bigint", " NOT NULL", "Number of the version, from 1"},
		{"saved_at", "timestamptz", " NOT NULL", "Time at which it was saved"},
		{"definition", "text", " NOT NULL", "Saved content, as JSON text"},
	}
	experimentColumns = []column{
		{"experiment_id", "text", bytewise + " NOT NULL", "Identifier of the experiment"},
		{"flow_id", "text", bytewise + " NOT NULL", "Embeddable that is tested"},
		{"name", "text", "", "Name"},
		{"hypothesis", "text", "", "Hypothesis"},
		{"impact_metrics", "text[]", "", "Metrics that should change"},
		{"no_impact_metrics", "text[]", "", "Metrics that should not change"},
		{"created_at", "timestamptz", " NOT NULL", "Time at which it was made"},
		{"updated_at", "timestamptz", " NOT NULL", "Time of the last change"},
		{"observations", "text", "", "Observations"},
		{"outcome", "text", "", "Outcome"},
		{"attachments", "text", "", "JSON text of an array of objects with url and name"},
		{"variants", "text", "", "JSON text of an object with the variants by key"},
		{"flow_ids", "text[]", "", "Embeddables of the variants"},
		{"paused_showing_variant", "text", "", "Key of the variant that is shown while the experiment is paused"},
		{"winner_variant", "text", "", "Key of the variant that won"},
		{"status", "text", "", "draft, running, paused, winner_picked, completed or discarded"},
	}
	historyColumns = []column{
		{"experiment_id", "text", bytewise + " NOT NULL", "Experiment"},
		{"change", "bigint", " NOT NULL", "Number of the change in its experiment, from 1"},
		{"status", "text", "", "New status"},
		{"changed_at", "timestamptz", " NOT NULL", "Time of the change at the source"},
		{"recorded_at", "timestamptz", " NOT NULL", "Time at which the server recorded the change"},
	}
	tables = []table{
		{"entries", entryColumns, 0, "Answers of a person to an embeddable, one row for each entry"},
		{"events", eventColumns, 0, "Page views and other events of entries, one row for each event"},
		{"embeddables", embeddableColumns, 1, "Embeddables of the project, as they are now"},
		{"embeddable_versions", versionColumns, 2, "Saved versions of embeddables"},
		{"experiments", experimentColumns, 1, "Experiments on embeddables, as they are now"},
		{"experiment_history", historyColumns, 2, "Changes of the status of experiments"},
		{stateTable, stateColumns, 1, "Source and position of the copy; do not change it"},
		{columnsTable, columnColumns, 2, "Columns of the views of embeddables; do not change it"},
	}
)

// shape has the tables of the copy at one revision, and the columns that batches write.
//
// stagedEntries are the columns of the staging table for entries. plain reports that jsonb certainly accepts entry_data,
// and fits that all values fit their columns. entry_columns has values only if plain or fits is false. stagedEvents are
// the columns of the staging table for events: all but the two marks of a removal.
type shape struct {
	since.Table
	tables                                       []table
	entryFields, eventFields                     []fields.Field
	entries, events, stagedEntries, stagedEvents []column
}

// shapeOf returns the tables without the tables and columns that a revision after r.Number adds. A column that a
// revision has added may be null, because older rows have no value until they are filled.
func shapeOf(r since.Table) shape {
	s := shape{Table: r}
	for _, t := range tables {
		if r.Since[t.name] > r.Number {
			continue
		}
		all := t.columns
		t.columns = nil
		for _, c := range all {
			at := r.Since[t.name+"."+c.name]
			if at > 0 {
				c.rule = strings.TrimSuffix(c.rule, " NOT NULL")
			}
			if at <= r.Number {
				t.columns = append(t.columns, c)
			}
		}
		s.tables = append(s.tables, t)
	}
	s.entries, s.events = s.table("entries").columns, s.table("events").columns
	s.entryFields, s.eventFields = fieldsOf[client.Entry](s.entries), fieldsOf[client.ChangedEvent](s.events)
	s.stagedEntries = slices.Concat(apiColumns(s.entryFields, "text"), []column{
		{name: "seq", kind: "bigint"}, {name: "plain", kind: "boolean"}, {name: "fits", kind: "boolean"}, {name: "entry_columns", kind: "text"},
	})
	s.stagedEvents = s.events[:len(s.events)-2]
	return s
}

// table returns a table of the copy, or a table without columns for an unknown name.
func (s *shape) table(name string) table {
	for _, t := range s.tables {
		if t.name == name {
			return t
		}
	}
	return table{name: name}
}

// fieldsOf returns the fields of the API's record T that have one of the columns, in the order of the columns.
func fieldsOf[T any](list []column) (found []fields.Field) {
	all := fields.Of[T]()
	for _, c := range list {
		if i := slices.IndexFunc(all, func(f fields.Field) bool { return copies.ColumnOf(f.Name) == c.name }); i >= 0 {
			found = append(found, all[i])
		}
	}
	return found
}

const (
	// stateTable is the name of the table with the copy's source and position.
	stateTable = "lectern_sync"
	// columnsTable is the name of the table that lists the columns of each view of an embeddable.
	columnsTable = "lectern_columns"
	// pageViews is the name of the view that shows events of the type flowpage.viewed.
	pageViews = "page_views"
)

// Staging tables receive the rows of a batch before SQL merges the rows into the copy. A staging table is a temporary
// table of the connection, and empty after each transaction.
const (
	newEntries = "lectern_new_entries"
	newEvents  = "lectern_new_events"
)

// staged returns the qualified name of a staging table. The name is correct even if a schema in search_path has a
// table of the same name.
func staged(table string) pgx.Identifier { return pgx.Identifier{"pg_temp", table} }

// toJSONB is SQL that creates the function lectern_to_jsonb. The function returns null for JSON that jsonb cannot
// store. Examples are \u0000, unpaired surrogates, numbers out of range, and values that are nested too deeply.
const toJSONB = `
CREATE OR REPLACE FUNCTION pg_temp.lectern_to_jsonb(data text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    RETURN data::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN NULL;
END $$`

// definitions returns the definitions of columns for CREATE TABLE. For a staging table, the constraints are left out.
// A column that the mask leaves out may be null.
func definitions(columns []column, staging bool, m *copies.Mask) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = pgx.Identifier{c.name}.Sanitize() + " " + c.kind
		if rule := c.rule; !staging {
			if m.Lacks(c.name) {
				rule = strings.TrimSuffix(rule, " NOT NULL")
			}
			list[i] += rule
		}
	}
	return strings.Join(list, ", ")
}

// names returns the names of columns in their order, except the names in but.
func names(columns []column, but ...string) []string {
	var list []string
	for _, c := range columns {
		if !slices.Contains(but, c.name) {
			list = append(list, c.name)
		}
	}
	return list
}

// in returns the quoted name of a table, a view or an index of the copy, with the schema.
func (d *Destination) in(name string) string { return pgx.Identifier{d.Schema, name}.Sanitize() }

// listed returns the quoted names, each after prefix, separated by commas.
func listed(prefix string, names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = prefix + pgx.Identifier{name}.Sanitize()
	}
	return strings.Join(quoted, ", ")
}

// statements are the SQL statements with which a [Destination] reads and writes the copy in one schema.
type statements struct {
	deleteEntries, deleteEvents, deleteLost, markEntries, markEvents, loadEntries, putEntries, putEvents, setPosition, readState, insertState, setURL, readColumns, putColumn, makeIndexes string
}

func newStatements(schema string, s *shape) statements {
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
	entries := names(s.entries, "entry_data", "entry_data_text", "entry_columns", "removed_at", "removal_reason")
	events := names(s.events, "removed_at", "removal_reason")
	// OFFSET 0 keeps the planner from merging the subquery, which would evaluate j.data twice.
	insertEntries := func(onConflict string) string {
		return `
WITH put AS (
    INSERT INTO ` + in("entries") + ` AS t (` + listed("", entries) + `, entry_data, entry_data_text, entry_columns)
    SELECT ` + listed("n.", entries) + `, j.data, CASE WHEN j.data IS NULL THEN n.entry_data END,
        CASE WHEN j.data IS NULL OR NOT n.fits THEN n.entry_columns::jsonb END
    FROM pg_temp.` + newEntries + ` AS n, LATERAL (
        SELECT CASE WHEN n.plain THEN n.entry_data::jsonb ELSE pg_temp.lectern_to_jsonb(n.entry_data) END AS data OFFSET 0
    ) AS j` + onConflict + `
    RETURNING entry_data_text IS NOT NULL AS refused
)
SELECT count(*) FILTER (WHERE refused) FROM put`
	}
	var indexes []string
	for _, i := range s.indexes() {
		if fed(i.table) {
			indexes = append(indexes, i.create(schema))
		}
	}
	return statements{
		deleteEntries: remove("entries"),
		deleteEvents:  remove("events"),
		deleteLost:    remove(lostTable.name),
		markEntries:   mark("entries"),
		markEvents:    mark("events"),
		loadEntries:   insertEntries(""),
		putEntries:    insertEntries(update(s.entries, "entry_id")),
		putEvents: `
INSERT INTO ` + in("events") + ` AS t (` + listed("", events) + `)
SELECT ` + listed("n.", events) + `
FROM pg_temp.` + newEvents + ` AS n` + update(s.events, "event_key"),
		setPosition: `
UPDATE ` + in(stateTable) + `
SET cursor = $2, seq = $3, project = $6, load_to = $7, changed_at = CASE WHEN $4 THEN now() ELSE changed_at END, current_at = CASE WHEN $5 THEN now() ELSE current_at END
WHERE cursor = $1`,
		readState: `
SELECT to_jsonb(s) FROM ` + in(stateTable) + ` AS s`,
		insertState: `
INSERT INTO ` + in(stateTable) + ` (layout, project_id, url, cursor, seq, project, load_to, changed_at, columns, soft_delete, masked, revision)
VALUES ($1, $2, $3, '', 0, '', 0, now(), $4, $5, $6, $7)`,
		setURL: `
UPDATE ` + in(stateTable) + ` SET url = $1 WHERE url <> $1`,
		readColumns: `
SELECT embeddable_id, key, name, type FROM ` + in(columnsTable) + ` ORDER BY embeddable_id, position`,
		putColumn: `
INSERT INTO ` + in(columnsTable) + ` (embeddable_id, position, key, name, type)
SELECT $1, coalesce(max(position) + 1, 0), $2, $3, $4 FROM ` + in(columnsTable) + ` WHERE embeddable_id = $1`,
		makeIndexes: strings.Join(indexes, ";\n"),
	}
}

// create makes the tables of a new copy, with their comments, and the view of page views.
func (d *Destination) create(ctx context.Context, tx pgx.Tx) error {
	var all []string
	for _, t := range d.shape.tables {
		all = append(all, d.createTable(t)...)
	}
	all = append(all, d.createPageViews())
	_, err := tx.Exec(ctx, strings.Join(all, ";\n"))
	return err
}

// createTable returns the SQL that makes a table with its comments. A column that the mask leaves out may be null.
func (d *Destination) createTable(t table) []string {
	name := d.in(t.name)
	columns, identity := definitions(t.columns, false, d.Mask), fmt.Sprintf(`ALTER TABLE %s REPLICA IDENTITY FULL`, name)
	if t.keys > 0 {
		columns += `, PRIMARY KEY (` + listed("", names(t.columns[:t.keys])) + `)`
		identity = fmt.Sprintf(`ALTER TABLE %s REPLICA IDENTITY DEFAULT`, name)
	}
	all := []string{fmt.Sprintf(`CREATE TABLE %s (%s)`, name, columns), identity, fmt.Sprintf(`COMMENT ON TABLE %s IS %s`, name, quoted(t.comment))}
	for _, c := range t.columns {
		all = append(all, commentOn(name, c))
	}
	return all
}

// commentOn returns the SQL that sets the comment of a column. table is the quoted name of the table.
func commentOn(table string, c column) string {
	return fmt.Sprintf(`COMMENT ON COLUMN %s.%s IS %s`, table, pgx.Identifier{c.name}.Sanitize(), quoted(c.comment))
}

// quoted returns text as a literal of SQL.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// createPageViews returns SQL that creates the view of page views.
func (d *Destination) createPageViews() string {
	view := d.in(pageViews)
	return `CREATE VIEW ` + view + ` AS ` + d.pageViewsSQL() + `;
COMMENT ON VIEW ` + view + ` IS 'Events of the type flowpage.viewed'`
}

// pageViewsSQL returns the query of the view of page views. The view shows current events only.
func (d *Destination) pageViewsSQL() string {
	return `
SELECT event_key, entry_id, contact_id, group_id, embeddable_id, embeddable_version_number, "timestamp", page_id, page_key, page_index, url
FROM ` + d.in("events") + `
WHERE event_type = 'flowpage.viewed' AND removed_at IS NULL`
}

// prepare creates the temporary function and the staging tables that a connection needs for batches.
func (d *Destination) prepare(ctx context.Context) error {
	for _, sql := range []string{
		toJSONB,
		`CREATE TEMP TABLE ` + staged(newEntries).Sanitize() + ` (` + definitions(d.shape.stagedEntries, true, nil) + `) ON COMMIT DELETE ROWS`,
		`CREATE TEMP TABLE ` + staged(newEvents).Sanitize() + ` (` + definitions(d.shape.stagedEvents, true, nil) + `) ON COMMIT DELETE ROWS`,
	} {
		if _, err := d.conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
