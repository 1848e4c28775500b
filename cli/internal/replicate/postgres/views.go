package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/cli/internal/columns"
	"github.com/lectern-dev/lectern/client"
)

// digestEnd matches the end of the names that viewOf makes with a digest.
var digestEnd = regexp.MustCompile(`_[0-9a-f]{12}$`)

// viewOf returns the name of the view of an embeddable's entries: entries_of_ID, with a digest for the rest of a long
// ID. An ID that ends like a digest gets one too, so that no two IDs have one name. No table or index of the copy has
// such a name.
func viewOf(embeddableID string) string {
	const longest = 63
	name := "entries_of_" + embeddableID
	if len(name) <= longest && !digestEnd.MatchString(name) {
		return name
	}
	return strings.ToValidUTF8(name[:min(50, len(name))], "") + fmt.Sprintf("_%.6x", sha256.Sum256([]byte(embeddableID)))
}

// staleView is a view that lacks columns, or has columns of other types.
type staleView struct {
	retyped bool      // has columns of other types
	next    time.Time // when to try next to make the view
}

const viewsOf = `
SELECT c.relname, json_object_agg(a.attname, a.atttypid::regtype::text)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE n.nspname = $1 AND c.relkind = 'v'
GROUP BY c.relname`

// loadViews reads the columns that the views should have, and finds views that lack some or have others.
func (d *Destination) loadViews(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, d.sql.readColumns)
	if err != nil {
		return err
	}
	lists := map[string][]columns.Column{}
	var id string
	var c columns.Column
	if _, err := pgx.ForEachRow(rows, []any{&id, &c.Key, &c.Name, &c.Type}, func() error {
		lists[id] = append(lists[id], c)
		return nil
	}); err != nil {
		return err
	}
	rows, err = tx.Query(ctx, viewsOf, d.Schema)
	if err != nil {
		return err
	}
	there := map[string]map[string]string{} // types by view and column
	var view string
	var has map[string]string
	if _, err := pgx.ForEachRow(rows, []any{&view, &has}, func() error {
		there[view], has = has, nil
		return nil
	}); err != nil {
		return err
	}
	d.views, d.stale = map[string]*columns.Set{}, map[string]staleView{}
	for id, list := range lists {
		d.views[id] = d.Columns.Restore(list)
		for _, c := range list {
			if kind := there[viewOf(id)][c.Name]; kind != typeOf(c.Type) {
				d.stale[id] = staleView{retyped: kind != "" || d.stale[id].retyped}
			}
		}
	}
	return nil
}

// addColumns stores the new columns of the entries' data, and returns which entries fit their columns. After an error,
// d.views is wrong until loadViews.
func (d *Destination) addColumns(ctx context.Context, tx pgx.Tx, entries []client.Change) (fits []bool, err error) {
	before := map[string]int{} // how many columns had the embeddables that get some
	fits = make([]bool, len(entries))
	for i, c := range entries {
		id := c.Entry.EmbeddableID
		set := d.views[id]
		if set == nil {
			set = d.Columns.Set()
			d.views[id] = set
			if len(set.Columns()) > 0 {
				before[id] = 0
			}
		}
		was, added := len(set.Columns()), false
		if added, fits[i] = set.Observe(c.Entry.EntryID, c.Entry.Data); added {
			if _, ok := before[id]; !ok {
				before[id] = was
			}
		}
	}
	for id, was := range before {
		d.stale[id] = staleView{retyped: d.stale[id].retyped}
		for _, c := range d.views[id].Columns()[was:] {
			if _, err := tx.Exec(ctx, d.sql.putColumn, id, c.Key, c.Name, string(c.Type)); err != nil {
				return nil, err
			}
		}
	}
	return fits, nil
}

// shownOf returns the values of an entry's columns as JSON, by key.
func shownOf(set *columns.Set, data string) (string, error) {
	list := set.Columns()
	values, shown := make([]any, len(list)), map[string]any{}
	set.Values(data, values)
	for i, v := range values {
		shown[list[i].Key] = v
	}
	text, err := json.Marshal(shown)
	return string(text), err
}

