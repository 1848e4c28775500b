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
)

// lack is a table that the copy lacks, or a column of a table. column is nil for a table.
type lack struct {
	table
	column *column
}

// String returns the name of the table or the column, for messages.
func (l lack) String() string {
	if l.column == nil {
		return l.name
	}
	return l.name + "." + l.column.name
}

// lacking returns the tables and columns that revisions after was have added, and that the copy lacks. found has the
// columns of the copy by table.
func (d *Destination) lacking(found map[string]map[string]string, was int64) (list []lack) {
	for _, t := range d.shape.tables {
		if found[t.name] == nil {
			if d.shape.Since[t.name] > was {
				list = append(list, lack{t, nil})
			}
			continue
		}
		for i, c := range t.columns {
			if found[t.name][c.name] == "" && d.shape.Since[t.name+"."+c.name] > was {
				list = append(list, lack{t, &t.columns[i]})
			}
		}
	}
	return list
}

// gain adds what the copy lacks since the revision that was.Revision says, and notes in the state which rows have no
// values yet. In the copy of a newer version, gain notes that this version leaves columns unfilled from now on.
func (d *Destination) gain(ctx context.Context, tx pgx.Tx, found map[string]map[string]string, was stored) error {
	state := d.in(stateTable)
	if was.Revision > d.shape.Number {
		d.Note(fmt.Sprintf("A newer version of lectern has added columns to the copy. This version leaves the columns empty in rows after change %d. The newer version fills them.", was.Seq))
		_, err := tx.Exec(ctx, `UPDATE `+state+` SET unfilled_from = coalesce(unfilled_from, seq), unfilled_cursor = coalesce(unfilled_cursor, cursor)`)
		if err != nil {
			return err
		}
		return d.checkColumns(found)
	}
	list := d.lacking(found, was.Revision)
	var added []string
	for _, l := range list {
		sql := strings.Join(d.createTable(l.table), ";\n")
		if l.column != nil {
			name := d.in(l.name)
			sql = noWait + `; ALTER TABLE ` + name + ` ADD COLUMN ` + definitions([]column{*l.column}, false, d.Mask) + `; ` + commentOn(name, *l.column)
		}
		_, err := tx.Exec(ctx, sql)
		if locked(err) {
			return copies.Temporary(fmt.Errorf("a query holds the table %s of %s, to which this version of lectern adds %s: run again after the query", l.name, d, l))
		}
		if err != nil {
			return err
		}
		if fed(l.name) {
			d.unfilled = &copies.Position{}
		}
		if l.name != stateTable {
			added = append(added, l.String())
		}
	}
	found, err := d.relations(ctx, tx)
	if err != nil {
		return err
	}
	if err := d.checkColumns(found); err != nil {
		return err
	}
	if len(added) > 0 {
		d.Note(fmt.Sprintf("This version of lectern has added to the copy: %s.", strings.Join(added, ", ")))
	}
	if d.unfilled != nil || len(added) > 0 {
		d.at.Project = "" // the next batch writes the records without a feed again
	}
	if d.unfilled != nil && d.gained("entries") == nil && d.gained("events") == nil {
		d.unfilled = nil
	}
	if d.unfilled != nil {
		d.Note(fmt.Sprintf("Rows after change %d may lack values in added columns. The run reads the feed again and fills them.", d.unfilled.Seq))
	}
	from, cursor := d.unfilledValues()
	_, err = tx.Exec(ctx, `UPDATE `+state+` SET revision = $1, project = $2, unfilled_from = $3, unfilled_cursor = $4`, d.shape.Number, d.at.Project, from, cursor)
	return err
}

// fed reports whether the rows of a table come from the feed.
func fed(table string) bool { return table == "entries" || table == "events" }

// unfilledValues returns the values of unfilled_from and unfilled_cursor.
func (d *Destination) unfilledValues() (from *int64, cursor *string) {
	if d.unfilled == nil {
		return nil, nil
	}
	return &d.unfilled.Seq, &d.unfilled.Cursor
}

// gained returns the names of the columns of a table that revisions have added.
func (d *Destination) gained(table string) (list []string) {
	for _, name := range names(d.shape.table(table).columns) {
		if d.shape.Since[table+"."+name] > 0 {
			list = append(list, name)
		}
	}
	return list
}

// Unfilled returns the position after which rows may lack values in columns that a version added.
func (d *Destination) Unfilled() (copies.Position, bool) {
	if d.unfilled == nil {
		return copies.Position{}, false
	}
	return *d.unfilled, true
}

// Fill sets the columns that versions have added, in the rows that still have the state of a change of f. A row whose
// values are right is not written.
func (d *Destination) Fill(ctx context.Context, f *copies.Filling) error {
	was := d.unfilled
	d.unfilled = &f.Position
	if f.Last {
		d.unfilled = nil
	}
	err := pgx.BeginFunc(ctx, d.conn, func(tx pgx.Tx) error {
		from, cursor := d.unfilledValues()
		if _, err := tx.Exec(ctx, `UPDATE `+d.in(stateTable)+` SET unfilled_from = $1, unfilled_cursor = $2`, from, cursor); err != nil {
			return err
		}
		var entries, events [][]any
		entryColumns, entryFields := d.filled("entries", "entry_id", d.shape.entryFields)
		eventColumns, eventFields := d.filled("events", "event_key", d.shape.eventFields)
		for _, c := range f.Changes {
			switch c.Type {
			case client.EntryChanged:
				entries = append(entries, d.blank(entryColumns, fields.Values([]any{c.Seq}, entryFields, c.Entry)))
			case client.EventAdded:
				events = append(events, d.blank(eventColumns, fields.Values([]any{c.Seq}, eventFields, c.Event)))
			}
		}
		if err := d.fill(ctx, tx, "entries", newEntries, entryColumns, entries); err != nil {
			return err
		}
		return d.fill(ctx, tx, "events", newEvents, eventColumns, events)
	})
	if err != nil {
		d.unfilled = was
	}
	return d.explain("write", err)
}

// filled returns the columns that Fill stages for a table: the number of the change, and then the key and the added
// columns. filled also returns the fields of the columns but the first.
func (d *Destination) filled(table, key string, all []fields.Field) (list []column, of []fields.Field) {
	list = []column{{name: "seq"}}
	wanted := append(d.gained(table), key)
	for _, f := range all {
		if slices.Contains(wanted, f.Name) {
			list, of = append(list, column{name: f.Name}), append(of, f)
		}
	}
	return list, of
}

// fill stages rows, and updates the rows of table with the same key and number whose values differ. list has the
// columns of rows.
func (d *Destination) fill(ctx context.Context, tx pgx.Tx, table, staging string, list []column, rows [][]any) error {
	gained := d.gained(table)
	if len(rows) == 0 || len(gained) == 0 {
		return nil
	}
	if _, err := tx.CopyFrom(ctx, staged(staging), names(list), pgx.CopyFromRows(rows)); err != nil {
		return err
	}
	key := names(list, append(gained, "seq")...)
	_, err := tx.Exec(ctx, `
UPDATE `+d.in(table)+` AS t SET (`+listed("", gained)+`) = ROW(`+listed("n.", gained)+`)
FROM pg_temp.`+staging+` AS n
WHERE (`+listed("t.", key)+`) = (`+listed("n.", key)+`) AND t.seq = n.seq AND ROW(`+listed("t.", gained)+`) IS DISTINCT FROM ROW(`+listed("n.", gained)+`)`)
	return err
}
