package config

import (
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// Faults is the error of [Load] for a configuration with one or more faults.
type Faults struct {
	// All holds a [*Fault] for each wrong variable, and the other errors of Validate methods.
	All []error
}

// Error returns a text that lists the faults, one a line, for the operator.
func (f *Faults) Error() string {
	var b strings.Builder
	b.WriteString("the configuration is not valid:")
	for _, fault := range f.All {
		b.WriteString("\n  ")
		b.WriteString(fault.Error())
	}
	return b.String()
}

// Unwrap returns the faults, so that [errors.Is] and [errors.As] find each of them.
func (f *Faults) Unwrap() []error { return f.All }

// Fault is the error about one environment variable. The message of a Fault is one sentence.
type Fault struct {
	Variable string // its name
	Problem  string // the rest of a sentence that begins with Variable
}

// Error returns the sentence: the name of the variable, then the problem.
func (f *Fault) Error() string { return f.Variable + " " + f.Problem }

// missing is the Problem of a required variable that is not set.
const missing = "is not set, and is required"

// Invalid returns the [*Fault] of a variable with a value that is not allowed. The message has the given value and the
// allowed values. A [Secret] that is not empty shows as "[redacted]". An empty value means that the variable is not set.
func Invalid(variable string, given any, allowed string) error {
	problem := missing
	if text := fmt.Sprint(given); text != "" {
		problem = fmt.Sprintf("is %q", text)
	}
	return &Fault{Variable: variable, Problem: problem + "; allowed: " + allowed}
}

// allowed describes the values that a variable of type t may have, for a message. reason is the error of parsing the
// value, or nil. A type with its own UnmarshalText is described by reason.
func allowed(t reflect.Type, reason error) string {
	if t.Kind() == reflect.Slice {
		return "a comma-separated list, each " + allowed(t.Elem(), reason)
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration with its unit, such as 500ms, 5s or 1m30s"
	case t == reflect.TypeFor[netip.Prefix]():
		return "a CIDR, such as 10.0.0.0/8"
	case t == reflect.TypeFor[slog.Level]():
		return "debug, info, warn or error"
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		if parse, ok := errors.AsType[env.ParseError](reason); ok {
			return "another value (" + parse.Err.Error() + ")"
		}
		return "another value"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer of 0 or more"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "another value"
}
