package csvrow

import (
	"slices"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/fields"
)

// Shape is the form of a resource's records: the fields in the order in which they are sent.
type Shape struct {
	Resource string
	Fields   []Field
	// Rest names the field for the columns that no other field uses, as a string of one JSON object. Empty: there is no
	// such field, and unused columns are an error.
	Rest string
}

// Field is one field of a [Shape], with the rules for its value.
type Field struct {
	Name string
	// Time fields are read as Options.TimeFormat and Options.TimeZone say, if one of them is set and the value is from
	// a column.
	Time bool
	// Integer fields are written as JSON numbers, and other fields as strings, unless the value is null.
	Integer bool
	// Nullable fields are null if the cell is empty, and left out if there is no source. In a field that is not
	// nullable and has no Default, an empty cell rejects the row.
	Nullable bool
	// Default names another field. The value of that field is used if nothing else defines this field, or if its cell
	// is empty.
	Default string
}

// Entries returns the shape of an entry. entry_data gets the columns that no other field uses, and updated_at is
// created_at by default.
func Entries() Shape {
	s := Shape{Resource: "entries", Rest: "entry_data", Fields: fieldsOf[client.Entry]()}
	for i := range s.Fields {
		if f := &s.Fields[i]; f.Name == "updated_at" {
			f.Default = "created_at"
		}
	}
	return s
}

// Events returns the shape of an event, without event_key, which the service makes.
func Events() Shape {
	all := fieldsOf[client.ChangedEvent]()
	return Shape{Resource: "events", Fields: slices.DeleteFunc(all, func(f Field) bool { return f.Name == "event_key" })}
}

// fieldsOf returns the fields of T, a record of package client, in their order in T.
func fieldsOf[T any]() (list []Field) {
	for _, f := range fields.Of[T]() {
		list = append(list, Field{Name: f.Name, Time: f.Time(), Integer: f.Integer(), Nullable: f.Nullable})
	}
	return list
}
