package ingest

import (
	"fmt"

	"github.com/lectern-dev/lectern/shared/apierr"
)

// Code names the reason why a line was rejected. The set of codes is closed, so senders may branch on a Code.
type Code string

// The codes of rejected lines, each with the reason for which a line gets the code.
const (
	InvalidJSON    Code = "invalid_json"     // no JSON object, not UTF-8, or a repeated name
	MissingField   Code = "missing_field"    // a required field is absent
	UnknownField   Code = "unknown_field"    // a field that the record does not have
	InvalidField   Code = "invalid_field"    // a value breaks its rule
	RecordTooLarge Code = "record_too_large" // longer than MAX_RECORD_BYTES
	Conflict       Code = "conflict"         // differs from a stored value that never changes
	Erased         Code = "erased"           // is about a record that was erased for good
)

// Fault is the reason why one line is rejected.
type Fault struct {
	Code    Code
	Message string // for the sender: the field, what was given, what is allowed
}

// BadField returns the Fault of a field whose value is not allowed. The message of the Fault names the field, the
// beginning of the given value, and the allowed values.
func BadField(name, given, allowed string) *Fault {
	return &Fault{InvalidField, fmt.Sprintf("Field %q was given as %s; allowed: %s.", name, apierr.Shown(given), allowed)}
}

// Missing returns the Fault of a required field that is absent.
func Missing(name string) *Fault {
	return &Fault{MissingField, fmt.Sprintf("Field %q is missing.", name)}
}
