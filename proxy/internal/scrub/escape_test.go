package scrub_test

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"pgregory.net/rapid"

	"github.com/lectern-dev/lectern/proxy/internal/scrub"
)

// escapes lists the escapes that programs use.
var escapes = map[string]func(string) string{
	"percent":          func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") },
	"form":             url.QueryEscape,
	"percent, all":     eachByte(func(c byte) string { return fmt.Sprintf("%%%02x", c) }),
	"JSON":             inJSON,
	`JSON with \/`:     func(s string) string { return strings.ReplaceAll(inJSON(s), "/", `\/`) },
	"JSON, all":        eachRune(func(r rune) string { return inUnicode(r) }),
	"JavaScript":       eachOther(func(r rune) string { return fmt.Sprintf(`\x%02X`, r) }),
	"backslashes":      eachOther(func(r rune) string { return `\` + string(r) }),
	"HTML of Go":       html.EscapeString,
	"HTML, decimal":    eachOther(func(r rune) string { return fmt.Sprintf("&#%d;", r) }),
	"HTML, padded":     eachOther(func(r rune) string { return fmt.Sprintf("&#%03d;", r) }),
	"HTML, hex":        eachOther(func(r rune) string { return fmt.Sprintf("&#x%x;", r) }),
	"HTML, all in hex": eachRune(func(r rune) string { return fmt.Sprintf("&#X%X;", r) }),
	"HTML, named":      eachOther(named),
}

func eachByte(write func(byte) string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			b.WriteString(write(s[i]))
		}
		return b.String()
	}
}

func eachRune(write func(rune) string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for _, r := range s {
			b.WriteString(write(r))
		}
		return b.String()
	}
}

// eachOther applies write to each ASCII character that is neither letter nor digit.
func eachOther(write func(rune) string) func(string) string {
	alphanumeric := regexp.MustCompile(`^[\x80-\x{10ffff}A-Za-z0-9]$`)
	return eachRune(func(r rune) string {
		if alphanumeric.MatchString(string(r)) {
			return string(r)
		}
		return write(r)
	})
}

func inJSON(s string) string {
	quoted, _ := json.Marshal(s)
	return strings.TrimSuffix(strings.TrimPrefix(string(quoted), `"`), `"`)
}

func inUnicode(r rune) string {
	if r > 0xFFFF {
		r -= 0x10000
		return fmt.Sprintf(`\u%04X\u%04x`, 0xD800+(r>>10), 0xDC00+(r&0x3FF))
	}
	return fmt.Sprintf(`\u%04x`, r)
}

func named(r rune) string {
	names := map[rune]string{
		'"': "quot", '\'': "apos", '&': "amp", '<': "lt", '>': "gt", '/': "sol", '\\': "bsol", '=': "equals", '+': "plus", '?': "quest",
		'%': "percnt", '_': "lowbar", '#': "num", '$': "dollar", ':': "colon", ';': "semi", ',': "comma", '.': "period", '!': "excl", '*': "ast",
		'(': "lpar", ')': "rpar", '[': "lsqb", ']': "rsqb", '{': "lcub", '}': "rcub", '|': "verbar", '@': "commat", '`': "grave", '^': "Hat",
	}
	if name, known := names[r]; known {
		return "&" + name + ";"
	}
	return string(r)
}

// latin1 decodes UTF-8 as ISO 8859-1 and encodes the result as UTF-8.
func latin1(s string) string {
	return eachByte(func(c byte) string { return string(rune(c)) })(s)
}

// windows1252 decodes UTF-8 as windows-1252 and encodes the result as UTF-8. Like a browser, it leaves the five bytes that
// windows-1252 does not define.
func windows1252(s string) string {
	return eachByte(func(c byte) string {
		if char := charmap.Windows1252.DecodeByte(c); char != utf8.RuneError {
			return string(char)
		}
		return string(rune(c))
	})(s)
}

// composed draws up to as many nested escapes as the search decodes, and applies them to a value.
func composed(t *rapid.T, value string) string {
	names := slices.Sorted(maps.Keys(escapes))
	text := value
	misread := map[string]func(string) string{"": func(s string) string { return s }, "latin-1": latin1, "windows-1252": windows1252}
	text = misread[rapid.SampledFrom(slices.Sorted(maps.Keys(misread))).Draw(t, "read as")](text)
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 4).Draw(t, "escapes") {
		if longer := escapes[name](text); len(longer) <= 12*len(value) {
			text = longer
		}
	}
	return text
}

