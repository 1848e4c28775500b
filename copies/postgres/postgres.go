// Package postgres keeps a copy of a project in the tables of a Postgres schema. One connection locks the copy by an
// advisory lock. The connection writes each batch in one transaction, together with the position after the batch.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/internal/since"
)

// Options configure a [Destination]: the database and the schema, the copied project, and which existing copies it
// accepts.
type Options struct {
	// URL is a connection string of Postgres, such as postgres://USER@HOST:PORT/DATABASE.
	URL string
	// Schema is the name of the schema with the copy, which should contain nothing else. Open creates a missing
	// schema.
	Schema string
	Source copies.Source
	// Moved accepts a copy that was made from another URL of the same project.
	Moved bool
	// SoftDelete keeps removed rows and marks them as removed. Rows that an erasure removes are deleted nevertheless.
	SoftDelete bool
	// Columns selects the keys of entry_data that become columns of the views. The choice must be that of the existing
	// copy.
	Columns columns.Choice
	// Mask is the same as that of [copies.Options]. Columns that the mask leaves out are null.
	Mask *copies.Mask
	// Note, if set, is called with a text for the user, once for each different text.
	Note func(text string)
	// LockWait is how long Open waits for another process that has the copy locked.
	LockWait time.Duration
}

// Destination is a copy in a Postgres schema. Destination is a [copies.Destination] and a [copies.Verifiable].
type Destination struct {
	Options
	config *pgx.ConnConfig
	shape  shape
	sql    statements
	conn   *pgx.Conn
	at     copies.Position
	// loadTo is the number of the newest change when the first load began; nil after the load.
	loadTo *int64
	// unfilled is the position after which rows may lack values in columns that this version added; nil if none do.
	unfilled *copies.Position
	lost     bool // the copy has the table lectern_lost
	asText   int64
	views    map[string]*columns.Set // by embeddable
	stale    map[string]staleView    // by embeddable
	injured  []injuredColumn
}

// New returns the copy that o describes, without connecting to Postgres. The error for a malformed URL does not show
// the password.
func New(o Options) (*Destination, error) { return NewAt(o, since.Copies) }

// NewAt returns the copy as New does, at a revision of the tables. Only tests of this module can make a list of
// revisions.
func NewAt(o Options, r since.Table) (*Destination, error) {
	config, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("want postgres://USER@HOST:PORT/DATABASE: %w", err)
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "lectern sync"
	}
	o.Note = copies.Once(o.Note)
	s := shapeOf(r)
	return &Destination{Options: o, config: config, shape: s, sql: newStatements(o.Schema, &s)}, nil
}

// String returns the schema, the database and the host for messages, without the password.
func (d *Destination) String() string {
	return fmt.Sprintf("schema %s of database %s on %s", d.Schema, d.config.Database, d.config.Host)
}

// Remarks returns sentences for the user about the data of entries that this run stored in another way than usual.
func (d *Destination) Remarks() (list []string) {
	switch d.asText {
	case 0:
	case 1:
		list = append(list, "1 entry has data"+asTextRemark)
	default:
		list = append(list, fmt.Sprintf("%d entries have data"+asTextRemark, d.asText))
	}
	return append(list, columns.Remarks(d.views)...)
}

const asTextRemark = " that jsonb cannot hold; it is in the column entry_data_text."

// Traits returns that a copy has all records.
func (*Destination) Traits() copies.Traits { return copies.Traits{Project: true} }

// Limits returns how many changes and bytes a batch may have. A batch is one transaction.
func (d *Destination) Limits() copies.Limits {
	return copies.Limits{Changes: 20_000, Bytes: 4 << 20}
}

// Open connects to Postgres, locks the copy, creates it if it is missing, and returns its position. A copy of another
// source, or with other options, is an error.
func (d *Destination) Open(ctx context.Context) (at copies.Position, err error) {
	if err := d.connect(ctx); err != nil {
		return at, err
	}
	defer func() {
		if err != nil {
			_ = d.Close()
		}
	}()
	conn := d.conn
	if encoding := conn.PgConn().ParameterStatus("server_encoding"); encoding != "UTF8" {
		return at, fmt.Errorf("database %s has the encoding %s; a copy needs UTF8", d.config.Database, encoding)
	}
	if err := Lock(ctx, conn, lockClass, d.Schema, d.LockWait); err != nil {
		return at, d.explain("lock", err)
	}
	if err := d.ensure(ctx); err != nil {
		return at, d.explain("open", err)
	}
	if err := d.prepare(ctx); err != nil {
		return at, d.explain("open", err)
	}
	return d.at, nil
}

