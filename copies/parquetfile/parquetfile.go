// Package parquetfile writes and reads Parquet files of rows. A row has the fields of a struct, and after them the
// columns of entry_data.
package parquetfile

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/fields"
)

// rowGroup is the greatest number of rows in a row group of a Parquet file.
const rowGroup = 50_000

// rowGroupBytes is the size in bytes at which a row group ends early. The writer holds a row group in memory, and one
// entry_data can have many MiB.
const rowGroupBytes = 32 << 20

// pageBytes is the size in bytes at which a page ends. Most pages then fit into one block of the compressor, of 128
// KiB. The compressor is faster for one block, and keeps no history in memory.
const pageBytes = 96 << 10

// Each file with the column entryID has a Bloom filter of the column, with filterBits bits a row. For about one in a
// hundred ids that the file does not have, the filter wrongly reports that the file may have the id.
const (
	entryID    = "entry_id"
	filterBits = 10
)

// codec compresses pages by zstd. All writers share codec, because it reuses encoders. SpeedFastest has blocks of 64 KiB, so
// pages would have to be shorter, and files are then larger by a half.
var codec = &zstd.Codec{Level: zstd.SpeedDefault}

// Writer writes rows of type T to a Parquet file. T is a struct whose fields have parquet tags, or a record of package
// client, of texts, integers and times: see [tagsOf]. A Writer is not safe for concurrent use.
type Writer[T any] struct {
	fixed    *parquet.Schema
	set      *columns.Set
	data     func(*T) string
	out      *parquet.GenericWriter[any]
	empty    []bool // columns without values
	record   T      // the row that is written
	pointers []any  // to the fields of record; nil if T has fields of other kinds, such as lists
	count    int    // of rows in the row group
	start    int64  // where the row group begins in the file

	// The memory for one chunk of rows.
	columns [][]parquet.Value
	texts   []byte
	values  []any // of one row's columns of entry_data
}

// NewWriter returns a Writer that writes a Parquet file to the destination to. The columns of entry_data are those of set:
// keys without a column there are left out. The function data returns the entry_data of a row. Both set and data are nil
// for rows without entry_data. A required column that empty names becomes optional, and Write stores null in the column.
// The caller leaves optional columns nil itself. The caller closes the Writer.
func NewWriter[T any](to io.Writer, set *columns.Set, data func(*T) string, empty ...string) *Writer[T] {
	if set == nil {
		set = columns.NewSet(nil, true)
	}
	record := fields.Of[T]()
	fixed := parquet.SchemaOf(new(T), tagsOf(record)...)
	var all parquet.Node = fixed
	nulls := make([]bool, len(fixed.Fields()))
	o := group{Group: parquet.Group{}, list: slices.Clone(fixed.Fields())}
	for i, f := range o.list {
		if slices.Contains(empty, f.Name()) && f.Required() {
			nulls[i] = true
			o.list[i] = parquet.Group{f.Name(): parquet.Optional(f)}.Fields()[0]
		}
	}
	if list := set.Columns(); len(list) > 0 || slices.Contains(nulls, true) {
		for _, c := range list {
			group := parquet.Group{c.Name: parquet.Optional(nodeOf(c.Type))}
			o.list = append(o.list, group.Fields()...)
		}
		all = o
	}
	w := &Writer[T]{
		fixed: fixed, set: set, data: data, values: make([]any, len(set.Columns())), empty: nulls,
		out: parquet.NewGenericWriter[any](to, parquet.NewSchema("row", all), parquet.Compression(codec),
			parquet.CreatedBy("lectern", "1", ""),
			// Older readers, such as those of Spark 3.2 and Athena, know neither pages of version 2 nor
			// DELTA_LENGTH_BYTE_ARRAY, which are the library's defaults.
			parquet.DataPageVersion(1), parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.Plain),
			// Statistics in the header of a page would store the page's smallest and largest value twice, complete and
			// not compressed. The index of the file has the beginnings of these values.
			parquet.DataPageStatistics(false), parquet.PageBufferSize(pageBytes),
			parquet.BloomFilters(parquet.SplitBlockFilter(filterBits, entryID))),
	}
	w.columns, w.pointers = make([][]parquet.Value, len(w.out.ColumnWriters())), pointersTo(&w.record)
	return w
}

// pointersTo returns pointers to the fields of a struct in their order. The result is nil if a field is neither a text nor
// an integer nor a time.
func pointersTo(record any) (list []any) {
	v := reflect.ValueOf(record).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Anonymous {
			continue
		}
		switch to := v.FieldByIndex(f.Index).Addr().Interface().(type) {
		case *string, **string, *int64, **int64, *time.Time:
			list = append(list, to)
		default:
			return nil
		}
	}
	return list
}

