package scrub_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"golang.org/x/text/transform"
	"pgregory.net/rapid"

	"github.com/lectern-dev/lectern/proxy/internal/scrub"
)

// TestFindsLinesOfAKey finds a value of several lines whose lines are indented or numbered, or have other line breaks.
func TestFindsLinesOfAKey(t *testing.T) {
	const key = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEAx7\nq9Zf0yTtLw3uYvB2nQ\n-----END KEY-----\n"
	m := scrub.NewMatcher([]byte(key))
	for _, end := range []string{"\n", "\r\n", "\n    ", "\ndata: ", "<br>\n"} {
		got, _, err := transform.String(scrub.NewStream(m), strings.ReplaceAll(key, "\n", end))
		if err != nil || strings.Contains(got, "MIIE") || strings.Contains(got, "q9Zf") {
			t.Errorf("lines that end in %q: %q, %v", end, got, err)
		}
	}
}

// passed returns how much of a text a stream passes on before it knows what follows.
func passed(t interface{ Fatal(...any) }, m *scrub.Matcher, text string) int {
	n, _, err := scrub.NewStream(m).Transform(make([]byte, 2*len(text)+100), []byte(text), false)
	if err != nil && !errors.Is(err, transform.ErrShortSrc) {
		t.Fatal(err)
	}
	return n
}

// TestPassesWhatCannotBeginASecret sends the parts of streams.
func TestPassesWhatCannotBeginASecret(t *testing.T) {
	m := scrub.NewMatcher([]byte("sk_live_51Hx0Qw9aBcDeFgH"), []byte("two words, and more"), []byte("{json}-secret"))
	line := strings.Repeat("QUJD", 19)
	for _, tt := range []struct{ name, text, held string }{
		{"an object", `{"candidates":[{"text":"hello sk_live_"}]}`, ""},
		{"a sequence", "\x1e{\"a\":1}\n", ""},
		{"an event of a word", "data: word\n\n", ""},
		{"a line of a word", "got 1\n", ""},
		{"words", "hello world ", ""},
		{"a word that may go on", "hello world", "world"},
		{"the beginning of a secret", "x.sk_live_51H", "sk_live_51H"},
		{"the beginning of a secret with a space", "of two words, and ", "two words, and "},
		{"the first byte of a secret", "[{", "{"},
		{"an escape", `"\u0073\u00`, `\u0073\u00`},
		{"a line of base64", line + "\r\n", line + "\r\n"},
		{"lines of base64", "x: " + line + "\n  " + line + "\n  ", line + "\n  " + line + "\n  "},
		{"bytes", "\x00\x01\xff\xfe", ""},
	} {
		if n := passed(t, m, tt.text); tt.text[n:] != tt.held {
			t.Errorf("%s: %q is held back, want %q", tt.name, tt.text[n:], tt.held)
		}
	}
}

// TestHeldBackTextTellsNothing passes guesses through the streams of two secrets. The text that a stream holds back must not tell
// which secret a guess begins.
func TestHeldBackTextTellsNothing(t *testing.T) {
	one, two := []byte("sk_live_51Hx0Qw9aBcDeFgH"), []byte("ghp_51HxSk0Qw9aBcDeFgHab")
	a, b := scrub.NewMatcher(one), scrub.NewMatcher(two)
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"sk_live_5", "ghp_51Hx", "c2tfbGl2ZV8", "Z2hwXzUx", `\u0073k`, "&#115;", "%67hp", "\n", "\r\n", " ", `\n`, "{", `"`, "736b5f6c"}),
		rapid.Custom(func(t *rapid.T) string { return string(one[:rapid.IntRange(1, len(one)-1).Draw(t, "n")]) }),
		rapid.Custom(func(t *rapid.T) string {
			return base64.StdEncoding.EncodeToString(two)[:rapid.IntRange(1, 20).Draw(t, "n")]
		}),
	)
	rapid.Check(t, func(t *rapid.T) {
		guess := strings.Join(rapid.SliceOfN(piece, 1, 8).Draw(t, "pieces"), "")
		if _, found := a.String(guess + "...."); found {
			return
		}
		if _, found := b.String(guess + "...."); found {
			return
		}
		if x, y := passed(t, a, guess), passed(t, b, guess); x != y {
			t.Fatalf("%q: %d and %d bytes pass", guess, x, y)
		}
	})
}
