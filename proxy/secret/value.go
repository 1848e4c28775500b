// Package secret owns the value of a credential while the process holds it, and the form of a credential's id. A
// value prints, logs and marshals as "[redacted]", and can be overwritten when it is no longer needed. The package
// refuses to give a value out as a string.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// Redacted is what stands in the place of a value.
const Redacted = "[redacted]"

// Value is a credential's value. Copies share the bytes, so that overwriting one overwrites all. The zero
// Value is empty.
type Value struct {
	// A function and no pointer: under a verb that does not fit, fmt prints what an unexported field's
	// pointer points to, past all methods.
	bytes func() []byte
}

// New returns a Value of b, which it owns from then on.
func New(b []byte) Value { return Value{func() []byte { return b }} }

// Len returns how many bytes the value has.
func (v Value) Len() int { return len(v.Reveal()) }

// Reveal returns the bytes themselves, for those who put them where they belong. They are not to be
// changed or kept.
func (v Value) Reveal() []byte {
	if v.bytes == nil {
		return nil
	}
	return v.bytes()
}

// Zero overwrites the bytes, in every copy of the Value. What was made of them elsewhere (a header that
// was sent, text that the runtime has not collected) it cannot reach.
func (v Value) Zero() { clear(v.Reveal()) }

// String returns "[redacted]", or "" for an empty value.
func (v Value) String() string {
	if v.Len() == 0 {
		return ""
	}
	return Redacted
}

// GoString is String in quotes: what %#v prints.
func (v Value) GoString() string { return `"` + v.String() + `"` }

// Format prints String under every verb, so that no verb (%x, %q, %d) gets at the bytes.
func (v Value) Format(f fmt.State, verb rune) {
	text := v.String()
	if verb == 'q' || (verb == 'v' && f.Flag('#')) {
		text = v.GoString()
	}
	_, _ = io.WriteString(f, text) // fmt has nowhere to report it either
}

// MarshalText returns String, for encoders of text.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalJSON returns String as a JSON string.
func (v Value) MarshalJSON() ([]byte, error) { return []byte(v.GoString()), nil }

// MarshalYAML returns String.
func (v Value) MarshalYAML() (any, error) { return v.String(), nil }

// LogValue returns String, for slog.
func (v Value) LogValue() slog.Value { return slog.StringValue(v.String()) }
