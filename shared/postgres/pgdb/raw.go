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

// Raw reads a row's columns as they came on the wire, without copying. Numbers and times come in the binary format,
// or as text if the connection's mode of execution is exec or simple_protocol. Raw reads both. A value is valid until
// the next row.
type Raw struct {
	values  [][]byte
	columns []pgconn.FieldDescription
}

// NewRaw returns a Raw for rows.
func NewRaw(rows pgx.Rows) Raw { return Raw{columns: rows.FieldDescriptions()} }

func (r *Raw) binary(column int) bool { return r.columns[column].Format == pgtype.BinaryFormatCode }

// Next reads the columns of the current row of rows.
func (r *Raw) Next(rows pgx.Rows) { r.values = rows.RawValues() }

// From returns the row's columns from the given one on.
func (r *Raw) From(column int) Raw {
	return Raw{values: r.values[column:], columns: r.columns[column:]}
}

// Size returns the total size of the row's values in bytes.
func (r *Raw) Size() int {
	n := 0
	for _, v := range r.values {
		n += len(v)
	}
	return n
}

// Null reports whether the column is null.
func (r *Raw) Null(column int) bool { return r.values[column] == nil }

// Text returns a text column, or nil if it is null.
func (r *Raw) Text(column int) []byte { return r.values[column] }

// Int returns an int8 column, or 0 if it is null.
func (r *Raw) Int(column int) int64 {
	v := r.values[column]
	switch {
	case v == nil:
		return 0
	case r.binary(column):
		return int64(binary.BigEndian.Uint64(v))
	}
	n, _ := strconv.ParseInt(string(v), 10, 64) // Postgres wrote it
	return n
}

// Bool returns a boolean column, or false if it is null.
func (r *Raw) Bool(column int) bool {
	v := r.values[column]
	return v != nil && (v[0] == 1 || v[0] == 't') // in binary or text
}

// AppendInt appends an int8 column as a JSON number, or null if it is null.
func (r *Raw) AppendInt(dst []byte, column int) []byte {
	if r.Null(column) {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, r.Int(column), 10)
}

// AppendHex appends a bytea column in hexadecimal, or nothing if it is null.
func (r *Raw) AppendHex(dst []byte, column int) []byte {
	v := r.values[column]
	if r.binary(column) {
		return hex.AppendEncode(dst, v)
	}
	return append(dst, bytes.TrimPrefix(v, []byte(`\x`))...)
}

// postgresEpoch is the zero of timestamptz, 2000-01-01 UTC, in Unix microseconds.
const postgresEpoch = 946684800_000000

// Micros returns a timestamptz column in Unix microseconds, or 0 if it is null.
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

// Timestamp returns a timestamptz parameter for a time in Unix microseconds. The least and the greatest int64
// are -infinity and infinity.
func Timestamp(micros int64) pgtype.Timestamptz {
	switch micros {
	case math.MinInt64:
		return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	case math.MaxInt64:
		return pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	}
	return pgtype.Timestamptz{Time: time.UnixMicro(micros), Valid: true}
}
