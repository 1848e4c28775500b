package api

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// Bounds of the query parameters answer and search, and the texts that describe their allowed values in error
// messages.
const (
	maxAnswerBytes = 1000 // insights do not list longer values either
	minSearch      = 3    // characters
	maxSearch      = 256
	answerForm     = `JSON of at most 1000 bytes, such as "Yes", 100 or true, that Postgres can store`
	searchForm     = "words of 3 to 256 characters in all without U+0000"
)

// unstorable finds in JSON what Postgres may not be able to store. These are a number with an exponent of four or more
// digits, and the escape of U+0000 in a text. The pattern consumes texts and escapes whole, so "550e8400" and "\\u0000" are allowed.
var unstorable = regexp.MustCompile(`(?s)^(?:[^"]|"(?:[^"\\]|\\.)*")*?[0-9][eE][-+]?[0-9]{4}|^(?:[^\\]|\\.)*?\\u0000`)

// readAnswer reads a query parameter that holds a JSON value. Values that differ only in white space or escapes give
// the same result. If the value is longer than maxAnswerBytes, or Postgres might not store it, readAnswer records a
// fault in q.
func readAnswer(q *httpapi.Query, name string) string {
	text := q.Text(name)
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	valid := decoder.Decode(&value) == nil
	_, err := decoder.Token()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if !valid || err != io.EOF || len(text) > maxAnswerBytes || encoder.Encode(value) != nil || unstorable.MatchString(text) {
		q.Fail(name, answerForm)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// readSearch reads a query parameter with words that answers must contain, and returns the words with one blank between
// them. If these are not 3 to 256 characters, or contain NUL, readSearch records a fault in q.
func readSearch(q *httpapi.Query, name string) string {
	text := strings.Join(strings.Fields(q.Text(name)), " ")
	if n := utf8.RuneCountInString(text); n < minSearch || n > maxSearch || strings.Contains(text, "\x00") {
		q.Fail(name, searchForm)
	}
	return text
}
