package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Query reads an operation's query parameters. [Query.Err] returns the first fault: an unknown parameter, a parameter
// that was given twice, or a value that is not allowed. After a fault, the values that the methods return are
// meaningless.
type Query struct {
	values map[string]string
	order  []string
	err    error
}

// ParseQuery splits r's query into parameters. A parameter that is not in allowed, comes twice or is not valid UTF-8 is
// a fault, which [Query.Err] returns.
func ParseQuery(r *http.Request, allowed ...string) *Query {
	q := &Query{}
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(rawName)
		value, valueErr := url.QueryUnescape(rawValue)
		switch {
		case nameErr != nil || !slices.Contains(allowed, name):
			q.fail(rawName, rawValue, "one of the parameters "+list(allowed))
		case valueErr != nil || !utf8.ValidString(value):
			q.fail(name, rawValue, "percent-encoded UTF-8")
		}
		if q.err != nil {
			break
		}
		if _, twice := q.values[name]; twice {
			q.fail(name, value, "to be given once")
			break
		}
		if q.values == nil {
			q.values = make(map[string]string, len(allowed))
		}
		q.values[name] = value
		q.order = append(q.order, name)
	}
	return q
}

func list(names []string) string {
	if len(names) == 0 {
		return "(none)"
	}
	return strings.Join(names, ", ")
}

func (q *Query) fail(name, given, allowed string) {
	if q.err == nil {
		q.err = apierr.BadParameter(strings.ToValidUTF8(name, "�"), strings.ToValidUTF8(given, "�"), allowed)
	}
}

// Err returns the first fault as an InvalidParameter, or nil if all parameters are valid so far.
func (q *Query) Err() error { return q.err }

// Fail records a fault that the caller found in the parameter name, unless q has a fault already. allowed describes the
// allowed values in the message.
func (q *Query) Fail(name, allowed string) { q.fail(name, q.values[name], allowed) }

// Has reports whether the client sent the parameter. After a fault, Has returns false.
func (q *Query) Has(name string) bool {
	_, ok := q.values[name]
	return ok && q.err == nil
}

// Text returns the parameter with its percent-encoding decoded, or "" without the parameter.
func (q *Query) Text(name string) string { return q.values[name] }

// Drop removes the parameter from the links to next pages. The value stays readable.
func (q *Query) Drop(name string) {
	q.order = slices.DeleteFunc(q.order, func(n string) bool { return n == name })
}

// Int returns the parameter name as an integer from least to most, or otherwise if the request does not have it. Any
// other value is a fault, which [Query.Err] returns.
func (q *Query) Int(name string, otherwise, least, most int) int {
	if !q.Has(name) {
		return otherwise
	}
	n, err := strconv.Atoi(q.values[name])
	if err != nil || n < least || n > most {
		q.Fail(name, "an integer from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
		return otherwise
	}
	return n
}

// defaultLimit is the limit of a list if the request has no parameter limit. A list may have a smaller default, or
// return all its records.
const defaultLimit = 10

// Limit returns the parameter "limit", from 1 to most records. Without the parameter, Limit returns 10, or
// most if most is less. Any other value is a fault, which [Query.Err] returns.
func (q *Query) Limit(most int) int { return q.Int("limit", min(defaultLimit, most), 1, most) }

// OptionalLimit returns the parameter "limit" of a list that by default returns all records: from 1 to most, or
// [lists.All] without the parameter. Any other value is a fault, which [Query.Err] returns.
func (q *Query) OptionalLimit(most int) int { return q.Int("limit", lists.All, 1, most) }

// Identifier returns a parameter that is an identifier, or "" without the parameter. An identifier is valid UTF-8
// without NUL, of 1 to [wire.MaxIdentifierBytes] bytes. Any other value is a fault, which [Query.Err] returns.
func (q *Query) Identifier(name string) string {
	if q.Has(name) && !wire.ValidIdentifier(q.values[name]) {
		q.Fail(name, identifierForm)
	}
	return q.values[name]
}

// Bool returns a parameter that is true or false, or otherwise if the request does not have the parameter. Any other
// value is a fault, which [Query.Err] returns.
func (q *Query) Bool(name string, otherwise bool) bool {
	switch {
	case !q.Has(name):
		return otherwise
	case q.values[name] == "true":
		return true
	case q.values[name] == "false":
		return false
	}
	q.Fail(name, "true or false")
	return otherwise
}

// Enum returns a parameter that is exactly one of the allowed words, or otherwise if the request does not have the
// parameter. Any other value is a fault, which [Query.Err] returns.
func (q *Query) Enum(name, otherwise string, allowed ...string) string {
	if !q.Has(name) {
		return otherwise
	}
	if !slices.Contains(allowed, q.values[name]) {
		q.Fail(name, strings.Join(allowed, ", "))
		return otherwise
	}
	return q.values[name]
}

// Descending reports whether the parameter "direction" is DESC, or not given. ASC is ascending; upper and lower case
// are equal. Any other value is a fault, which [Query.Err] returns.
func (q *Query) Descending() bool {
	const name = "direction"
	switch {
	case !q.Has(name), strings.EqualFold(q.values[name], "DESC"):
		return true
	case !strings.EqualFold(q.values[name], "ASC"):
		q.Fail(name, "ASC or DESC")
	}
	return false
}

// Time returns a parameter that is an RFC 3339 date and time or a date, in Unix microseconds. Without the parameter,
// Time returns otherwise. Any other value is a fault, which [Query.Err] returns.
func (q *Query) Time(name string, otherwise int64) int64 {
	if !q.Has(name) {
		return otherwise
	}
	t, err := wire.ParseTime(q.values[name])
	if err != nil {
		q.Fail(name, "an RFC 3339 date and time such as 2022-01-31T09:30:00Z, or a date")
		return otherwise
	}
	return t
}

// Zone returns the IANA time zone that a parameter names, or UTC without the parameter. An unknown zone is a fault,
// which [Query.Err] returns; the result is then nil.
func (q *Query) Zone(name string) *time.Location {
	if !q.Has(name) {
		return time.UTC
	}
	zone, err := wire.LoadZone(q.values[name])
	if err != nil {
		q.Fail(name, "an IANA time zone such as Europe/Berlin")
	}
	return zone
}

// encodeWith returns the encoded query in which the parameter name has the value, without parameters that Drop removed.
// The value must need no escaping.
func (q *Query) encodeWith(name, value string) string {
	var b strings.Builder
	for _, n := range q.order {
		if n != name {
			b.WriteString(url.QueryEscape(n) + "=" + url.QueryEscape(q.values[n]) + "&")
		}
	}
	return b.String() + name + "=" + value
}
