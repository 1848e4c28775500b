package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/columns"
)

// digestEnd matches the end of a name that has the form of a digest in viewOf.
var digestEnd = regexp.MustCompile(`_[0-9a-f]{12}$`)

// viewOf returns the name of the view of an embeddable's entries: entries_of_ID. In the name for a long ID, a digest
// replaces the end. The name for an ID that ends like a digest also has a digest, so that no two IDs have the same
// name. No table or index of the copy has such a name.
func viewOf(embeddableID string) string {
	const longest = 63
	name := "entries_of_" + embeddableID
	if len(name) <= longest && !digestEnd.MatchString(name) {
		return name
	}
	return strings.ToValidUTF8(name[:min(50, len(name))], "") + fmt.Sprintf("_%.6x", sha256.Sum256([]byte(embeddableID)))
}

// staleView describes a view that is missing, lacks columns, or has columns of other types.
type staleView struct {
	retyped bool      // the view has columns of other types
	next    time.Time // when to try again to create the view
}

const viewsOf = `
SELECT c.relname, json_object_agg(a.attname, a.atttypid::regtype::text)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE n.nspname = $1 AND c.relkind = 'v'
GROUP BY c.relname`

// loadViews reads the columns that each view should have into d.views. loadViews notes in d.stale the views that lack
// columns or have other types.
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
	d.views, d.stale, d.injured = map[string]*columns.Set{}, map[string]staleView{}, nil
	for id, list := range lists {
		for _, name := range d.gained("entries") {
			if there[viewOf(id)] != nil && there[viewOf(id)][name] == "" {
				d.stale[id] = staleView{}
			}
		}
		for n, c := range list {
			kind := there[viewOf(id)][c.Name]
			if kind == typeOf(c.Type) {
				continue
			}
			if i := slices.IndexFunc(allTypes, func(t columns.Type) bool { return typeOf(t) == kind }); i >= 0 {
				// The type of a column never changes, so somebody has changed the table, or it has lost rows.
				d.injured = append(d.injured, injuredColumn{id, c, allTypes[i]})
				list[n].Type = allTypes[i]
				continue
			}
			d.stale[id] = staleView{retyped: kind != "" || d.stale[id].retyped}
		}
		d.views[id] = d.Columns.Restore(list)
	}
	return nil
}

// injuredColumn is a column whose type in the table of columns is not that of its view, which is right.
type injuredColumn struct {
	embeddableID string
	columns.Column
	right columns.Type
}

// allTypes are the types that a column may have.
var allTypes = []columns.Type{columns.Text, columns.Double, columns.Integer, columns.Boolean, columns.Timestamp, columns.Date}

// addColumns adds columns for new keys in the data of entries, and stores the columns in the table of columns.
// addColumns returns which entries fit their columns. After an error, d.views is wrong until loadViews.
func (d *Destination) addColumns(ctx context.Context, tx pgx.Tx, entries []client.Change) (fits []bool, err error) {
	before := map[string]int{} // number of columns before, by embeddable that gets new columns
	fits = make([]bool, len(entries))
	for i, c := range entries {
		id := c.Entry.EmbeddableID
		set := d.views[id]
		if set == nil {
			set, id = d.Columns.Set(), strings.Clone(id)
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

// shownOf returns the values that the columns of set have for an entry's data, as a JSON object by key.
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
	// noWait limits how long a change of a table or view waits for queries that use it. Without the limit, all later
	// queries would wait too.
	noWait = `SET LOCAL lock_timeout = '200ms'`
	// viewPause is the least time between two attempts to create or replace a view.
	viewPause = time.Minute
)

// showViews creates or replaces the views that are missing or lack columns. The data is already committed, so an error
// only delays a view. showViews notes the error and tries again after viewPause.
func (d *Destination) showViews(ctx context.Context) {
	for _, id := range slices.Sorted(maps.Keys(d.views)) {
		view, stale := d.stale[id]
		if !stale || time.Now().Before(view.next) {
			continue
		}
		show := func() error {
			return pgx.BeginFunc(ctx, d.conn, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, noWait); err != nil {
					return err
				}
				return d.createView(ctx, tx, id)
			})
		}
		err := show()
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42703" {
			// Somebody gave the view a column that the copy does not know, so the view cannot be replaced.
			view.retyped = true
			d.stale[id] = view
			err = show()
		}
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

// createView creates the view of an embeddable's entries, or replaces the view by a view with more columns. Postgres
// cannot replace a view if the type of a column changes. createView then drops the view and creates it again. A new view
// has the grants of the view that was dropped, and those of the table entries.
func (d *Destination) createView(ctx context.Context, tx pgx.Tx, embeddableID string) error {
	view, grants := d.in(viewOf(embeddableID)), ""
	if err := tx.QueryRow(ctx, readersOf, view, d.in("entries")).Scan(&grants); err != nil {
		return err
	}
	if d.stale[embeddableID].retyped {
		if _, err := tx.Exec(ctx, "DROP VIEW IF EXISTS "+view); err != nil {
			return err
		}
	}
	var there bool
	if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, view).Scan(&there); err != nil {
		return err
	}
	shown, err := d.viewSQL(ctx, tx, embeddableID)
	if err != nil {
		return err
	}
	sql := "CREATE OR REPLACE VIEW " + view + " AS\n" + shown
	if !there && grants != "" {
		sql += ";\nGRANT SELECT ON " + view + " TO " + grants
	}
	_, err = tx.Exec(ctx, sql)
	return err
}

