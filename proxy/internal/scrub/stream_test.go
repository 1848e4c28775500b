package scrub_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/text/transform"

	"github.com/lectern-dev/lectern/proxy/internal/scrub"
	"github.com/lectern-dev/lectern/proxy/internal/template"
)

// odd is a value with characters that most programs escape.
const odd = `second/secret+with=odd&chars?"\'<x>`

// TestFindsSecondEncodings finds a value that was encoded twice.
func TestFindsSecondEncodings(t *testing.T) {
	m := scrub.NewMatcher([]byte(odd))
	percent := string(template.AppendURL(nil, []byte(odd)))
	for name, in := range map[string]string{
		"JSON in JSON":               inJSON(inJSON(odd)),
		"JSON in JSON in JSON":       inJSON(inJSON(inJSON(odd))),
		"percent, twice":             url.QueryEscape(percent),
		"percent, three times":       url.QueryEscape(url.QueryEscape(percent)),
		"HTML":                       html.EscapeString(odd),
		"HTML, twice":                html.EscapeString(html.EscapeString(odd)),
		"HTML, named":                escapes["HTML, named"](odd),
		"HTML, decimal":              escapes["HTML, decimal"](odd),
		"HTML, hex":                  escapes["HTML, hex"](odd),
		"JSON in HTML":               html.EscapeString(inJSON(odd)),
		"HTML in JSON":               inJSON(html.EscapeString(odd)),
		"JSON in a form":             url.QueryEscape(inJSON(odd)),
		`\/ doubled`:                 strings.ReplaceAll(inJSON(odd), "/", `\\/`),
		`\x27`:                       escapes["JavaScript"](odd),
		"hex":                        hex.EncodeToString([]byte(odd)),
		"hex, upper":                 strings.ToUpper(hex.EncodeToString([]byte(odd))),
		"base64 of percent-encoding": base64.StdEncoding.EncodeToString([]byte("q=" + percent)),
		"base64 of a form":           base64.StdEncoding.EncodeToString([]byte("q=" + string(template.AppendForm(nil, []byte(odd))))),
		"base64 of JSON":             base64.URLEncoding.EncodeToString([]byte(`{"k":"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(odd) + `"}`)),
		"base64 in JSON, slashes":    strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(odd)), "/", `\\/`),
		"base64, folded, in a form":  url.QueryEscape(fold(base64.StdEncoding.EncodeToString([]byte(odd)), "\r\n")),
	} {
		got, found := m.String("before<" + in + ">after")
		if left := len(got) - len("before<[redacted]>after"); !found || left < 0 || left > 20 {
			t.Errorf("%s: %s became %s", name, in, got)
		}
	}
}

// TestFindsForeignCharacters finds a non-ASCII value in each character set of an answer.
func TestFindsForeignCharacters(t *testing.T) {
	for _, value := range []string{"schlüssel-größe", "ünïcödé-key", "€uro-ключ-𝄞"} {
		m := scrub.NewMatcher([]byte(value))
		for name, in := range map[string]string{
			"UTF-8":                             value,
			"UTF-8 taken for latin-1":           latin1(value),
			"the same, in JSON":                 eachRune(inUnicode)(latin1(value)),
			"the same, in HTML":                 escapes["HTML, all in hex"](latin1(value)),
			"the same, percent-encoded":         url.QueryEscape(latin1(value)),
			"bytes as Python shows them":        eachByte(func(c byte) string { return fmt.Sprintf(`\x%02x`, c) })(value),
			"latin-1":                           inLatin1(value),
			"latin-1, percent-encoded":          url.QueryEscape(inLatin1(value)),
			"references, by decimal code point": eachRune(func(r rune) string { return fmt.Sprintf("&#%d;", r) })(value),
			"references, by name":               strings.NewReplacer("ü", "&uuml;", "ö", "&ouml;", "ß", "&szlig;", "ï", "&iuml;", "é", "&eacute;", "€", "&euro;").Replace(value),
		} {
			if got, _ := m.String("before<" + in + ">after"); got != "before<[redacted]>after" {
				t.Errorf("%s, %s: %q became %q", value, name, in, got)
			}
		}
		if strings.Contains(value, "€") {
			continue // it has no form in ISO 8859-1
		}
		for name, in := range map[string]string{
			"hex of latin-1":    hex.EncodeToString([]byte(inLatin1(value))),
			"base64 of latin-1": base64.StdEncoding.EncodeToString([]byte(inLatin1("user:" + value))),
		} {
			got, _ := m.String("before<" + in + ">after")
			if left := len(got) - len("before<[redacted]>after"); left < 0 || left > len("dXNlcjrQ==") {
				t.Errorf("%s, %s: %q became %q", value, name, in, got)
			}
		}
	}
}

