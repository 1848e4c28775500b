package shell

import (
	"fmt"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/common/model"

	"github.com/lectern-dev/lectern/shared/wire"
)

// wrongValue is the error for a value that a flag, a variable or an argument does not take.
type wrongValue struct {
	value *kong.Value
	given string
	none  bool   // there is no value at all
	want  string // what is allowed
}

// Error names the flag or the argument, the value that was given, and the allowed values.
func (w *wrongValue) Error() string { return w.of(valueName(w.value)) }

// of returns the text of Error with another name in place of the flag's, such as the variable that gave the value.
func (w *wrongValue) of(name string) string {
	if w.none {
		return fmt.Sprintf("%s was given without a value; allowed: %s", name, w.want)
	}
	return fmt.Sprintf("%s was given as %q; allowed: %s", name, w.given, w.want)
}

// valueName returns the name of a flag or an argument for messages: --name for a flag, and NAME for an argument.
func valueName(v *kong.Value) string {
	if v.Flag != nil {
		return "--" + v.Name
	}
	return strings.ToUpper(v.Name)
}

// allowed returns the values that v takes, for messages: its choices, or else the placeholder of a flag, or else "any
// text".
func allowed(v *kong.Value) string {
	switch {
	case v.Enum != "":
		var choices []string
		for _, choice := range v.EnumSlice() {
			if choice != "" && !slices.Contains(choices, strings.ToUpper(choice)) {
				choices = append(choices, choice)
			}
		}
		return strings.Join(choices, ", ")
	case v.Flag != nil:
		return v.Flag.FormatPlaceHolder()
	}
	return "any text"
}

// mappers returns the parser's options that replace kong's readers of values, except those of true and false and of pairs. So
// an error about a value is a [wrongValue].
func mappers() []kong.Option {
	return []kong.Option{
		kong.KindMapper(reflect.String, mapper(readString)),
		kong.NamedMapper("path", mapper(readPath)),
		kong.NamedMapper("context", mapper(readString)),
		kong.NamedMapper("url", mapper(readURL)),
		kong.NamedMapper("address", mapper(readAddress)),
		kong.KindMapper(reflect.Int, mapper(readInteger)),
		kong.KindMapper(reflect.Int64, mapper(readInteger)),
		kong.KindMapper(reflect.Slice, kong.MapperFunc(readList)),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), mapper(readDuration)),
		kong.TypeMapper(reflect.TypeFor[Moment](), mapper(readMoment)),
	}
}

// negative matches a number, or a duration, below zero. [mapper] reads such a word as a value, although it begins
// like a flag.
var negative = regexp.MustCompile(`^-[0-9]`)

// mapper returns a mapper that reads one word with read. read sets target and returns "", or returns the allowed
// values if the word is not allowed.
func mapper(read func(text string, v *kong.Value, target reflect.Value) (want string)) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		token, v := ctx.Scan.Pop(), ctx.Value
		text := fmt.Sprint(token.Value)
		switch {
		case negative.MatchString(text): // no flag looks like this
		case !token.IsValue(), text == "" && (v.Required || v.Default != ""):
			want := read("", v, target)
			if want == "" {
				want = allowed(v)
			}
			return &wrongValue{value: v, none: true, want: want}
		}
		if want := read(text, v, target); want != "" {
			return &wrongValue{value: v, given: text, want: want}
		}
		return nil
	}
}

func readString(text string, v *kong.Value, target reflect.Value) string {
	if v.Enum != "" && !slices.Contains(v.EnumSlice(), text) {
		return allowed(v)
	}
	target.SetString(text)
	return ""
}

func readPath(text string, _ *kong.Value, target reflect.Value) string {
	if text != "" && text != "-" {
		text = kong.ExpandPath(text)
	}
	target.SetString(text)
	return ""
}

func readURL(text string, _ *kong.Value, target reflect.Value) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "a URL such as http://127.0.0.1:8080"
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
		return "a URL with a port from 1 to 65535"
	}
	target.SetString(text)
	return ""
}

// readAddress reads HOST:PORT. The host may be empty.
func readAddress(text string, _ *kong.Value, target reflect.Value) string {
	_, port, err := net.SplitHostPort(text)
	if _, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil {
		return "HOST:PORT, such as 127.0.0.1:9090 or :9090"
	}
	target.SetString(text)
	return ""
}

// readInteger reads a decimal number that is at least the number in the tag min. Without the tag, the minimum is 1.
func readInteger(text string, v *kong.Value, target reflect.Value) string {
	least := int64(1)
	if v.Tag.Has("min") {
		least, _ = strconv.ParseInt(v.Tag.Get("min"), 10, 64)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || target.OverflowInt(n) {
		return fmt.Sprintf("a whole number, %d or more", least)
	}
	target.SetInt(n)
	return ""
}

// readList reads the values of a slice: the remaining arguments, or the parts of one flag, which the tag sep
// separates. A flag that is given again adds to the slice.
func readList(ctx *kong.DecodeContext, target reflect.Value) error {
	v := ctx.Value
	texts := []string{}
	if v.Flag == nil {
		for _, token := range ctx.Scan.PopWhile(kong.Token.IsValue) {
			texts = append(texts, fmt.Sprint(token.Value))
		}
	} else {
		token := ctx.Scan.Pop()
		if !token.IsValue() {
			token.Value = ""
		}
		if texts = kong.SplitEscaped(fmt.Sprint(token.Value), v.Tag.Sep); len(texts) == 0 {
			return &wrongValue{value: v, none: true, want: allowed(v)}
		}
	}
	for _, text := range texts {
		element := reflect.New(target.Type().Elem()).Elem()
		if want := readString(text, v, element); want != "" {
			return &wrongValue{value: v, given: text, want: want}
		}
		target.Set(reflect.Append(target, element))
	}
	return nil
}

// readDuration reads a duration such as 90s, 12h, 3d, 1w or 1h30m. Zero is allowed only with the tag min:"0".
func readDuration(text string, v *kong.Value, target reflect.Value) string {
	d, err := time.ParseDuration(text)
	if err != nil {
		var long model.Duration // with days and weeks
		long, err = model.ParseDuration(text)
		d = time.Duration(long)
	}
	switch zero := v.Tag.Get("min") == "0"; {
	case err == nil && (d > 0 || d == 0 && zero):
		target.SetInt(int64(d))
		return ""
	case zero:
		return "a duration such as 30s, 12h, 3d or 1w, or 0"
	}
	return "a duration such as 30s, 12h, 3d or 1w"
}

// Moment is a time on the command line. The forms are those that the API accepts: see [wire.ParseTime]. The zero
// Moment means that no time was given.
type Moment struct{ time.Time }

func readMoment(text string, _ *kong.Value, target reflect.Value) string {
	micros, err := wire.ParseTime(text)
	if err != nil {
		return "a time such as 2026-09-01T12:00:00Z, or a date"
	}
	target.Set(reflect.ValueOf(Moment{wire.Time(micros)}))
	return ""
}

// String returns the moment in the form of the API, RFC 3339, or "" for the zero Moment.
func (m Moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format(time.RFC3339Nano)
}
