package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/copies"
)

// The kinds of the definitions that a verification compares, and a repair makes anew.
const (
	viewKind   = "view"
	indexKind  = "index"
	columnKind = "column" // of the table of columns
)

// index is an index of a table of the copy.
type index struct {
	name, table string
	unique      bool
	columns     []string
}

// indexes returns the indexes of the copy. The first load ends without the indexes of entries and events, which its end
// makes.
func (s *shape) indexes() []index {
	all := []index{
		{"events_by_entry", "events", false, []string{"entry_id", "timestamp"}},
		{"events_by_seq", "events", false, []string{"seq"}},
		{"entries_by_embeddable", "entries", false, []string{"embeddable_id"}},
		{"entries_by_seq", "entries", false, []string{"seq"}},
		{"entries_pkey", "entries", true, []string{"entry_id"}},
		{"events_pkey", "events", true, []string{"event_key"}},
	}
	for _, t := range s.tables {
		if t.keys > 0 {
			all = append(all, index{t.name + "_pkey", t.name, true, names(t.columns[:t.keys])})
		}
	}
	return all
}

// create returns the SQL that makes the index in schema.
func (i index) create(schema string) string {
	unique := ""
	if i.unique {
		unique = "UNIQUE "
	}
	return `CREATE ` + unique + `INDEX ` + i.name + ` ON ` + pgx.Identifier{schema, i.table}.Sanitize() + ` (` + listed("", i.columns) + `)`
}

// String returns the index in the form of indexesOf.
func (i index) String() string {
	return fmt.Sprintf("%s unique=%t valid=true (%s)", i.table, i.unique, strings.Join(i.columns, ","))
}

// indexesOf is a query for the indexes of the schema $1 with the names $2.
const indexesOf = `
SELECT c.relname, format('%s unique=%s valid=%s (%s)', t.relname, i.indisunique::text, (i.indisvalid AND i.indpred IS NULL AND a.amname = 'btree')::text,
	(SELECT string_agg(coalesce(attname, '?'), ',' ORDER BY k.n) FROM unnest(i.indkey) WITH ORDINALITY AS k (number, n)
		LEFT JOIN pg_attribute ON attrelid = i.indrelid AND attnum = k.number))
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid JOIN pg_am a ON a.oid = c.relam
WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relname = ANY($2::text[])`

// records returns an iterator over list, whose keys are the ids.
func records(list map[string]string) iter.Seq2[copies.Record, error] {
	return func(yield func(copies.Record, error) bool) {
		for _, id := range slices.Sorted(maps.Keys(list)) {
			if !yield(copies.Record{ID: id, Values: list[id]}, nil) {
				return
			}
		}
	}
}

// definitions returns the definitions of the copy's indexes, views and columns, with those that the copy should have.
func (d *Destination) definitions(ctx context.Context, tx pgx.Tx) ([]copies.Table, error) {
	indexes, err := d.indexDefinitions(ctx, tx)
	if err != nil {
		return nil, err
	}
	views, err := d.viewDefinitions(ctx, tx)
	if err != nil {
		return nil, err
	}
	is, should := map[string]string{}, map[string]string{}
	for _, c := range d.injured {
		name := c.embeddableID + "/" + c.Key
		is[name], should[name] = string(c.Type), string(c.right)
	}
	return []copies.Table{indexes, views, definitionsOf(columnKind, is, should)}, nil
}

func definitionsOf(kind string, is, should map[string]string) copies.Table {
	return copies.Table{Kind: kind, Own: true, Copy: records(is), Source: records(should)}
}

// indexDefinitions returns the definitions of the indexes, with those that the copy should have now.
func (d *Destination) indexDefinitions(ctx context.Context, tx pgx.Tx) (t copies.Table, err error) {
	is, should := map[string]string{}, map[string]string{}
	var wanted []string
	for _, i := range d.shape.indexes() {
		if d.loadTo == nil || !fed(i.table) {
			wanted, should[i.name] = append(wanted, i.name), i.String()
		}
	}
	rows, err := tx.Query(ctx, indexesOf, d.Schema, wanted)
	if err != nil {
		return t, err
	}
	var name, text string
	_, err = pgx.ForEachRow(rows, []any{&name, &text}, func() error {
		is[name] = text
		return nil
	})
	return definitionsOf(indexKind, is, should), err
}

