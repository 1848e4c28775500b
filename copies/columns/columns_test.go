package columns_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/copies/columns"
)

func TestTypesOfValues(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  columns.Type
		as    any
	}{
		{`"a"`, columns.Text, "a"}, {`""`, columns.Text, ""}, {`"\u00fc\n"`, columns.Text, "ü\n"}, {`"\u0000"`, columns.Text, nil}, {`"\ud800"`, columns.Text, nil},
		{`{"bb":[1 ,"\n\/\u2028"],"c":1e2,"a":{},"c":-0.0}`, columns.Text, `{"a": {}, "c": 0.0, "bb": [1, "\n/` + "\u2028" + `"]}`}, {`[{"\ud800":1}]`, columns.Text, nil}, {`[]`, columns.Text, `[]`}, {`"12"`, columns.Text, "12"}, {`"true"`, columns.Text, "true"},
		{`true`, columns.Boolean, true}, {`false`, columns.Boolean, false},
		{`0`, columns.Double, 0.0}, {`-1.50`, columns.Double, -1.5}, {`1e2`, columns.Double, 100.0}, {`0.1`, columns.Double, 0.1}, {`0.30000000000000004`, columns.Double, 0.30000000000000004},
		{`9007199254740992`, columns.Double, 9007199254740992.0}, {`9007199254740993`, columns.Text, "9007199254740993"},
		{`-1.25e400`, columns.Text, "-125" + strings.Repeat("0", 398)}, {`1.0e-400`, columns.Text, "0." + strings.Repeat("0", 399) + "10"}, {`1e1000`, columns.Text, nil}, {`0e999999999999999999999`, columns.Double, 0.0}, {`5e-324`, columns.Double, 5e-324},
		{`1.7976931348623157e308`, columns.Double, 1.7976931348623157e308}, {`123456789012345678901234567890`, columns.Text, "123456789012345678901234567890"},
		{`"2026-01-02T03:04:05Z"`, columns.Timestamp, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		{`"2026-01-02T03:04:05.123456000+02:00"`, columns.Timestamp, time.Date(2026, 1, 2, 1, 4, 5, 123456000, time.UTC)},
		{`"2026-01-02T03:04:05.1234567Z"`, columns.Text, "2026-01-02T03:04:05.1234567Z"}, {`"2026-02-30T03:04:05Z"`, columns.Text, "2026-02-30T03:04:05Z"},
		{`"0001-01-01T00:00:00+01:00"`, columns.Text, "0001-01-01T00:00:00+01:00"}, {`"2026-01-02"`, columns.Text, "2026-01-02"},
		{`"2026-01-02T03:04:05.1234560000Z"`, columns.Text, "2026-01-02T03:04:05.1234560000Z"},
		{`"2026-01-02T03:04:05+15:00"`, columns.Text, "2026-01-02T03:04:05+15:00"},
	} {
		t.Run(tt.value, func(t *testing.T) {
			s := columns.NewSet(nil, false)
			data := `{"k": ` + tt.value + `}`
			added, fits := s.Observe("e1", data)
			again, _ := s.Observe("e1", data)
			if !added || again || len(s.Columns()) != 1 || s.Columns()[0].Type != tt.want || fits != (tt.as != nil) {
				t.Fatalf("%+v, want type %s; fits %v", s.Columns(), tt.want, fits)
			}
			values := []any{nil}
			if s.Values(data, values); !cmp.Equal(values[0], tt.as) {
				t.Errorf("%#v, want %#v", values[0], tt.as)
			}
		})
	}
}