const (
	schemaThere = `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)`

	// relationsOf is a query for the tables and views of the schema $1 with the names $2, and for their columns.
	relationsOf = `
SELECT c.relname, coalesce(a.attname, ''), coalesce(format_type(a.atttypid, a.atttypmod), '')
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE n.nspname = $1 AND c.relname = ANY($2::text[])`
)

// ensure creates the copy if it is missing, and otherwise checks it. ensure sets d.at to the copy's position.
func (d *Destination) ensure(ctx context.Context) error {
	var there bool
	if err := d.conn.QueryRow(ctx, schemaThere, d.Schema).Scan(&there); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, d.conn, func(tx pgx.Tx) error {
		if !there {
			if _, err := tx.Exec(ctx, `CREATE SCHEMA `+pgx.Identifier{d.Schema}.Sanitize()); err != nil {
				return err
			}
		}
		found, err := d.relations(ctx, tx)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			d.at, d.loadTo = copies.Position{}, new(int64)
			if err := d.create(ctx, tx); err != nil {
				return err
			}
			d.views, d.stale, d.unfilled = map[string]*columns.Set{}, map[string]staleView{}, nil
			_, err := tx.Exec(ctx, d.sql.insertState, layout, d.Source.ProjectID, d.Source.URL, d.Columns.String(), d.SoftDelete, d.Mask.String(), d.shape.Number)
			return err
		}
		d.lost = found[lostTable.name] != nil
		if found[stateTable] == nil {
			return fmt.Errorf("%s has tables that lectern sync did not make (%s, without %s): give another --schema", d, strings.Join(slices.Sorted(maps.Keys(found)), ", "), stateTable)
		}
		was, err := d.check(ctx, tx)
		if err != nil {
			return err
		}
		if err := d.gain(ctx, tx, found, was); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, d.sql.setURL, d.Source.URL); err != nil {
			return err
		}
		if found[pageViews] == nil {
			if _, err := tx.Exec(ctx, d.createPageViews()); err != nil {
				return err
			}
		}
		if err := d.loadViews(ctx, tx); err != nil {
			return err
		}
		for _, c := range d.injured {
			d.Note(fmt.Sprintf("The column %s of embeddable %q has another type in the table %s than in its view. Run once with --repair.", c.Name, c.embeddableID, columnsTable))
		}
		return d.makeKeys(ctx, tx)
	})
}

// relations returns the types of columns by relation and column name. relations returns only the relations with names
// of the copy's tables and of the view of page views.
func (d *Destination) relations(ctx context.Context, tx pgx.Tx) (map[string]map[string]string, error) {
	wanted := []string{pageViews, lostTable.name}
	for _, t := range d.shape.tables {
		wanted = append(wanted, t.name)
	}
	rows, err := tx.Query(ctx, relationsOf, d.Schema, wanted)
	if err != nil {
		return nil, err
	}
	found := map[string]map[string]string{}
	var table, name, kind string
	_, err = pgx.ForEachRow(rows, []any{&table, &name, &kind}, func() error {
		if found[table] == nil {
			found[table] = map[string]string{}
		}
		found[table][name] = kind
		return nil
	})
	return found, err
}

// stored is the row of the table lectern_sync. A column that an older version lacks is zero.
type stored struct {
	Layout         int64   `json:"layout"`
	ProjectID      string  `json:"project_id"`
	URL            string  `json:"url"`
	Cursor         string  `json:"cursor"`
	Seq            int64   `json:"seq"`
	Project        string  `json:"project"`
	LoadTo         *int64  `json:"load_to"`
	Columns        string  `json:"columns"`
	SoftDelete     bool    `json:"soft_delete"`
	Masked         string  `json:"masked"`
	Revision       int64   `json:"revision"`
	UnfilledFrom   *int64  `json:"unfilled_from"`
	UnfilledCursor *string `json:"unfilled_cursor"`
}

// made returns the facts with which the copy was made.
func (s *stored) made() copies.Made {
	return copies.Made{
		Source: copies.Source{URL: s.URL, ProjectID: s.ProjectID}, Layout: s.Layout, Masked: s.Masked,
		Settings: []copies.Setting{{Flag: "--columns", Value: s.Columns}, {Flag: "--soft-delete", Value: strconv.FormatBool(s.SoftDelete)}},
	}
}

