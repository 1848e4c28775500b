package postgres

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/fields"
)

// part is a table of records that have no feed, such as experiments, with its rows. rows is nil if the API key may not
// read the records.
type part struct {
	kind  string // the Kind of the [copies.Table]
	table table
	rows  iter.Seq2[[]any, error]
	some  bool // rows has only changed rows; the others stay
}

// partsOf returns the tables of records that have no feed, with their rows from p.
func (d *Destination) partsOf(p *copies.Project) []part {
	all := []part{
		partOf(&d.shape, "embeddable", "embeddables", p.Embeddables, p.SomeEmbeddables),
		partOf(&d.shape, "embeddable_version", "embeddable_versions", p.Versions, p.SomeEmbeddables),
		partOf(&d.shape, "experiment", "experiments", p.Experiments, p.SomeExperiments),
		partOf(&d.shape, "experiment_status", "experiment_history", p.History, p.SomeExperiments),
	}
	return slices.DeleteFunc(all, func(p part) bool { return p.table.columns == nil })
}

// partOf returns a table with the rows of records, in the order of the table's columns.
func partOf[T any](s *shape, kind, name string, records iter.Seq2[T, error], some bool) part {
	t := s.table(name)
	list := fieldsOf[T](t.columns)
	return part{kind, t, copies.Records(records, func(record T) []any { return fields.Values(nil, list, &record) }), some}
}

// putProject replaces the rows of each table whose records are in p, or only the changed rows. A table whose records are
// not in p stays as it is.
func (d *Destination) putProject(ctx context.Context, tx pgx.Tx, p *copies.Project) error {
	if p == nil {
		return nil
	}
	for _, part := range d.partsOf(p) {
		if part.rows == nil {
			continue
		}
		put := d.replace
		if part.some {
			put = d.change
		}
		if err := put(ctx, tx, part); err != nil {
			return err
		}
	}
	return nil
}

// replace deletes all rows of a table and inserts the rows of p, without holding all rows in memory.
func (d *Destination) replace(ctx context.Context, tx pgx.Tx, p part) error {
	if _, err := tx.Exec(ctx, `DELETE FROM `+d.in(p.table.name)); err != nil {
		return err
	}
	next, stop := iter.Pull2(p.rows)
	defer stop()
	var failed error // the error of reading, which the error of CopyFrom would hide
	_, err := tx.CopyFrom(ctx, pgx.Identifier{d.Schema, p.table.name}, names(p.table.columns), pgx.CopyFromFunc(func() ([]any, error) {
		row, err, ok := next()
		if failed = err; err != nil || !ok {
			return nil, err
		}
		return d.blank(p.table.columns, row), nil
	}))
	if failed != nil {
		return fmt.Errorf("read %s: %w", p.table.name, failed)
	}
	return err
}

// change replaces the rows of a table that have the same keys as the rows of p, one after the other.
func (d *Destination) change(ctx context.Context, tx pgx.Tx, p part) error {
	table, columns, keys := d.in(p.table.name), p.table.columns, p.table.keys
	numbers, where := make([]string, len(columns)), []string{}
	for i := range columns {
		numbers[i] = fmt.Sprintf("$%d", i+1)
	}
	for i, name := range names(columns)[:keys] {
		where = append(where, pgx.Identifier{name}.Sanitize()+" = "+numbers[i])
	}
	remove := `DELETE FROM ` + table + ` WHERE ` + strings.Join(where, " AND ")
	insert := `INSERT INTO ` + table + ` (` + listed("", names(columns)) + `) VALUES (` + strings.Join(numbers, ", ") + `)`
	for row, err := range p.rows {
		if err != nil {
			return fmt.Errorf("read %s: %w", p.table.name, err)
		}
		row = d.blank(columns, row)
		if _, err := tx.Exec(ctx, remove, row[:keys]...); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insert, row...); err != nil {
			return err
		}
	}
	return nil
}

// Tables returns the definitions of indexes and views, and the tables of records that have no feed. Such a table has the rows
// of the copy, and the rows that the source has in p.
func (s *state) Tables(ctx context.Context, p *copies.Project) []copies.Table {
	list := s.own
	for _, part := range s.partsOf(p) {
		asRecord := func(row []any) copies.Record {
			return s.recordOf(part.table, s.blank(part.table.columns, row))
		}
		list = append(list, copies.Table{
			Kind: part.kind, Source: copies.Records(part.rows, asRecord), Copy: copies.Records(s.stored(ctx, part.table), asRecord),
		})
	}
	return list
}

// recordOf returns a row of a table as a record. The record's id is the text of the row's primary key.
func (s *state) recordOf(t table, row []any) copies.Record {
	values := slices.Clone(row)
	for i, v := range values {
		if at, ok := v.(time.Time); ok {
			values[i] = at.UTC().Truncate(time.Microsecond)
		}
	}
	var key []string
	for _, v := range row[:t.keys] {
		key = append(key, fmt.Sprint(v))
	}
	return copies.Record{ID: strings.Join(key, "/"), Values: values}
}

// stored returns an iterator over the rows of a table in the copy. An error ends the iteration as the last pair.
func (s *state) stored(ctx context.Context, t table) iter.Seq2[[]any, error] {
	return query(ctx, s, `SELECT `+listed("", names(t.columns))+` FROM `+s.in(t.name), pgx.Rows.Values)
}
