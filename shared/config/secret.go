package config

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted is the text that a [Secret] shows in the place of its value.
const redacted = "[redacted]"

// Secret is a value that must not be shown: a password, a key, or a URL with a password. The value never shows, however
// the Secret is printed, logged or encoded. A Secret shows as "[redacted]", and an empty Secret as nothing, so that a
// reader sees whether it was set. In an unexported field, fmt prints the address of a function instead. Only
// [Secret.Reveal] returns the value. The zero Secret is empty.
type Secret struct {
	// This is a function and not a string, because fmt prints the values of unexported fields without their methods.
	reveal func() string
}

// NewSecret returns a Secret that holds the value. The Secret of an empty value is the zero Secret.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{func() string { return value }}
}

// Reveal returns the value, or "" for an empty secret. Only the code that uses the secret, such as the dialer of a
// database, calls Reveal.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// IsZero reports whether the secret is empty, as it is if its variable is not set.
func (s Secret) IsZero() bool { return s.reveal == nil }

// String returns "[redacted]", or "" for an empty secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// GoString returns "[redacted]" in quotes, or two quotes for an empty secret, which fmt prints for %#v.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// Format prints "[redacted]" under every verb, so that no verb (%x, %q, %d) shows the value. An empty secret prints
// nothing, or two quotes for %q and %#v.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'q' || (verb == 'v' && f.Flag('#')) {
		text = s.GoString()
	}
	_, _ = io.WriteString(f, text) // fmt cannot report it either
}

// MarshalText returns "[redacted]", or nothing for an empty secret, for encoders of text such as YAML and XML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON returns "[redacted]" as a JSON string, or an empty JSON string for an empty secret.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(s.GoString()), nil }

// LogValue returns "[redacted]", or "" for an empty secret, for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// UnmarshalText sets the secret to the text unchanged, so that [Load] can read a Secret from the environment.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}