// longTexts are the fields of records whose values hardly repeat, so that a dictionary of the values would not help.
var longTexts = []string{entryID, "contact_id", "event_id", "entry_data", "custom_event_props"}

// tagsOf returns the parquet tags of the fields of a record of package client. The column has the JSON name. Times are
// in microseconds, and texts have a dictionary unless they are longTexts.
func tagsOf(record []fields.Field) (list []parquet.SchemaOption) {
	for _, f := range record {
		tag := f.Name
		if f.Nullable {
			tag += ",optional"
		}
		switch {
		case f.Time():
			tag += ",timestamp(microsecond:utc)"
		case f.Type.Kind() == reflect.String && !slices.Contains(longTexts, f.Name):
			tag += ",dict"
		}
		list = append(list, parquet.StructTag(reflect.StructTag(fmt.Sprintf("parquet:%q", tag)), f.Go))
	}
	return list
}

// group is a Parquet group that keeps its fields in the order of list. [parquet.Group] sorts fields by name, which
// would reorder the columns.
type group struct {
	parquet.Group
	list []parquet.Field
}

// Fields returns the fields of the group, in the order of the columns in the file.
func (g group) Fields() []parquet.Field { return g.list }

// GoType returns a map type, because a struct cannot have fields with arbitrary names. Rows are written as values, so
// the type is not used to convert rows.
func (group) GoType() reflect.Type { return reflect.TypeFor[map[string]any]() }

func nodeOf(t columns.Type) parquet.Node {
	switch t {
	case columns.Double:
		return parquet.Leaf(parquet.DoubleType)
	case columns.Integer:
		return parquet.Int(64)
	case columns.Boolean:
		return parquet.Leaf(parquet.BooleanType)
	case columns.Timestamp:
		return parquet.Timestamp(parquet.Microsecond)
	case columns.Date:
		return parquet.Date()
	}
	return parquet.String()
}

// chunk is how many rows are passed to the Parquet library at a time. A page may be longer than pageBytes by as many rows.
const chunk = 64

// Write writes rows to the Writer's current row group. Rows stay in memory, compressed, until their row group is full.
func (w *Writer[T]) Write(rows []T) error {
	return w.inChunks(len(rows), func(from, to int) error { return w.writeSome(rows[from:to]) })
}

// Copy writes to w those rows of file for which keep returns true. A Writer of T must have written file, and T must
// have the columns seq and entry_id. Copy does not decode values: columns of entry_data stay as they are in file, and
// columns that file lacks are null.
//
// Copy is not a method, because each package with a Writer would then compile it.
func Copy[T any](w *Writer[T], file io.ReaderAt, keep func(seq int64, entryID string) bool) error {
	return guarded(func() error {
		r := parquet.NewGenericReader[T](file, w.out.Schema())
		defer r.Close()
		number, _ := w.fixed.Lookup("seq")
		id, _ := w.fixed.Lookup(entryID)
		rows := make([]parquet.Row, chunk)
		for {
			n, end := r.ReadRows(rows)
			if end != nil && !errors.Is(end, io.EOF) {
				return fmt.Errorf("decode Parquet: %w", end)
			}
			kept := slices.DeleteFunc(rows[:n], func(r parquet.Row) bool { return !keep(r[number.ColumnIndex].Int64(), r[id.ColumnIndex].String()) })
			err := w.inChunks(len(kept), func(from, to int) error {
				_, err := w.out.WriteRows(kept[from:to])
				return err
			})
			if err != nil || end != nil {
				return err
			}
		}
	})
}

// inChunks calls write with the bounds of each chunk of n rows, and ends a row group that is full.
func (w *Writer[T]) inChunks(n int, write func(from, to int) error) error {
	for from := 0; from < n; {
		to := min(n, from+chunk, from+rowGroup-w.count)
		if err := write(from, to); err != nil {
			return fmt.Errorf("encode Parquet: %w", err)
		}
		w.count += to - from
		from = to
		if w.count == rowGroup || w.out.Size()-w.start >= rowGroupBytes {
			if err := w.out.Flush(); err != nil {
				return fmt.Errorf("encode Parquet: %w", err)
			}
			w.count, w.start = 0, w.out.Size()
		}
	}
	return nil
}

func (w *Writer[T]) writeSome(rows []T) error {
	for i := range rows {
		w.add(&rows[i])
	}
	for i, column := range w.out.ColumnWriters() {
		if _, err := column.WriteRowValues(w.columns[i]); err != nil {
			return err
		}
		w.columns[i] = w.columns[i][:0]
	}
	w.texts = w.texts[:0]
	return nil
}

