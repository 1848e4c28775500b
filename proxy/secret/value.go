// Package secret holds the values of credentials, and defines the form of their ids. A value that is not empty prints,
// logs and marshals as "[redacted]". No function of the package returns a value as a string.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// Redacted replaces a value that is not empty in text, logs, JSON and YAML.
const Redacted = "[redacted]"

// Value is a credential's value. Copies share the bytes. The zero Value is empty.
type Value struct {
	// A function, not a pointer: under an unsuitable verb, fmt prints the target of an unexported pointer field and
	// calls no method.
	bytes func() []byte
}

// New returns a Value that takes ownership of b: the caller must not change b afterwards.
func New(b []byte) Value { return Value{func() []byte { return b }} }

// Len returns the length of the value in bytes.
func (v Value) Len() int { return len(v.Reveal()) }

// Reveal returns the bytes of the value, or nil for the zero Value. The caller must not change or keep the bytes.
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

// GoString returns "[redacted]" in quotes, or "" in quotes for an empty value, for the verb %#v.
func (v Value) GoString() string { return `"` + v.String() + `"` }

// Format prints "[redacted]", or "" for an empty value, under every verb. So no verb, such as %x or %d, prints the
// bytes.
func (v Value) Format(f fmt.State, verb rune) {
	text := v.String()
	if verb == 'q' || (verb == 'v' && f.Flag('#')) {
		text = v.GoString()
	}
	_, _ = io.WriteString(f, text) // Format cannot report an error
}

// MarshalText returns "[redacted]", or "" for an empty value, so that text encoders do not write the bytes.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalJSON returns the JSON string "[redacted]", or "" for an empty value, so that JSON never contains the bytes.
func (v Value) MarshalJSON() ([]byte, error) { return []byte(v.GoString()), nil }

// MarshalYAML returns "[redacted]", or "" for an empty value, so that YAML never contains the bytes.
func (v Value) MarshalYAML() (any, error) { return v.String(), nil }

// LogValue returns "[redacted]", or "" for an empty value, so that slog never logs the bytes.
func (v Value) LogValue() slog.Value { return slog.StringValue(v.String()) }
