package columns

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// eachMember calls do for each member of the JSON object in data, in order, and for each occurrence of a repeated key.
// If data is not a JSON object, eachMember does nothing.
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

// valid reports whether data is JSON. gjson's parser is recursive, so valid gives data that may be deeply nested to
// encoding/json, which limits the depth.
func valid(data string) bool {
	const nested = 10_000
	if strings.Count(data, "[")+strings.Count(data, "{") > nested {
		return json.Valid([]byte(data))
	}
	return gjson.Valid(data)
}

// typeOf returns the type of a new column whose first value is v. v must not be null.
func typeOf(v gjson.Result) Type {
	for _, t := range []Type{Boolean, Double, Timestamp} {
		if fit(v, t) {
			return t
		}
	}
	return Text
}

// fit reports whether a column of type t can hold the value v. A null fits each column.
func fit(v gjson.Result, t Type) bool {
	if t == Text && (v.Type == gjson.String && !strings.Contains(v.Raw, `\u`) || len(v.Raw) <= longestNumber && Plain(v.Raw)) {
		return true // without parsing the text
	}
	_, ok := valueOf(v, t)
	return ok
}

// valueOf returns the value that a column of type t has for the JSON value v: nil for null. If v does not fit the
// column, valueOf returns nil and false.
func valueOf(v gjson.Result, t Type) (value any, ok bool) {
	switch {
	case v.Type == gjson.Null:
		return nil, true
	case t == Text && v.Type == gjson.String:
		value, ok = asText(v)
	case t == Text:
		var b []byte
		b, ok = appendJSON(make([]byte, 0, 2*len(v.Raw)), v)
		value = string(b)
	case t == Boolean:
		value, ok = v.Type == gjson.True, v.IsBool()
	case t == Double && v.Type == gjson.Number:
		value, ok = asDouble(v.Raw)
	case t == Integer && v.Type == gjson.Number:
		value, ok = asInteger(v.Raw)
	case t == Timestamp && v.Type == gjson.String:
		value, ok = asTime(v.Str)
	case t == Date && v.Type == gjson.String:
		value, ok = asDay(v.Str)
	}
	if !ok {
		return nil, false
	}
	return value, true
}

// asText returns the text of a JSON string. asText returns false for a string that Postgres cannot store: with U+0000
// or an unpaired surrogate.
func asText(v gjson.Result) (string, bool) {
	if !strings.Contains(v.Raw, `\u`) {
		return v.Str, true
	}
	_, err := jsontext.AppendUnquote(nil, v.Raw) // gjson replaces unpaired surrogates
	return v.Str, err == nil && !strings.Contains(v.Str, "\x00")
}

// appendJSON appends the value v to b in the form of Postgres' jsonb, so that columns of Postgres and of files show
// the same text. appendJSON returns false for a value that Postgres cannot store, or with a number that is too long.
func appendJSON(b []byte, v gjson.Result) (_ []byte, ok bool) {
	switch {
	case v.Type == gjson.String:
		text, ok := asText(v)
		b, err := jsontext.AppendQuote(b, text)
		return b, ok && err == nil
	case v.Type == gjson.Number:
		number, ok := written(v.Raw)
		return append(b, number...), ok
	case v.IsArray():
		b = append(b, '[')
		for i, one := range v.Array() {
			if i > 0 {
				b = append(b, ", "...)
			}
			if b, ok = appendJSON(b, one); !ok {
				return b, false
			}
		}
		return append(b, ']'), true
	case v.IsObject():
		type member struct{ key, value gjson.Result }
		var members []member
		v.ForEach(func(key, one gjson.Result) bool {
			members = append(members, member{key, one})
			return true
		})
		slices.SortStableFunc(members, func(a, b member) int {
			return cmp.Or(len(a.key.Str)-len(b.key.Str), strings.Compare(a.key.Str, b.key.Str))
		})
		b = append(b, '{')
		for i, m := range members {
			if i+1 < len(members) && members[i+1].key.Str == m.key.Str {
				continue // the last member of a key counts
			}
			if b[len(b)-1] != '{' {
				b = append(b, ", "...)
			}
			if b, ok = appendJSON(b, m.key); !ok {
				return b, false
			}
			if b, ok = appendJSON(append(b, ": "...), m.value); !ok {
				return b, false
			}
		}
		return append(b, '}'), true
	}
	return append(b, v.Raw...), true
}

