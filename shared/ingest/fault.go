package ingest

import (
	"fmt"
	"strings"
)

// Code names why a line was rejected. Senders branch on it; the set is closed.
type Code string

// The codes of rejected lines.
const (
	InvalidJSON    Code = "invalid_json"     // not a JSON object, not UTF-8, or a name comes twice
	MissingField   Code = "missing_field"    // a required field is not there
	UnknownField   Code = "unknown_field"    // a field that the record does not have
	InvalidField   Code = "invalid_field"    // a field holds what it may not
	RecordTooLarge Code = "record_too_large" // longer than MAX_RECORD_BYTES
	Conflict       Code = "conflict"         // contradicts what is stored and never changes
	Erased         Code = "erased"           // is about a record that was erased for good
)

// Fault is why one line is rejected.
type Fault struct {
	Code    Code
	Message string // for the sender: the field, what was given, what is allowed
}

// Error gives code and message.
func (f *Fault) Error() string { return string(f.Code) + ": " + f.Message }

// BadField says that the field name was given as given, and what is allowed instead.
func BadField(name, given, allowed string) *Fault {
	return &Fault{InvalidField, fmt.Sprintf("Field %q was given as %s; allowed: %s.", name, cut(given), allowed)}
}

// Missing says that the field name is required.
func Missing(name string) *Fault {
	return &Fault{MissingField, fmt.Sprintf("Field %q is missing.", name)}
}

// longestGiven is how many bytes of what was given are shown to the sender.
const longestGiven = 100

// cut shortens what a sender gave, at a character's end.
func cut(s string) string {
	if len(s) <= longestGiven {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(s[:longestGiven], "") + "…"
}