func TestNamesOfColumns(t *testing.T) {
	s := columns.NewSet(nil, false)
	long := strings.Repeat("ü", 40)
	for _, key := range []string{"email", "Email", "EMAIL", "Entry_ID", "seq", "", long, long + "!", "data_", "a b'\\\"c"} {
		s.Observe("e1", fmt.Sprintf(`{%q: 1}`, key))
	}
	var got []string
	for _, c := range s.Columns() {
		got = append(got, c.Name)
	}
	want := []string{
		"email", "data_Email", "data_EMAIL_2", "data_Entry_ID", "data_seq", "data_",
		"data_" + strings.Repeat("ü", 29), "data_" + strings.Repeat("ü", 28) + "_2", "data_data_", "a b'\\\"c",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	again := columns.NewSet(s.Columns(), false)
	again.Observe("e1", `{"eMail": 1}`)
	if n := len(again.Columns()); again.Columns()[n-1].Name != "data_eMail_3" {
		t.Errorf("%+v", again.Columns()[n-1])
	}
}

func TestColumnsThatAUserNames(t *testing.T) {
	list, err := columns.Parse([]byte(`[{"key": "age", "type": "double"}, {"key": "mail", "name": "email"}, {"key": "email"}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []columns.Column{
		{Key: "age", Name: "age", Type: columns.Double}, {Key: "mail", Name: "email", Type: columns.Text}, {Key: "email", Name: "data_email", Type: columns.Text},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	for given, want := range map[string]string{
		`{}`:                                "it has a JSON object at byte 1; want a list such as",
		`[]`:                                "0 columns",
		`[{"key": "a", "typ": "text"}]`:     `unknown field "typ"`,
		`[{"key": "a", "type": "int"}]`:     `the type "int"; allowed: text, double, integer, boolean, timestamp, date`,
		`[{"key": "a"}, {"key": "a"}]`:      `key "a" is listed twice`,
		`[{"key": "a", "name": "SEQ"}]`:     `the name "SEQ", which another column has`,
		`[{"key": "a", "name": "a\u0000"}]`: "without NUL",
		`[{"key": "a"}] x`:                  "more after the list",
	} {
		if _, err := columns.Parse([]byte(given)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}

// A column keeps its type. Where a value does not fit, it is null, and the set says so once.
func TestValuesThatDoNotFit(t *testing.T) {
	list := []columns.Column{
		{Key: "age", Name: "age", Type: columns.Double}, {Key: "count", Name: "count", Type: columns.Integer}, {Key: "day", Name: "day", Type: columns.Date},
	}
	s := columns.NewSet(list, false)
	for _, tt := range []struct {
		id, data string
		fits     bool
		want     []any
	}{
		{"e1", `{"age": 1, "count": 12.0, "day": "1969-12-31"}`, true, []any{1.0, int64(12), columns.Day(-1)}},
		{"e2", `{"age": 1.5, "count": -9223372036854775808, "day": "9999-12-31"}`, true, []any{1.5, int64(math.MinInt64), columns.Day(2932896)}},
		{"e3", `{"age": null, "count": 1e3, "day": "0001-01-01"}`, true, []any{nil, int64(1000), columns.Day(-719162)}},
		{"e4", `{"age": "n/a", "count": 9223372036854775808, "day": "2026-02-29"}`, false, []any{nil, nil, nil}},
		{"e5", `{"age": {}, "count": 1.5, "day": "0000-01-01"}`, false, []any{nil, nil, nil}},
		{"e6", `{"age": true, "count": "1", "day": 20260101}`, false, []any{nil, nil, nil}},
	} {
		values := make([]any, len(list))
		_, fits := s.Observe(tt.id, tt.data)
		if s.Values(tt.data, values); fits != tt.fits || !cmp.Equal(values, tt.want) {
			t.Errorf("%s: %v, %v", tt.data, fits, values)
		}
	}
	want := []columns.Misfit{{list[0], 3, "e4"}, {list[1], 3, "e4"}, {list[2], 3, "e4"}}
	if said := s.Misfits(); !cmp.Equal(said, want) || !cmp.Equal(s.Columns(), list) || len(s.Misfits()) > 0 {
		t.Errorf("%+v do not fit; the columns are %+v", said, s.Columns())
	}
	for m, note := range map[columns.Misfit]string{
		want[0]:            `3 values of the key "age" of embeddable "m" do not fit its column of type double, such as the value of entry "e4". They are null there, and complete in entry_data.`,
		{list[0], 1, "e4"}: `1 value of the key "age" of embeddable "m" does not fit its column of type double: the value of entry "e4". It is null there, and complete in entry_data.`,
	} {
		if got := m.Note("m"); got != note {
			t.Errorf("the note is %s", got)
		}
	}
	s.Observe("e1", `{"age": "n/a"}`)
	if again := s.Misfits(); len(again) > 0 {
		t.Errorf("again %+v", again)
	}
}

// The text of a list that copies of released versions have stored stays. With another text, they would refuse to go on.
func TestChoiceIsPinned(t *testing.T) {
	c := columns.Choice{Listed: []columns.Column{{Key: "age", Name: "age", Type: columns.Double}, {Key: "day", Name: "on", Type: columns.Date}}}
	if want := "a list with the digest 2268f192452d1f79"; c.String() != want {
		t.Errorf("the text is %q; want %q", c, want)
	}
}