// check reads the copy's state into d, and returns the state. A copy of another source, or with other options, is an
// error.
func (d *Destination) check(ctx context.Context, tx pgx.Tx) (was stored, err error) {
	err = tx.QueryRow(ctx, d.sql.readState).Scan(&was)
	if errors.Is(err, pgx.ErrNoRows) {
		return was, fmt.Errorf("the table %s of %s is empty, so that nothing says what the copy is of: give another --schema", stateTable, d)
	}
	if err != nil {
		return was, err
	}
	d.at, d.loadTo, d.unfilled = copies.Position{Cursor: was.Cursor, Seq: was.Seq, Project: was.Project}, was.LoadTo, nil
	if was.UnfilledCursor != nil && was.UnfilledFrom != nil && d.shape.Number >= was.Revision {
		d.unfilled = &copies.Position{Cursor: *was.UnfilledCursor, Seq: *was.UnfilledFrom}
	}
	now := stored{Layout: layout, ProjectID: d.Source.ProjectID, URL: d.Source.URL, Columns: d.Columns.String(), SoftDelete: d.SoftDelete}
	return was, was.made().Check(now.made(), d.Mask, d.Moved, d.String()+" has a copy", "another --schema for a new copy")
}

// checkColumns returns an error unless the tables have all columns of the layout, with the same types. Tables may have
// further columns.
func (d *Destination) checkColumns(found map[string]map[string]string) error {
	for _, t := range d.shape.tables {
		if found[t.name] == nil {
			return fmt.Errorf("%s lacks the table %s: restore it, or give another --schema for a new copy", d, t.name)
		}
		for _, c := range t.columns {
			kind := found[t.name][c.name]
			if kind == "timestamp with time zone" {
				kind = "timestamptz"
			}
			switch kind {
			case c.kind:
			case "":
				return fmt.Errorf("the table %s of %s lacks the column %s (%s): restore it with its values, or give another --schema for a new copy", t.name, d, c.name, c.kind)
			default:
				return fmt.Errorf("the column %s of the table %s of %s has the type %s; a copy needs %s: change it back, or give another --schema for a new copy", c.name, t.name, d, kind, c.kind)
			}
		}
	}
	return nil
}

// Apply writes a batch and its position in one transaction. After the transaction, Apply creates or replaces views
// that lack columns.
//
// The first load is the part of the feed up to the change that was newest when the copy began. The first load has each
// key once, and its removals are older than the copy. So the tables need no keys during the first load. Apply makes
// the keys and indexes at the end of the first load, which takes less time.
func (d *Destination) Apply(ctx context.Context, b *copies.Batch) error {
	loadTo := d.loadTo
	if loadTo != nil && d.at.Cursor == "" {
		loadTo = new(b.Known)
	}
	loaded := loadTo != nil && (b.Current || b.Position.Seq > *loadTo)
	if loaded {
		loadTo = nil
	}
	var refused int64
	err := pgx.BeginFunc(ctx, d.conn, func(tx pgx.Tx) (err error) {
		// The update of the position is first, because it locks the row of the state. The update changes no row if
		// another process has changed the position.
		tag, err := tx.Exec(ctx, d.sql.setPosition, d.at.Cursor, b.Position.Cursor, b.Position.Seq,
			len(b.Changes) > 0 || b.Project != nil, b.Current, b.Position.Project, loadTo)
		if err != nil {
			return err
		}
		if tag.RowsAffected() != 1 {
			return fmt.Errorf("another sync has written to %s meanwhile: run one at a time", d)
		}
		if loaded {
			if _, err := tx.Exec(ctx, d.sql.makeIndexes); err != nil {
				return err
			}
		}
		if refused, err = d.put(ctx, tx, b.Newest(), loadTo != nil); err != nil {
			return err
		}
		if err := d.putProject(ctx, tx, b.Project); err != nil || !loaded {
			return err
		}
		return d.makeKeys(ctx, tx)
	})
	if err != nil {
		return d.explain("write", err)
	}
	d.at, d.loadTo = b.Position, loadTo
	d.asText += refused
	d.showViews(ctx)
	if b.Current { // notes have the counts of all changes until now
		for _, note := range columns.Notes(d.views) {
			d.Note(note)
		}
	}
	return nil
}

// keyless is a query for the tables that have the unique index of their primary key, but no primary key.
const keyless = `
SELECT t FROM unnest(ARRAY['entries', 'events']) AS t
WHERE to_regclass(format('%I.%I', $1::text, t || '_pkey')) IS NOT NULL
  AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass(format('%I.%I', $1::text, t)) AND contype = 'p')`

