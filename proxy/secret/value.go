// Package secret holds the values of credentials, and defines the form of their ids. A value prints, logs and marshals
// as "[redacted]". The package never returns a value as a string.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// Redacted replaces a value wherever it would be shown.
const Redacted = "[redacted]"

// Value is a credential's value. Copies share the bytes. The zero Value is empty.
type Value struct {
	// A function, not a pointer: under an unsuitable verb, fmt prints the target of an unexported pointer field and
	// calls no method.
	bytes func() []byte
}

// New returns a Value that takes ownership of b.
func New(b []byte) Value { return Value{func() []byte { return b }} }

// Len returns the length in bytes.
func (v Value) Len() int { return len(v.Reveal()) }

// Reveal returns the bytes themselves. The caller must not change or keep them.
func (v Value) Reveal() []byte {
	if v.bytes == nil {
		return nil
	}
	return v.bytes()
}

// String returns "[redacted]", or "" for an empty value.
func (v Value) String() string {
	if v.Len() == 0 {
		return ""
	}
	return Redacted
}

// GoString returns String in quotes, for %#v.
func (v Value) GoString() string { return `"` + v.String() + `"` }

// Format prints String under every verb, so that no verb (%x, %q, %d) prints the bytes.
func (v Value) Format(f fmt.State, verb rune) {
	text := v.String()
	if verb == 'q' || (verb == 'v' && f.Flag('#')) {
		text = v.GoString()
	}
	_, _ = io.WriteString(f, text) // Format cannot report an error
}

// MarshalText returns String, for encoders of text.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalJSON returns String as a JSON string.
func (v Value) MarshalJSON() ([]byte, error) { return []byte(v.GoString()), nil }

// MarshalYAML returns String.
func (v Value) MarshalYAML() (any, error) { return v.String(), nil }

// LogValue returns String, for slog.
func (v Value) LogValue() slog.Value { return slog.StringValue(v.String()) }