const (
	// noWait bounds how long a change of a table or view waits for queries on it. Other queries wait after it.
	noWait = `SET LOCAL lock_timeout = '200ms'`
	// viewPause is the time between two attempts to change a view.
	viewPause = time.Minute
)

// showViews makes the views that are missing or lack columns. The data is committed before, so a failure only delays a
// view: it is tried again later.
func (d *Destination) showViews(ctx context.Context) {
	for _, id := range slices.Sorted(maps.Keys(d.views)) {
		view, stale := d.stale[id]
		if !stale || time.Now().Before(view.next) {
			continue
		}
		err := pgx.BeginFunc(ctx, d.conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, noWait); err != nil {
				return err
			}
			return d.createView(ctx, tx, id)
		})
		switch {
		case err == nil:
			delete(d.stale, id)
		case d.conn.IsClosed() || ctx.Err() != nil:
			return // the next batch fails
		default:
			d.stale[id] = staleView{retyped: view.retyped, next: time.Now().Add(viewPause)}
			d.Note(fmt.Sprintf("The view %s is not up to date; all data is in the tables. The next attempt is in a minute or with the next run. %v", viewOf(id), err))
		}
	}
}

// createView makes the view of an embeddable's entries, or replaces it by one with more columns. Postgres replaces no view by
// one with other types, so such a view is dropped before, with its grants.
func (d *Destination) createView(ctx context.Context, tx pgx.Tx, embeddableID string) error {
	list := d.views[embeddableID].Columns()
	texts := []string{embeddableID}
	for _, c := range list {
		texts = append(texts, c.Key)
	}
	rows, err := tx.Query(ctx, `SELECT quote_literal(t) FROM unnest($1::text[]) WITH ORDINALITY AS u (t, n) ORDER BY n`, texts)
	if err != nil {
		return err
	}
	quoted, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	id, keys := quoted[0], quoted[1:]
	var sql strings.Builder
	view := pgx.Identifier{d.Schema, viewOf(embeddableID)}.Sanitize()
	if d.stale[embeddableID].retyped {
		if _, err := tx.Exec(ctx, "DROP VIEW IF EXISTS "+view); err != nil {
			return err
		}
	}
	fmt.Fprintf(&sql, "CREATE OR REPLACE VIEW %s AS\nSELECT %s", view,
		listed("t.", names(entryColumns, "entry_columns", "removed_at", "removal_reason")))
	for i, c := range list {
		value := "coalesce(t.entry_columns, t.entry_data) ->> " + keys[i]
		if kind := kindOf(c.Type); kind != "text" {
			// Postgres may evaluate the conditions of a query on the view before that of the view. In entries of
			// other embeddables the value may be of another type.
			value = fmt.Sprintf("CASE WHEN t.embeddable_id = %s THEN (%s)::%s END", id, value, kind)
		}
		fmt.Fprintf(&sql, ",\n    %s AS %s", value, pgx.Identifier{c.Name}.Sanitize())
	}
	fmt.Fprintf(&sql, "\nFROM %s AS t\nWHERE t.embeddable_id = %s AND t.removed_at IS NULL", pgx.Identifier{d.Schema, "entries"}.Sanitize(), id)
	_, err = tx.Exec(ctx, sql.String())
	return err
}

// typeOf returns the name of the type that a column of a view has.
func typeOf(t columns.Type) string {
	switch t {
	case columns.Double:
		return "double precision"
	case columns.Integer:
		return "bigint"
	case columns.Timestamp:
		return "timestamp with time zone"
	}
	return kindOf(t)
}

// kindOf returns the types to which a column's text is cast, one after the other.
func kindOf(t columns.Type) string {
	switch t {
	case columns.Double:
		return "float8"
	case columns.Integer:
		return "numeric::bigint" // bigint alone refuses the text 12.0
	case columns.Boolean:
		return "boolean"
	case columns.Timestamp:
		return "timestamptz"
	case columns.Date:
		return "date"
	}
	return "text"
}