// makeKeys turns unique indexes into primary keys. If a query uses a table at that moment, the table stays without a
// primary key until the next Open.
func (d *Destination) makeKeys(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, keyless, d.Schema)
	if err != nil {
		return err
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, table := range list {
		err := pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error {
			_, err := savepoint.Exec(ctx, noWait+`; ALTER TABLE `+d.in(table)+` ADD PRIMARY KEY USING INDEX `+table+`_pkey, REPLICA IDENTITY DEFAULT`)
			return err
		})
		if locked(err) {
			d.Note(fmt.Sprintf("A query held the table %s, so it has a unique index and no primary key. The next run tries again.", table))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// remove removes the rows of the entries and events that the removals in all name. With SoftDelete, remove marks the
// rows instead, unless the removal is an erasure.
func (d *Destination) remove(ctx context.Context, tx pgx.Tx, all []client.Change) error {
	var gone, marked []client.Change
	for _, c := range all {
		if d.SoftDelete && c.Removal.Reason != client.Erased {
			marked = append(marked, c)
		} else {
			gone = append(gone, c)
		}
	}
	for _, r := range []struct {
		removals        []client.Change
		events, entries string
	}{{gone, d.sql.deleteEvents, d.sql.deleteEntries}, {marked, d.sql.markEvents, d.sql.markEntries}} {
		if len(r.removals) == 0 {
			continue
		}
		columns := removalColumns(r.removals)
		if _, err := tx.Exec(ctx, r.events, columns...); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, r.entries, columns...); err != nil {
			return err
		}
	}
	return d.eraseLost(ctx, tx, all)
}

// put writes the removals, then the entries and events of n, and returns how many entries have data that jsonb cannot
// store. loading reports the first load, which has no removals.
func (d *Destination) put(ctx context.Context, tx pgx.Tx, n copies.Newest, loading bool) (refused int64, err error) {
	putEntries, eventTable := d.sql.loadEntries, pgx.Identifier{d.Schema, "events"}
	if !loading {
		if err := d.remove(ctx, tx, n.Removals); err != nil {
			return 0, err
		}
		putEntries, eventTable = d.sql.putEntries, staged(newEvents)
	}
	if len(n.Entries) > 0 {
		fits, err := d.addColumns(ctx, tx, n.Entries)
		if err != nil {
			return 0, err
		}
		row := newRow[client.Entry](d, d.shape.entryFields, d.shape.stagedEntries)
		rows := pgx.CopyFromSlice(len(n.Entries), func(i int) ([]any, error) {
			c := &n.Entries[i]
			plain := columns.Plain(c.Entry.Data)
			shown, err := d.shown(c.Entry, plain, fits[i])
			return row.of(c.Seq, c.Entry, plain, fits[i], shown), err
		})
		if _, err := tx.CopyFrom(ctx, staged(newEntries), names(d.shape.stagedEntries), rows); err != nil {
			return 0, err
		}
		if err := tx.QueryRow(ctx, putEntries).Scan(&refused); err != nil {
			return 0, err
		}
	}
	if len(n.Events) > 0 {
		row := newRow[client.ChangedEvent](d, d.shape.eventFields, d.shape.stagedEvents)
		rows := pgx.CopyFromSlice(len(n.Events), func(i int) ([]any, error) { return row.of(n.Events[i].Seq, n.Events[i].Event), nil })
		if _, err := tx.CopyFrom(ctx, eventTable, names(d.shape.stagedEvents), rows); err != nil {
			return 0, err
		}
		if !loading {
			if _, err := tx.Exec(ctx, d.sql.putEvents); err != nil {
				return 0, err
			}
		}
	}
	return refused, nil
}

// Close closes the connection, which releases the lock of the copy.
func (d *Destination) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = d.conn.Close(ctx) // an open transaction is rolled back
	return nil
}

func removalColumns(removals []client.Change) []any {
	ids, seqs := make([]string, len(removals)), make([]int64, len(removals))
	times, reasons := make([]time.Time, len(removals)), make([]string, len(removals))
	for i, c := range removals {
		r := c.Removal
		ids[i], seqs[i], times[i], reasons[i] = r.EntryID, c.Seq, r.RemovedAt, string(r.Reason)
	}
	return []any{ids, seqs, times, reasons}
}

// blank sets the values of row to null whose columns the mask leaves out, and returns row.
func (d *Destination) blank(columns []column, row []any) []any {
	for _, name := range d.Mask.Names() {
		if i := slices.IndexFunc(columns, func(c column) bool { return c.name == name }); i >= 0 {
			row[i] = nil
		}
	}
	return row
}