// inLatin1 returns a text in ISO 8859-1, as far as that can represent it.
func inLatin1(s string) string {
	return eachRune(func(r rune) string {
		if r < 256 {
			return string([]byte{byte(r)})
		}
		return string(r)
	})(s)
}

// TestFindsLinesOfAKey finds a value of several lines whose lines are indented or numbered, or have other line breaks.
func TestFindsLinesOfAKey(t *testing.T) {
	const key = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEAx7\nq9Zf0yTtLw3uYvB2nQ\n-----END KEY-----\n"
	m := scrub.NewMatcher([]byte(key))
	for _, end := range []string{"\n", "\r\n", "\n    ", "\ndata: ", "<br>\n"} {
		for name, stream := range map[string]*scrub.Stream{"by length": scrub.NewStream(m), "by line": scrub.NewLineStream(m)} {
			got, _, err := transform.String(stream, strings.ReplaceAll(key, "\n", end))
			if err != nil || strings.Contains(got, "MIIE") || strings.Contains(got, "q9Zf") {
				t.Errorf("%s, lines that end in %q: %q, %v", name, end, got, err)
			}
		}
	}
}

// TestHoldsBackByLength compares pairs of texts of the same length, one with a part of a secret. The outputs must have
// the same length, so that it reveals nothing of the secret.
func TestHoldsBackByLength(t *testing.T) {
	const value = "sk_live_51Hx0Qw9aBcDeFgH"
	m := scrub.NewMatcher([]byte(value))
	passed := func(s *scrub.Stream, in string) int {
		dst := make([]byte, 2*len(in))
		n, _, err := s.Transform(dst, []byte(in), false)
		if err != nil && !errors.Is(err, transform.ErrShortSrc) {
			t.Fatal(err)
		}
		return n
	}
	text := strings.Repeat("text ", 200)
	for name, write := range escapes {
		for n := 1; n < len(value); n++ {
			near := text + write(value[:n])
			far := strings.Repeat(".", len(near))
			if got, want := passed(scrub.NewStream(m), near), passed(scrub.NewStream(m), far); got != want || want == 0 {
				t.Errorf("%s: of %d bytes that end in %d characters of the value, %d are written; of others %d", name, len(near), n, got, want)
			}
		}
	}
}

// TestGivesOutLines checks that complete lines are written at once, and of the last line as much as its length allows.
func TestGivesOutLines(t *testing.T) {
	const value = "sk_live_51Hx0Qw9aBcDeFgH"
	for _, tt := range []struct{ name, value, in, want string }{
		{"an event", value, "data: 1\n\n", "data: 1\n\n"},
		{"an event that ends in a part of the value", value, "data: sk_live_51Hx0\n", "data: sk_live_51Hx0\n"},
		{"a part of a line", value, "data: 1\ndata: 2", "data: 1\n"},
		{"the value", value, "data: " + value + "\n", "data: [redacted]\n"},
		{"the value on the next line", value, "data: 1\n" + value, "data: 1\n"},
		{"a value of long lines", "first-line\nsecond-line", "data: 1\nfirst-line\n", "data: 1\n[redacted]\n"},
		{"a value of short lines", "abc\ndef\nghi", "data: 1\n", ""},
	} {
		s := scrub.NewLineStream(scrub.NewMatcher([]byte(tt.value)))
		dst := make([]byte, 100)
		n, _, err := s.Transform(dst, []byte(tt.in), false)
		if string(dst[:n]) != tt.want || err != nil && !errors.Is(err, transform.ErrShortSrc) {
			t.Errorf("%s: %q %v, want %q", tt.name, dst[:n], err, tt.want)
		}
	}
}

// TestDropsABeginningAtTheEnd replaces eight or more first characters of a secret at the end of a text.
func TestDropsABeginningAtTheEnd(t *testing.T) {
	const value = "sk_live/51Hx0Qw9aBcDeFgH"
	m := scrub.NewMatcher([]byte(value))
	for n := 1; n < len(value); n++ {
		part := value[:n]
		for name, in := range map[string]string{
			"as it is": part, "percent-encoded": url.QueryEscape(part), "all percent-encoded": percentAll(part),
			"hex": hex.EncodeToString([]byte(part)), "base64": base64.StdEncoding.EncodeToString([]byte(part)),
			"an escape that is cut": part + "%", "a reference that is cut": part + "&#4",
		} {
			want := "text <[redacted]"
			if n < 8 {
				want = "text <" + in
			}
			if got, _ := m.String("text <" + in); got != want {
				t.Errorf("%d characters, %s: %q became %q, want %q", n, name, in, got, want)
			}
		}
		if got, found := m.String("text <" + part + ">...."); found {
			t.Errorf("%d characters that text follows: %q", n, got)
		}
	}
}

func percentAll(text string) string {
	return eachByte(func(c byte) string { return fmt.Sprintf("%%%02x", c) })(text)
}
