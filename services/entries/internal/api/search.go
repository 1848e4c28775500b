package api

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"slices"
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

// greatExponent finds the exponent of a number with four or more digits.
var greatExponent = regexp.MustCompile(`[eE][-+]?[0-9]{4}`)

// storable reports whether Postgres can store a JSON value: one without U+0000 in a text, and without a great exponent.
func storable(value any) bool {
	switch v := value.(type) {
	case json.Number:
		return !greatExponent.MatchString(string(v))
	case string:
		return !strings.Contains(v, "\x00")
	case []any:
		return !slices.ContainsFunc(v, func(one any) bool { return !storable(one) })
	case map[string]any:
		for name, member := range v {
			if !storable(name) || !storable(member) {
				return false
			}
		}
	}
	return true
}

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
	if !valid || err != io.EOF || len(text) > maxAnswerBytes || encoder.Encode(value) != nil || !storable(value) {
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
