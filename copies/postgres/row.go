package postgres

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/fields"
)

// row is the row of a staging table for a record of type T. All rows share the memory of one, because CopyFrom encodes a row
// before it asks for the next.
type row[T any] struct {
	*fields.Buffer[T]
	seq    int64
	values []any
	more   []any // the values after the number of the change
}

// newRow returns a row with the columns of a staging table, which begin with those of list. The columns that the mask leaves
// out are null.
func newRow[T any](d *Destination, list []fields.Field, staged []column) *row[T] {
	r := &row[T]{Buffer: fields.NewBuffer[T](list), values: make([]any, len(staged))}
	for i, to := range r.Pointers {
		r.values[i] = valueAt(to)
	}
	r.values[len(list)], r.more = number{&r.seq}, r.values[len(list)+1:]
	d.blank(staged, r.values)
	return r
}

// of returns the values of the record of the change seq, which are valid until the next call. more has the values of the
// columns after those of the record and of seq.
func (r *row[T]) of(seq int64, record *T, more ...any) []any {
	r.Record, r.seq = *record, seq
	copy(r.more, more)
	return r.values
}

// The fields of a record in the interfaces of pgx, which encodes such values without reflection and without a copy. The
// value of an optional field may be null.
type (
	text           struct{ at *string }
	optionalText   struct{ at **string }
	number         struct{ at *int64 }
	optionalNumber struct{ at **int64 }
	instant        struct{ at *time.Time }
)

// valueAt returns the value for pgx of the field that to points to.
func valueAt(to any) any {
	switch to := to.(type) {
	case *string:
		return text{to}
	case **string:
		return optionalText{to}
	case *int64:
		return number{to}
	case **int64:
		return optionalNumber{to}
	case *time.Time:
		return instant{to}
	}
	return to
}

func (v text) TextValue() (pgtype.Text, error) { return pgtype.Text{String: *v.at, Valid: true}, nil }

func (v optionalText) TextValue() (pgtype.Text, error) {
	if *v.at == nil {
		return pgtype.Text{}, nil
	}
	return pgtype.Text{String: **v.at, Valid: true}, nil
}

func (v number) Int64Value() (pgtype.Int8, error) { return pgtype.Int8{Int64: *v.at, Valid: true}, nil }

func (v optionalNumber) Int64Value() (pgtype.Int8, error) {
	if *v.at == nil {
		return pgtype.Int8{}, nil
	}
	return pgtype.Int8{Int64: **v.at, Valid: true}, nil
}

func (v instant) TimestamptzValue() (pgtype.Timestamptz, error) {
	return pgtype.Timestamptz{Time: *v.at, Valid: true}, nil
}

// shown returns the value of the column entry_columns for an entry, as JSON text or null. plain reports that jsonb accepts the
// data of the entry, and fits that all values fit their columns.
func (d *Destination) shown(e *client.Entry, plain, fits bool) (any, error) {
	set := d.views[e.EmbeddableID]
	if len(set.Columns()) == 0 || plain && fits {
		return nil, nil
	}
	return shownOf(set, e.Data)
}