// Plain reports whether jsonb certainly accepts data, which must be valid JSON. Plain returns true for data without \u
// escapes, exponents, long text and deep nesting. If Plain returns false, only Postgres itself can decide.
func Plain(data string) bool {
	const longest, nested = 8000, 500
	if len(data) > longest || strings.Contains(data, `\u`) || strings.Count(data, "[")+strings.Count(data, "{") > nested {
		return false
	}
	for i := 1; i < len(data); i++ {
		if (data[i] == 'e' || data[i] == 'E') && '0' <= data[i-1] && data[i-1] <= '9' {
			return false
		}
	}
	return true
}

// longestNumber is the greatest number of characters of a number in a text column. A longer number does not fit.
const longestNumber = 1000

// written returns a JSON number without exponent, with the digits after the point that Postgres' numeric keeps.
// written returns false for a number of more than longestNumber characters.
func written(number string) (string, bool) {
	text, negative := strings.CutPrefix(number, "-")
	power := 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var err error
		if power, err = strconv.Atoi(text[i+1:]); err != nil || max(power, -power) > longestNumber {
			return "", false
		}
		text = text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits, point := whole+fraction, len(whole)+power
	if point < 1 {
		digits, point = strings.Repeat("0", 1-point)+digits, 1
	}
	digits += strings.Repeat("0", max(point-len(digits), 0))
	text = cmp.Or(strings.TrimLeft(digits[:point], "0"), "0")
	if point < len(digits) {
		text += "." + digits[point:]
	}
	if negative && strings.Trim(text, "0.") != "" {
		text = "-" + text
	}
	return text, len(text) <= longestNumber
}

// asInteger returns the value of a JSON number such as 12, 12.0 or 1e3. asInteger returns false for a number that has
// a fraction or exceeds 64 bits.
func asInteger(number string) (int64, bool) {
	text, ok := written(number)
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	return n, ok && err == nil && strings.Trim(fraction, "0") == ""
}

// asDay parses a date such as 2026-01-31. asDay returns false for another format, an impossible date and the year 0.
func asDay(text string) (Day, bool) {
	t, err := time.Parse(time.DateOnly, text)
	return Day(t.Unix() / secondsPerDay), err == nil && t.Year() >= 1
}

// asDouble returns the float64 of a JSON number. asDouble returns false if the shortest decimal form of the float64 is
// another number, or the JSON number is too long.
func asDouble(number string) (float64, bool) {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, false
	}
	if len(number) <= 15 && !strings.ContainsAny(number, "eE") {
		return n, true
	}
	if n == 0 { // with any exponent
		digits, _, _ := strings.Cut(strings.ToLower(number), "e")
		return n, strings.Trim(digits, "-0.") == ""
	}
	exact, ok := written(number)
	shortest := strconv.FormatFloat(n, 'f', -1, 64)
	if strings.Contains(exact, ".") {
		exact = strings.TrimRight(strings.TrimRight(exact, "0"), ".")
	}
	return n, ok && exact == shortest
}

// timeForm matches the times of RFC 3339 that Postgres and Parquet store exactly: with at most microseconds, and with
// offsets that Postgres accepts. Up to three zeros may follow the microseconds, because Postgres rejects times with
// many more digits.
var timeForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6}0{0,3})?(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$`)

// asTime parses a time of RFC 3339 and returns the time in UTC. asTime returns false for a year outside of 1 to 9999,
// or a precision finer than microseconds.
func asTime(text string) (time.Time, bool) {
	if len(text) < len("2006-01-02T15:04:05Z") || text[10] != 'T' || !timeForm.MatchString(text) {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	t = t.UTC()
	return t, err == nil && t.Year() >= 1 && t.Year() <= 9999
}
