package columns_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/cli/internal/columns"
)

func TestTypesOfValues(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  columns.Type
		as    any
	}{
		{`"a"`, columns.Text, "a"}, {`""`, columns.Text, ""}, {`"\u00fc\n\u0000"`, columns.Text, "ü\n\x00"}, {`"\ud800"`, columns.Text, "\ufffd"},
		{`{"b": [1 ]}`, columns.Text, `{"b": [1 ]}`}, {`[]`, columns.Text, `[]`}, {`"12"`, columns.Text, "12"}, {`"true"`, columns.Text, "true"},
		{`true`, columns.Boolean, true}, {`false`, columns.Boolean, false},
		{`0`, columns.Double, 0.0}, {`-1.50`, columns.Double, -1.5}, {`1e2`, columns.Double, 100.0}, {`0.1`, columns.Double, 0.1}, {`0.30000000000000004`, columns.Double, 0.30000000000000004},
		{`9007199254740992`, columns.Double, 9007199254740992.0}, {`9007199254740993`, columns.Text, "9007199254740993"},
		{`1e400`, columns.Text, "1e400"}, {`1e-400`, columns.Text, "1e-400"}, {`0e999999999999999999999`, columns.Double, 0.0}, {`5e-324`, columns.Double, 5e-324},
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
			if !s.Observe(data) || s.Observe(data) || len(s.Columns()) != 1 || s.Columns()[0].Type != tt.want {
				t.Fatalf("%+v, want type %s", s.Columns(), tt.want)
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
		s.Observe(fmt.Sprintf(`{%q: 1}`, key))
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
	again.Observe(`{"eMail": 1}`)
	if n := len(again.Columns()); again.Columns()[n-1].Name != "data_eMail_3" {
		t.Errorf("%+v", again.Columns()[n-1])
	}
}

func TestColumnsThatAUserNames(t *testing.T) {
	list, err := columns.Parse([]byte(`[{"key": "age", "type": "double"}, {"key": "mail", "name": "email"}, {"key": "email"}]`))
	if err != nil {
		t.Fatal(err)
	}
	s := columns.NewSet(list, true)
	s.Observe(`{"age": "n/a", "other": 1}`)
	want := []columns.Column{
		{Key: "age", Name: "age", Type: columns.Text}, {Key: "mail", Name: "email", Type: columns.Text}, {Key: "email", Name: "data_email", Type: columns.Text},
	}
	if diff := cmp.Diff(want, s.Columns()); diff != "" {
		t.Error(diff)
	}
	for given, want := range map[string]string{
		`{}`:                                "it has a JSON object at byte 1; want a list such as",
		`[]`:                                "0 columns",
		`[{"key": "a", "typ": "text"}]`:     `unknown field "typ"`,
		`[{"key": "a", "type": "int"}]`:     `the type "int"; allowed: text, double, boolean, timestamp`,
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