// viewDefinitions returns the definitions of the views, with those that the views should have. A view that the next run
// replaces is left out.
func (d *Destination) viewDefinitions(ctx context.Context, tx pgx.Tx) (t copies.Table, err error) {
	queries := map[string]string{pageViews: d.pageViewsSQL()} // by view
	for id := range d.views {
		if _, stale := d.stale[id]; stale {
			continue
		}
		if queries[viewOf(id)], err = d.viewSQL(ctx, tx, id); err != nil {
			return t, err
		}
	}
	is, should := map[string]string{}, map[string]string{}
	for view, sql := range queries {
		text, err := viewDefinition(ctx, tx, d.in(view))
		if err != nil {
			return t, err
		}
		if text == "" {
			continue
		}
		is[view] = text
		if should[view], err = definitionOf(ctx, tx, sql); err != nil {
			return t, err
		}
	}
	return definitionsOf(viewKind, is, should), nil
}

// viewDefinition returns the definition of a view as Postgres writes it, and "" if there is no such view.
func viewDefinition(ctx context.Context, tx pgx.Tx, view string) (text string, err error) {
	err = tx.QueryRow(ctx, `SELECT coalesce(pg_get_viewdef(to_regclass($1)), '')`, view).Scan(&text)
	return text, err
}

// definitionOf returns the definition that a view by the query sql has, and "" if Postgres refuses such a view. A column
// that the copy does not know is a reason. The view is temporary, and goes with a savepoint.
func definitionOf(ctx context.Context, tx pgx.Tx, sql string) (string, error) {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return "", err
	}
	text := ""
	if _, err = savepoint.Exec(ctx, `CREATE TEMP VIEW lectern_view AS `+sql); err == nil {
		text, err = viewDefinition(ctx, savepoint, "pg_temp.lectern_view")
	} else if _, refused := errors.AsType[*pgconn.PgError](err); refused {
		err = nil
	}
	return text, errors.Join(err, savepoint.Rollback(ctx))
}

// mendIndexes makes the indexes with the given names anew.
func (d *Destination) mendIndexes(ctx context.Context, tx pgx.Tx, wrong []string) error {
	for _, i := range d.shape.indexes() {
		if !slices.Contains(wrong, i.name) {
			continue
		}
		table := d.in(i.table)
		sql := `ALTER TABLE ` + table + ` DROP CONSTRAINT IF EXISTS ` + i.name + `; DROP INDEX IF EXISTS ` + d.in(i.name) + `; ` + i.create(d.Schema)
		if i.unique {
			sql += `; ALTER TABLE ` + table + ` ADD PRIMARY KEY USING INDEX ` + i.name + `, REPLICA IDENTITY DEFAULT`
		}
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// mendViews notes the views with the given names as stale, so that showViews replaces them, and makes the view of page views anew.
func (d *Destination) mendViews(ctx context.Context, tx pgx.Tx, wrong []string) error {
	for id := range d.views {
		if slices.Contains(wrong, viewOf(id)) {
			d.stale[id] = staleView{}
		}
	}
	if !slices.Contains(wrong, pageViews) {
		return nil
	}
	_, err := tx.Exec(ctx, `CREATE OR REPLACE VIEW `+d.in(pageViews)+` AS `+d.pageViewsSQL())
	return err
}

// mendColumns writes the right types of columns into the table of columns.
func (d *Destination) mendColumns(ctx context.Context, tx pgx.Tx) error {
	for _, c := range d.injured {
		sql := `UPDATE ` + d.in(columnsTable) + ` SET type = $3 WHERE embeddable_id = $1 AND key = $2`
		if _, err := tx.Exec(ctx, sql, c.embeddableID, c.Key, string(c.right)); err != nil {
			return err
		}
	}
	return nil
}
