// Package fields lists the fields of the API's records, from the structs of package client. Tables, CSV, masks,
// messages and the Parquet files of exports are built from these lists. The rows of a copy's Parquet files are separate
// structs, and tests compare them with the lists.
package fields

import (
	"reflect"
	"strings"
	"time"
)

// Field describes one field of an API record: its name in JSON, its Go type, and whether it is a pointer.
type Field struct {
	// Name is the name in the API's JSON. The column of an entry or event in a copy has the same name.
	Name string
	// Type is the Go type of the values without a pointer, such as string, int64, []string or [time.Time].
	Type reflect.Type
	// Nullable reports whether the Go type of the field in package client is a pointer, whose nil is null.
	Nullable bool
	// Go is the name of the field in the Go struct.
	Go string

	index []int
}

// Time reports whether the values of the field are times.
func (f Field) Time() bool { return f.Type == reflect.TypeFor[time.Time]() }

// Integer reports whether the values of the field are integers of 64 bits.
func (f Field) Integer() bool { return f.Type.Kind() == reflect.Int64 }

// Of returns the fields of the struct T that have a JSON tag, in the order of the struct. The fields of embedded
// structs are included.
func Of[T any]() []Field { return OfType(reflect.TypeFor[T]()) }

// OfType returns the fields of the struct type record, as [Of] does for a type parameter.
func OfType(record reflect.Type) (list []Field) {
	for _, f := range reflect.VisibleFields(record) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" { // an embedded struct, whose fields follow
			continue
		}
		field := Field{Name: name, Type: f.Type, Go: f.Name, index: f.Index}
		if f.Type.Kind() == reflect.Pointer {
			field.Type, field.Nullable = f.Type.Elem(), true
		}
		list = append(list, field)
	}
	return list
}

// Names returns the JSON names of the fields of T, in the order of [Of].
func Names[T any]() (list []string) {
	for _, f := range Of[T]() {
		list = append(list, f.Name)
	}
	return list
}

// Values appends the value of each field in record to values. record points to a struct of the type that [Of] listed. For
// a Nullable field, the value is the target of the pointer, or nil.
func Values(values []any, fields []Field, record any) []any {
	v := reflect.ValueOf(record).Elem()
	for _, f := range fields {
		switch value := v.FieldByIndex(f.index); {
		case !f.Nullable:
			values = append(values, value.Interface())
		case value.IsNil():
			values = append(values, nil)
		default:
			values = append(values, value.Elem().Interface())
		}
	}
	return values
}

// Pointer returns a pointer to the field f of record, for code that changes or scans the value. record is a pointer to
// a struct of the type that f is of.
func (f Field) Pointer(record any) any {
	return reflect.ValueOf(record).Elem().FieldByIndex(f.index).Addr().Interface()
}

// Buffer is one record of type T, through which code passes many records one after the other. Reflection finds the fields
// once, and not for each record.
type Buffer[T any] struct {
	Record T
	// Pointers has a pointer to each field of Record, in the order of the list that [NewBuffer] got.
	Pointers []any
}

// NewBuffer returns a Buffer with pointers to the fields in list.
func NewBuffer[T any](list []Field) *Buffer[T] {
	b := &Buffer[T]{}
	for _, f := range list {
		b.Pointers = append(b.Pointers, f.Pointer(&b.Record))
	}
	return b
}
