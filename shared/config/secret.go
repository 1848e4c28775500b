package config

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted is the text that a secret shows.
const redacted = "[redacted]"

// Secret is a value that must not be shown: a password, a key, a URL that contains one. The value never shows,
// however the Secret is printed, logged or encoded. A Secret shows as "[redacted]", and an empty one as nothing, so
// that a reader sees whether it was set. In an unexported field, fmt prints the address of a function instead. Only
// [Secret.Reveal] returns the value. The zero Secret is empty.
type Secret struct {
	// This is a function and not a string, because fmt prints the values of unexported fields without their methods.
	reveal func() string
}

// NewSecret returns a Secret of the value.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{func() string { return value }}
}

// Reveal returns the value, for the one place that uses it.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.reveal == nil }

// String returns "[redacted]", or "" for an empty secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// GoString is String in quotes: what %#v prints.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// Format prints String under every verb, so that no verb (%x, %q, %d) shows the value.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'q' || (verb == 'v' && f.Flag('#')) {
		text = s.GoString()
	}
	_, _ = io.WriteString(f, text) // fmt cannot report it either
}

// MarshalText returns String, for encoders of text: JSON, YAML, XML, flags.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON returns String as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(s.GoString()), nil }

// LogValue returns String, for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// UnmarshalText takes the text unchanged, so that a Secret can be read from the environment.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}
