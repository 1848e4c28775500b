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

// definitions returns the definitions of the copy's indexes and views, with those that the copy should have. A view that
// the next run replaces is left out. definitions makes temporary views in tx, which the caller rolls back.
func (d *Destination) definitions(ctx context.Context, tx pgx.Tx) ([]copies.Table, error) {
	is, should := map[string]string{}, map[string]string{}
	var wanted []string
	for _, i := range d.shape.indexes() {
		if d.loadTo == nil || !fed(i.table) {
			wanted, should[i.name] = append(wanted, i.name), i.String()
		}
	}
	rows, err := tx.Query(ctx, indexesOf, d.Schema, wanted)
	if err != nil {
		return nil, err
	}
	var name, text string
	if _, err := pgx.ForEachRow(rows, []any{&name, &text}, func() error {
		is[name] = text
		return nil
	}); err != nil {
		return nil, err
	}
	all := []copies.Table{{Kind: indexKind, Own: true, Copy: records(is), Source: records(should)}}

	is, should = map[string]string{}, map[string]string{}
	compare := func(view, sql string) error {
		const get = `SELECT coalesce(pg_get_viewdef(to_regclass($1)), '')`
		if err := tx.QueryRow(ctx, get, pgx.Identifier{d.Schema, view}.Sanitize()).Scan(&text); err != nil || text == "" {
			return err
		}
		is[view], should[view] = text, "a view that Postgres refuses"
		err := pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error {
			if _, err := savepoint.Exec(ctx, `CREATE OR REPLACE TEMP VIEW lectern_view AS `+sql); err != nil {
				return err
			}
			if err := savepoint.QueryRow(ctx, get, "pg_temp.lectern_view").Scan(&text); err != nil {
				return err
			}
			should[view] = text
			_, err := savepoint.Exec(ctx, `DROP VIEW pg_temp.lectern_view`)
			return err
		})
		if _, refused := errors.AsType[*pgconn.PgError](err); refused {
			return nil
		}
		return err
	}
	if err := compare(pageViews, pageViewsSQL(d.Schema)); err != nil {
		return nil, err
	}
	for id := range d.views {
		if _, stale := d.stale[id]; stale {
			continue
		}
		sql, err := d.viewSQL(ctx, tx, id)
		if err == nil {
			err = compare(viewOf(id), sql)
		}
		if err != nil {
			return nil, err
		}
	}
	all = append(all, copies.Table{Kind: viewKind, Own: true, Copy: records(is), Source: records(should)})

	is, should = map[string]string{}, map[string]string{}
	for _, c := range d.injured {
		name := c.embeddableID + "/" + c.Key
		is[name], should[name] = string(c.Type), string(c.right)
	}
	return append(all, copies.Table{Kind: columnKind, Own: true, Copy: records(is), Source: records(should)}), nil
}

// mendIndexes makes the indexes with the given names anew.
func (d *Destination) mendIndexes(ctx context.Context, tx pgx.Tx, wrong []string) error {
	for _, i := range d.shape.indexes() {
		if !slices.Contains(wrong, i.name) {
			continue
		}
		table := pgx.Identifier{d.Schema, i.table}.Sanitize()
		sql := `ALTER TABLE ` + table + ` DROP CONSTRAINT IF EXISTS ` + i.name + `; DROP INDEX IF EXISTS ` + pgx.Identifier{d.Schema, i.name}.Sanitize() + `; ` + i.create(d.Schema)
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
	_, err := tx.Exec(ctx, `CREATE OR REPLACE VIEW `+pgx.Identifier{d.Schema, pageViews}.Sanitize()+` AS `+pageViewsSQL(d.Schema))
	return err
}

// mendColumns writes the right types of columns into the table of columns.
func (d *Destination) mendColumns(ctx context.Context, tx pgx.Tx) error {
	for _, c := range d.injured {
		sql := `UPDATE ` + pgx.Identifier{d.Schema, columnsTable}.Sanitize() + ` SET type = $3 WHERE embeddable_id = $1 AND key = $2`
		if _, err := tx.Exec(ctx, sql, c.embeddableID, c.Key, string(c.right)); err != nil {
			return err
		}
	}
	return nil
}
