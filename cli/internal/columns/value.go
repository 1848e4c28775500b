package columns

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// eachMember calls do for each member of the JSON object in data. It does nothing for other data. If a key occurs more
// than once, the last one counts.
func eachMember(data string, do func(key string, v gjson.Result)) {
	if !valid(data) {
		return
	}
	if object := gjson.Parse(data); object.IsObject() {
		object.ForEach(func(key, v gjson.Result) bool {
			do(key.Str, v)
			return true
		})
	}
}

// valid reports whether data is JSON. The parser of gjson recurses, so data that may be deeply nested goes to
// encoding/json, which limits the depth.
func valid(data string) bool {
	const nested = 10_000
	if strings.Count(data, "[")+strings.Count(data, "{") > nested {
		return json.Valid([]byte(data))
	}
	return gjson.Valid(data)
}

// typeOf returns the narrowest type that holds a value, or "" for null.
func typeOf(v gjson.Result) Type {
	switch v.Type {
	case gjson.Null:
		return ""
	case gjson.True, gjson.False:
		return Boolean
	case gjson.Number:
		if _, ok := asDouble(v.Raw); ok {
			return Double
		}
	case gjson.String:
		if _, ok := asTime(v.Str); ok {
			return Timestamp
		}
	}
	return Text
}

// valueOf returns a value that fits a type, or nil for null.
func valueOf(v gjson.Result, t Type) any {
	switch {
	case v.Type == gjson.Null:
		return nil
	case t == Boolean:
		return v.Type == gjson.True
	case t == Double:
		n, _ := asDouble(v.Raw)
		return n
	case t == Timestamp:
		at, _ := asTime(v.Str)
		return at
	case v.Type == gjson.String:
		return v.Str // gjson replaces unpaired surrogates by U+FFFD
	}
	return v.Raw
}

// asDouble returns the float64 of a JSON number, if its shortest form has the same value.
func asDouble(number string) (float64, bool) {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, false
	}
	return n, len(number) <= 15 && !strings.ContainsAny(number, "eE") || decimalOf(number) == decimalOf(strconv.FormatFloat(n, 'e', -1, 64))
}

// decimal is a number as 0.digits times ten to the power of exponent, without zeros at the ends of digits.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

func decimalOf(number string) (d decimal) {
	number, d.negative = strings.CutPrefix(number, "-")
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		// ParseFloat has accepted the number, so an exponent beyond int belongs to a zero.
		d.exponent, _ = strconv.Atoi(number[i+1:])
		number = number[:i]
	}
	whole, fraction, _ := strings.Cut(number, ".")
	d.exponent += len(whole)
	d.digits = whole + fraction
	d.exponent -= len(d.digits) - len(strings.TrimLeft(d.digits, "0"))
	if d.digits = strings.Trim(d.digits, "0"); d.digits == "" {
		return decimal{}
	}
	return d
}

// timeForm matches the times of RFC 3339 that Postgres and Parquet hold exactly: with at most microseconds, and with
// offsets that Postgres accepts. Zeros may follow the microseconds up to nine digits. Postgres refuses to parse a time
// with many more.
var timeForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6}0{0,3})?(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$`)

// asTime parses a time of RFC 3339. It reports false unless the year is from 1 to 9999 and the precision at most
// microseconds.
func asTime(text string) (time.Time, bool) {
	if len(text) < len("2006-01-02T15:04:05Z") || text[10] != 'T' || !timeForm.MatchString(text) {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	t = t.UTC()
	return t, err == nil && t.Year() >= 1 && t.Year() <= 9999
}