// readersOf is a query for the roles that may read one of the relations $1 and $2, as a list for GRANT.
const readersOf = `
SELECT coalesce(string_agg(DISTINCT CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END, ', '), '')
FROM pg_class c, aclexplode(c.relacl) g LEFT JOIN pg_roles r ON r.oid = g.grantee
WHERE c.oid IN (to_regclass($1), to_regclass($2)) AND g.privilege_type = 'SELECT' AND g.grantee <> c.relowner`

// viewSQL returns the query of the view of an embeddable's entries.
func (d *Destination) viewSQL(ctx context.Context, tx pgx.Tx, embeddableID string) (string, error) {
	list := d.views[embeddableID].Columns()
	texts := []string{embeddableID}
	for _, c := range list {
		texts = append(texts, c.Key)
	}
	rows, err := tx.Query(ctx, `SELECT quote_literal(t) FROM unnest($1::text[]) WITH ORDINALITY AS u (t, n) ORDER BY n`, texts)
	if err != nil {
		return "", err
	}
	quoted, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	id, keys := quoted[0], quoted[1:]
	shown, values := d.entryNames(list), map[string]string{}
	for _, name := range shown {
		values[name] = listed("t.", []string{name})
	}
	for i, c := range list {
		value := "coalesce(t.entry_columns, t.entry_data) ->> " + keys[i]
		if kind := kindOf(c.Type); kind != "text" {
			// Postgres may evaluate the conditions of a query before the condition of the view. In entries of other
			// embeddables, the value may be of another type, and the cast would fail.
			value = fmt.Sprintf("CASE WHEN t.embeddable_id = %s THEN (%s)::%s END", id, value, kind)
		}
		shown, values[c.Name] = append(shown, c.Name), value
	}
	// Postgres replaces a view only if the columns that the view has stay first, in their order. A newer version may have
	// added columns of the table to the view.
	rows, err = tx.Query(ctx, `SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 ORDER BY attnum`,
		d.in(viewOf(embeddableID)))
	if err != nil {
		return "", err
	}
	has, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	shown = slices.Concat(has, slices.DeleteFunc(shown, func(name string) bool { return slices.Contains(has, name) }))
	for i, name := range shown {
		shown[i] = fmt.Sprintf("%s AS %s", cmp.Or(values[name], listed("t.", []string{name})), pgx.Identifier{name}.Sanitize())
	}
	return fmt.Sprintf("SELECT %s\nFROM %s AS t\nWHERE t.embeddable_id = %s AND t.removed_at IS NULL",
		strings.Join(shown, ",\n    "), d.in("entries"), id), nil
}

// entryNames returns the names of the columns of entries that a view shows before the columns of keys in list. If a key
// has had the name of a column before a version added the column, the name stays that of the key.
func (d *Destination) entryNames(list []columns.Column) []string {
	all := names(d.shape.entries, "entry_columns", "removed_at", "removal_reason")
	return slices.DeleteFunc(all, func(name string) bool {
		return slices.ContainsFunc(list, func(c columns.Column) bool { return c.Name == name })
	})
}

// typeOf returns the name that Postgres reports for the SQL type of a view's column.
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

// kindOf returns the SQL type to which a view casts the text of a value. For an integer, the result is two types, for
// casts one after the other.
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