// drawValue draws the value of a credential.
func drawValue(t *rapid.T) string {
	letters := rapid.RuneFrom([]rune("abcxyzABCXYZ0189"))
	others := rapid.RuneFrom([]rune(`_-./+=?&%\"'<>#$:;,!*()[]{}|@^~ `))
	foreign := rapid.RuneFrom([]rune("äöüßé€Ж漢𝄞"))
	return rapid.StringOfN(rapid.OneOf(letters, letters, letters, others, foreign), 9, 40, -1).Draw(t, "value")
}

// TestFindsComposedEscapes finds a value under any nested escapes and in any chunks.
func TestFindsComposedEscapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := drawValue(t)
		in := "before<" + composed(t, value) + ">after"
		got, err := drive(scrub.NewStream(scrub.NewMatcher([]byte(value))), []byte(in), func(most int) int { return rapid.IntRange(1, most).Draw(t, "n") })
		clean := strings.ReplaceAll(string(got), `\[`, `[`) // a backslash before the replacement reveals nothing
		if err != nil || clean != "before<[redacted]>after" {
			t.Fatalf("%q in %q: %q, %v", value, in, got, err)
		}
	})
}

// TestLeavesOtherValues does not replace a value that differs in one character, under the same escapes.
func TestLeavesOtherValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := drawValue(t)
		runes := []rune(value)
		// Not the first or last character: an escape may end or begin with the value's character, as %71 ends in 1.
		at := rapid.IntRange(1, len(runes)-2).Draw(t, "at")
		runes[at] = rapid.RuneFrom([]rune("mnopqMNOPQ")).Draw(t, "other")
		in := "before<" + composed(t, string(runes)) + ">after"
		got, err := drive(scrub.NewStream(scrub.NewMatcher([]byte(value))), []byte(in), func(most int) int { return rapid.IntRange(1, most).Draw(t, "n") })
		if err != nil || string(got) != in {
			t.Fatalf("%q in %q: %q, %v", value, in, got, err)
		}
	})
}

// TestLeavesOrdinaryText does not replace anything in ordinary answers.
func TestLeavesOrdinaryText(t *testing.T) {
	m := scrub.NewMatcher([]byte("sk_live_51Hx0Qw9aBcDeFgH"), []byte(`p%q\r"s/t&amp`), []byte("correct horse battery staple"))
	word := rapid.SampledFrom([]string{
		"sk", "_live", "live", "51", "correct", "horse", "battery", "staple", "p%q", "q", "%q", `\r`, `\r"s`, "/t", "&amp", "&amp;", "&nbsp;", "&#39;", "&#x2F;", "&lt;b&gt;",
		"%20", "%2F", "%252F", "100%", "100% ", `\"`, `\\`, `\\\"`, `\n`, `\u00e9`, `\x41`, `C:\dir\x`, "https://example.com/a?b=c&d=e", "é", "漢", `{"id": 1, "name": "`, `"}`, "<p class='x'>",
	})
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(word, 0, 40).Draw(t, "words")
		in := strings.Join(words, rapid.SampledFrom([]string{" ", "-", "\n", "\r\n", ","}).Draw(t, "between")) + "...."
		if strings.Contains(in, "correct horse battery staple") {
			t.Skip("the secret itself")
		}
		got, err := drive(scrub.NewStream(m), []byte(in), func(most int) int { return rapid.IntRange(1, most).Draw(t, "n") })
		if err != nil || string(got) != in {
			t.Fatalf("%q became %q, %v", in, got, err)
		}
	})
}