// add adds the values of a row to the columns of the chunk.
func (w *Writer[T]) add(r *T) {
	put := func(i, level int, v parquet.Value) {
		if i < len(w.empty) && w.empty[i] {
			level, v = 0, parquet.NullValue()
		}
		w.columns[i] = append(w.columns[i], v.Level(0, level, i))
	}
	if w.pointers == nil {
		for i, values := range w.fixed.Deconstruct(nil, r).Range {
			if w.empty[i] {
				put(i, 0, parquet.NullValue())
			} else {
				w.columns[i] = append(w.columns[i], values...)
			}
		}
	}
	w.record = *r
	for i, to := range w.pointers {
		switch to := to.(type) {
		case *string:
			put(i, 0, w.text(*to))
		case **string:
			if *to == nil {
				put(i, 0, parquet.NullValue())
			} else {
				put(i, 1, w.text(**to))
			}
		case *int64:
			put(i, 0, parquet.Int64Value(*to))
		case **int64:
			if *to == nil {
				put(i, 0, parquet.NullValue())
			} else {
				put(i, 1, parquet.Int64Value(**to))
			}
		case *time.Time:
			put(i, 0, parquet.Int64Value(to.UnixMicro()))
		}
	}
	if len(w.values) > 0 {
		w.set.Values(w.data(r), w.values)
	}
	for n, v := range w.values {
		level := 0
		if v != nil {
			level = 1
		}
		put(len(w.columns)-len(w.values)+n, level, w.valueOf(v))
	}
}

// longText is the length in bytes from which a text is not copied, although its value then takes an allocation.
const longText = 4 << 10

// text returns a text as a value, which is valid until the chunk has been written.
func (w *Writer[T]) text(text string) parquet.Value {
	if len(text) >= longText {
		return parquet.ValueOf(text)
	}
	from := len(w.texts)
	w.texts = append(w.texts, text...)
	return parquet.ByteArrayValue(w.texts[from:])
}

// valueOf returns a value of a column of entry_data.
func (w *Writer[T]) valueOf(v any) parquet.Value {
	switch v := v.(type) {
	case string:
		return w.text(v)
	case float64:
		return parquet.DoubleValue(v)
	case time.Time:
		return parquet.Int64Value(v.UnixMicro())
	case columns.Day:
		return parquet.Int32Value(int32(v))
	}
	return parquet.ValueOf(v)
}

// Close writes the remaining rows and the footer of the file. Close does not close the underlying io.Writer.
func (w *Writer[T]) Close() error {
	if err := w.out.Close(); err != nil {
		return fmt.Errorf("encode Parquet: %w", err)
	}
	return nil
}

// Rows returns an iterator over the rows of a file that a [Writer] wrote, a slice of rows at a time. The file must have
// the columns of T. The slice is valid until the iterator yields the next. The rows lack the columns of entry_data. An
// error ends the iteration.
func Rows[T any](file io.ReaderAt) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		rows := make([]T, 500)
		var r *parquet.GenericReader[T]
		n := 0
		err := guarded(func() error {
			r = parquet.NewGenericReader[T](file)
			return nil
		})
		if r != nil {
			defer r.Close()
		}
		for err == nil {
			clear(rows) // otherwise the texts of the rows before would be reused
			err = guarded(func() (err error) {
				n, err = r.Read(rows)
				return err
			})
			if n > 0 && !yield(rows[:n], nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(nil, fmt.Errorf("decode Parquet: %w", err))
		}
	}
}

// MayHave reports whether a file may have a row whose entry_id is one of ids, by the file's Bloom filter. size is the
// size of the file in bytes. MayHave only reads the end of most files. For a file that MayHave cannot read, the result
// is true.
func MayHave(file io.ReaderAt, size int64, ids iter.Seq[string]) (may bool) {
	const end = 64 << 10 // contains the filter and the footer of most files
	err := guarded(func() error {
		f, err := parquet.OpenFile(file, size, parquet.SkipMagicBytes(true), parquet.SkipPageIndex(true),
			parquet.OptimisticRead(true), parquet.ReadBufferSize(end), parquet.PrefetchBloomFilters(true))
		if err != nil {
			return err
		}
		column, _ := f.Schema().Lookup(entryID)
		for _, group := range f.RowGroups() {
			filter := group.ColumnChunks()[column.ColumnIndex].BloomFilter()
			for id := range ids {
				if may = filter == nil; !may {
					may, err = filter.Check(parquet.ValueOf(id))
				}
				if may || err != nil {
					return err
				}
			}
		}
		return nil
	})
	return may || err != nil
}

// guarded calls do, which calls the Parquet library, and turns a panic into an error. The library panics on some
// damaged files.
func guarded(do func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the file is damaged: %v", fault)
		}
	}()
	return do()
}
