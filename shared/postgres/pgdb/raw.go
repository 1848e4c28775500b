package pgdb

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// Raw reads a row's columns as Postgres sent them, without copying. Numbers and times have the binary format, or are
// text if the connection's mode of execution is exec or simple_protocol. Raw reads both formats. A value is valid until
// the next row.
type Raw struct {
	values  [][]byte
	columns []pgconn.FieldDescription
}

// NewRaw returns a Raw for the columns of rows. The caller calls Next for each row.
func NewRaw(rows pgx.Rows) Raw { return Raw{columns: rows.FieldDescriptions()} }

func (r *Raw) binary(column int) bool { return r.columns[column].Format == pgtype.BinaryFormatCode }

// Next reads the columns of the current row of rows, after the caller's rows.Next.
func (r *Raw) Next(rows pgx.Rows) { r.values = rows.RawValues() }

// From returns a Raw of the row's columns from the given column on, which becomes column 0.
func (r *Raw) From(column int) Raw {
	return Raw{values: r.values[column:], columns: r.columns[column:]}
}

// Size returns the total size of the row's values in bytes, as Postgres sent them.
func (r *Raw) Size() int {
	n := 0
	for _, v := range r.values {
		n += len(v)
	}
	return n
}

// Null reports whether the column is NULL.
func (r *Raw) Null(column int) bool { return r.values[column] == nil }

// Text returns the bytes of a text column, or nil if the column is NULL.
func (r *Raw) Text(column int) []byte { return r.values[column] }

// Int returns the value of an int8 column, or 0 if the column is NULL.
func (r *Raw) Int(column int) int64 {
	v := r.values[column]
	switch {
	case v == nil:
		return 0
	case r.binary(column):
		return int64(binary.BigEndian.Uint64(v))
	}
	n, _ := strconv.ParseInt(string(v), 10, 64) // Postgres wrote the number
	return n
}

// Bool returns the value of a boolean column, or false if the column is NULL.
func (r *Raw) Bool(column int) bool {
	v := r.values[column]
	return v != nil && (v[0] == 1 || v[0] == 't') // in binary or text
}

// AppendInt appends the value of an int8 column to dst as a JSON number, or null if the column is NULL.
func (r *Raw) AppendInt(dst []byte, column int) []byte {
	if r.Null(column) {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, r.Int(column), 10)
}

// AppendHex appends the value of a bytea column to dst in hexadecimal digits, or nothing if the column is NULL.
func (r *Raw) AppendHex(dst []byte, column int) []byte {
	v := r.values[column]
	if r.binary(column) {
		return hex.AppendEncode(dst, v)
	}
	return append(dst, bytes.TrimPrefix(v, []byte(`\x`))...)
}

// postgresEpoch is the zero of timestamptz, 2000-01-01 UTC, in Unix microseconds.
const postgresEpoch = 946684800_000000

// Micros returns the value of a timestamptz column in Unix microseconds, or 0 if the column is NULL.
func (r *Raw) Micros(column int) int64 {
	v := r.values[column]
	switch {
	case v == nil:
		return 0
	case r.binary(column):
		return int64(binary.BigEndian.Uint64(v)) + postgresEpoch
	}
	t, err := time.Parse("2006-01-02 15:04:05.999999-07", string(v))
	if err != nil {
		return 0 // only with a TimeZone other than UTC, which connections never have
	}
	return t.UnixMicro()
}

// Timestamp returns a timestamptz parameter for a time in Unix microseconds. The least int64 becomes -infinity, and the
// greatest int64 becomes infinity.
func Timestamp(micros int64) pgtype.Timestamptz {
	switch micros {
	case math.MinInt64:
		return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	case math.MaxInt64:
		return pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	}
	return pgtype.Timestamptz{Time: time.UnixMicro(micros), Valid: true}
}
