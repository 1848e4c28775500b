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

// Faults holds all faults of a configuration.
type Faults struct {
	// All holds a [*Fault] for each wrong variable, and the other errors of Validate methods.
	All []error
}

// Error lists the faults, one a line.
func (f *Faults) Error() string {
	var b strings.Builder
	b.WriteString("the configuration is not valid:")
	for _, fault := range f.All {
		b.WriteString("\n  ")
		b.WriteString(fault.Error())
	}
	return b.String()
}

// Unwrap returns the faults, for [errors.Is] and [errors.As].
func (f *Faults) Unwrap() []error { return f.All }

// Fault is the fault of one variable.
type Fault struct {
	Variable string // its name
	Problem  string // the rest of a sentence that begins with the name
}

// Error returns the sentence.
func (f *Fault) Error() string { return f.Variable + " " + f.Problem }

// Invalid returns the fault of a variable with a value that is not allowed. It names the value and the allowed ones.
// A [Secret] shows as "[redacted]".
func Invalid(variable string, given any, allowed string) error {
	return &Fault{Variable: variable, Problem: fmt.Sprintf("is %q; allowed: %s", fmt.Sprint(given), allowed)}
}

// allowed returns what a variable of type t may hold. reason, which may be nil, is the text for types that parse
// themselves.
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
