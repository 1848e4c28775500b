package csvrow

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestReader(t *testing.T) {
	type row struct {
		Line  int
		Raw   string
		Cells []string
		Fault string
	}
	for _, tt := range []struct {
		name string
		in   string
		want []row
	}{
		{"plain", "a,b\n1,\n", []row{{1, "a,b\n", []string{"a", "b"}, ""}, {2, "1,\n", []string{"1", ""}, ""}}},
		{"no end of line at the end", "a", []row{{1, "a", []string{"a"}, ""}}},
		{"CRLF", "a,b\r\n\"c\",d\r\n", []row{{1, "a,b\r\n", []string{"a", "b"}, ""}, {2, "\"c\",d\r\n", []string{"c", "d"}, ""}}},
		{"line ends within quotes stay", "\"a\r\nb\nc\",d\ne,f\n", []row{
			{1, "\"a\r\nb\nc\",d\n", []string{"a\r\nb\nc", "d"}, ""}, {4, "e,f\n", []string{"e", "f"}, ""}}},
		{"quotes", `"say ""hi""","",x` + "\n", []row{{1, `"say ""hi""","",x` + "\n", []string{`say "hi"`, "", "x"}, ""}}},
		{"blank lines", "a\n\n\nb\n\n", []row{{1, "a\n", []string{"a"}, ""}, {4, "\n\nb\n", []string{"b"}, ""}, {6, "\n", nil, ""}}},
		{"a bare quote costs its line alone", "5\" pipe,x\nb,c\n", []row{{1, "5\" pipe,x\n", nil, errBareQuote.Error()}, {2, "b,c\n", []string{"b", "c"}, ""}}},
		{"text after a quote invalidates its line alone", "\"a\"b,x\nb,c\n", []row{{1, "\"a\"b,x\n", nil, errAfter.Error()}, {2, "b,c\n", []string{"b", "c"}, ""}}},
		{"lines end with CR", "a,b\r\"c\rd\",\"\n\"\r\re,f", []row{
			{1, "a,b\r", []string{"a", "b"}, ""}, {2, "\"c\rd\",\"\n\"\r", []string{"c\rd", "\n"}, ""}, {5, "\re,f", []string{"e", "f"}, ""}}},
		{"lines end with CR CR LF", "a,b\r\r\n1,2\r\r\n", []row{{1, "a,b\r\r\n", []string{"a", "b"}, ""}, {2, "1,2\r\r\n", []string{"1", "2"}, ""}}},
		{"invalid UTF-8", "a\xff\nb\n", []row{{1, "a\xff\n", nil, errUTF8.Error()}, {2, "b\n", []string{"b"}, ""}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(tt.in), Guess([]byte(tt.in), ','))
			var got []row
			for {
				next, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				fault := ""
				if next.Fault != nil {
					fault = next.Fault.Error()
				}
				got = append(got, row{next.Line, string(next.Raw), next.Cells, fault})
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReaderReadsWhatCSVWritersWrite(t *testing.T) {
	cell := rapid.StringOfN(rapid.SampledFrom([]rune{'a', '1', '"', ',', '\n', '\r', ';', ' ', 'é', '☀'}), 0, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(2, 5).Draw(t, "width")
		want := rapid.SliceOfN(rapid.SliceOfN(cell, width, width), 1, 20).Draw(t, "rows")
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		if err := w.WriteAll(want); err != nil {
			t.Fatal(err)
		}
		in := b.String()
		r := NewReader(strings.NewReader(in), Dialect{',', '\n'})
		var got [][]string
		var raw strings.Builder
		for {
			row, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil || row.Fault != nil {
				t.Fatal(err, row.Fault)
			}
			got = append(got, row.Cells)
			raw.Write(row.Raw)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q: %s", in, diff)
		}
		if raw.String() != in {
			t.Fatalf("the rows' bytes are not the file's")
		}
	})
}

func TestGuess(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     byte
	}{
		{"comma", "a,b\n1,2\n", ','},
		{"one column", "a\nx;y\nz;w\n", ','},
		{"semicolon, decimal commas", "a;b\n1,5;2,5\n", ';'},
		{"semicolon, commas in the header", "Name;Address, street, city\nA;B\nC;D\n", ';'},
		{"tab, quoted", "a\t\"b;c;d\"\n1\t2\n", '\t'},
		{"bar", "a|b|c\n1|2,5|3\n", '|'},
		{"header alone", "a;b", ';'},
		{"CR", "a;b\r1;2\r", ';'},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Guess([]byte(tt.in), 0).Delimiter; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	for _, tt := range []struct{ format, zone, in, want string }{
		{"", "Europe/Berlin", "2024-07-01 10:00", "2024-07-01T08:00:00Z"},
		{"iso", "", "2024/1/31", "2024-01-31T00:00:00Z"},
		{"iso", "Asia/Tokyo", "2024-01-31T10:00:00.1234567+02:00", "2024-01-31T08:00:00.123456Z"},
		{"dmy", "", "31.1.2024 17:30", "2024-01-31T17:30:00Z"},
		{"dmy", "", "1/31/2024", ""},
		{"dmy", "", "31.1.24 17:30", "2024-01-31T17:30:00Z"},
		{"mdy", "", "1/31/99", "1999-01-31T00:00:00Z"},
		{"mdy", "", " 1/31/2024 5:30 PM", "2024-01-31T17:30:00Z"},
		{"iso", "", "2024/01/31 5:30:00 午後 GMT+9", "2024-01-31T08:30:00Z"},
		{"iso", "", "2024/07/01 10:00:00 AM MESZ", "2024-07-01T08:00:00Z"},
		{"iso", "", "2024/01/31 5:30:00 p. m. GMT-6", "2024-01-31T23:30:00Z"},
		{"iso", "", "2024/01/31 5:30:00\u202fPM GMT", "2024-01-31T17:30:00Z"},
		{"iso", "", "2024/01/31 5:30:00 p.\u00a0m. UTC\u22126", "2024-01-31T23:30:00Z"},
		{"iso", "Asia/Tokyo", "2024/07/01 5:30:00 PM PDT", "2024-07-02T00:30:00Z"},
		{"iso", "", "2024/07/01 5:30:00 PM IST", ""}, // India, Ireland or Israel
		{"mail", "Asia/Tokyo", "Wed, 31 Jan 2024 17:30:00 GMT", "2024-01-31T17:30:00Z"},
		{"text", "", "Jan 31, 2024, 5:30 PM", "2024-01-31T17:30:00Z"},
		{"mail", "", "Wed, 31 Jan 2024 17:30:00 +0100", "2024-01-31T16:30:00Z"},
		{"unix", "Asia/Tokyo", "1706722200.25", "2024-01-31T17:30:00.25Z"},
		{"unix", "", "1e9", ""},
		{"unix-ms", "", "1706722200000", "2024-01-31T17:30:00Z"},
		{"excel", "America/New_York", "45322.75", "2024-01-31T23:00:00Z"},
		{"excel", "", "2958465", "9999-12-31T00:00:00Z"},
		{"excel", "", "2958466", ""},
		{"%b %d %Y", "", "Jan 1 2000", "2000-01-01T00:00:00Z"},
		{"%Y%m%d%H%M%S", "", "20240131173000", "2024-01-31T17:30:00Z"},
		{"%d. %B %Y um %R", "", "31. January 2024 um 17:30", "2024-01-31T17:30:00Z"},
		{"%F %T.%f %z", "", "2024-01-31 17:30:00.5 +01:00", "2024-01-31T16:30:00.5Z"},
		{"%F %T", "Europe/Berlin", "2024-03-31 02:30:00", ""},                           // the clock jumps over it
		{"%F %T", "Europe/Berlin", "2024-10-27 02:30:00", "2024-10-27T00:30:00Z"},       // twice: the first
		{"%F %T", "Pacific/Apia", "2011-12-30 12:00:00", ""},                            // the whole day
		{"%F %T", "Australia/Lord_Howe", "2024-04-07 01:45:00", "2024-04-06T14:45:00Z"}, // twice, half an hour apart
	} {
		times, err := newTimes(tt.format, tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := times.read(tt.in); got != tt.want || (err == nil) == (tt.want == "") {
			t.Errorf("%s %s: %q is %q, %v; want %q", tt.format, tt.zone, tt.in, got, err, tt.want)
		}
	}
	for _, tt := range [][2]string{{"%Q", ""}, {"%Y %", ""}, {"%d.%m.", ""}, {"%Y Jan", ""}, {"YYYY-MM-DD", ""}, {"iso", "Mars"}, {"iso", "Local"}} {
		if err := CheckTimes(tt[0], tt[1]); err == nil {
			t.Errorf("%v is taken", tt)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		comma bool
		cells []string
		want  string
		note  string
	}{
		{false, []string{"12", "1.50", "1.234", "007", "12,5", "", "true"}, `12 1.50 1.234 "007" "12,5" null true`, `the column "n" has numbers and texts, 3 and 2 cells, such as "007": see --decimal and --text.`},
		{true, []string{"12", "-1,50", "1.234", "1.234.567,8", "0,5", "12,5"}, `12 -1.50 1234 1234567.8 0.5 12.5`, ""},
		{false, []string{"12", "1.234"}, "12 1.234", `the column "n" has numbers such as 1.234 in 1 cells, read with a decimal dot: --decimal , reads thousands.`},
		{false, []string{"1.234", "1.5"}, "1.234 1.5", ""},
		{true, []string{"1", "1.5", "1,234,5", "12.34,5", "0.123", ",5", "1,"}, `1 "1.5" "1,234,5" "12.34,5" "0.123" ",5" "1,"`, `the column "n" has numbers and texts, 1 and 6 cells, such as "1.5": see --decimal and --text.`},
	} {
		set := []string{"entry_id=e", "group_id=g", "project_id=p", "embeddable_id=m", "contact_id=c", "created_at=2024-01-01"}
		m, err := NewMapping(Entries(), []string{"n"}, Options{Set: set, Comma: tt.comma})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, cell := range tt.cells {
			line, err := m.Append(nil, []string{cell}, i+1)
			var record struct {
				Data string `json:"entry_data"`
			}
			if err == nil {
				err = json.Unmarshal(line, &record)
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, strings.TrimSuffix(strings.TrimPrefix(record.Data, `{"n":`), "}"))
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" || strings.Join(m.Notes(';'), " ") != tt.note {
			t.Errorf("%s%q; want %q", diff, m.Notes(';'), tt.note)
		}
	}
}

func TestHeadersWithoutOrWithTheSameName(t *testing.T) {
	header := []string{"", "a", "", "a", "b"}
	set := []string{"entry_id=row {#row}", "group_id={#4}", "project_id=p", "embeddable_id=m", "contact_id={a}", "created_at={b}"}
	m, err := NewMapping(Entries(), header, Options{Set: set, Skip: []string{"", "#4"}, Keep: []string{"a"}, TimeFormat: "dmy"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Append(nil, []string{"x", "1", "y", "2", "31.1.2024"}, 7)
	want := `{"entry_id":"row 7","group_id":"2","project_id":"p","embeddable_id":"m","contact_id":"1","created_at":"2024-01-31T00:00:00Z","updated_at":"2024-01-31T00:00:00Z","entry_data":"{\"a\":1}"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

// TestEventRow checks that a row of an event has a null for an empty cell. The row lacks a field that may be null and has no
// column, because a service of the version before may not know the field.
func TestEventRow(t *testing.T) {
	m, err := NewMapping(Events(), []string{"entry_id", "timestamp", "page_index", "event_type", "junk", "page_key"}, Options{
		Set:  []string{"contact_id=c", "project_id=p", "group_id=g", "embeddable_id=m"},
		Skip: []string{"junk"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Append(nil, []string{"e", "2024-01-01", "3", "flowpage.viewed", "x", ""}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(got, &record); err != nil {
		t.Fatal(err)
	}
	key, there := record["page_key"]
	if record["page_index"] != 3.0 || !there || key != nil || len(record) != 9 {
		t.Errorf("got %s", got)
	}
	if _, err := m.Append(nil, []string{"e", "2024-01-01", "3.5", "x", "", ""}, 1); err == nil || !strings.Contains(err.Error(), "whole number") {
		t.Errorf("a broken index: %v", err)
	}
}

func TestMappingRefuses(t *testing.T) {
	all := []string{"entry_id=1", "group_id=1", "project_id=1", "embeddable_id=1", "contact_id=1", "created_at=1"}
	for _, tt := range []struct {
		name   string
		shape  Shape
		header []string
		in     Options
		want   string
	}{
		{"twice the same name", Entries(), []string{"a", "b", "a"}, Options{Set: all}, `names "a" twice, in columns 1 and 3: leave one out with --skip '#3'`},
		{"a name that means two columns", Entries(), []string{"a", "a"}, Options{Set: append([]string{"entry_id={a}"}, all[1:]...)}, `names "a" twice`},
		{"no source", Entries(), []string{"a"}, Options{Set: all[1:]}, "nothing gives entry_id"},
		{"no such column", Entries(), []string{"a"}, Options{Set: []string{"entry_id={b}"}}, `no column "b"; the file has "a"`},
		{"no such number", Entries(), []string{"a"}, Options{Set: []string{"entry_id={#2}"}}, `no column "#2"`},
		{"no such field", Entries(), []string{"a"}, Options{Set: []string{"id={a}"}}, `no field "id"`},
		{"no value", Entries(), []string{"a"}, Options{Set: []string{"entry_id"}}, "want FIELD=VALUE"},
		{"set twice", Entries(), []string{"a"}, Options{Set: []string{"entry_id=1", "entry_id=2"}}, "was set before"},
		{"open brace", Entries(), []string{"a"}, Options{Set: []string{"entry_id={a"}}, "without its }"},
		{"close brace", Entries(), []string{"a"}, Options{Set: []string{"entry_id=a}"}}, "without its {"},
		{"nameless rest", Entries(), []string{"a", ""}, Options{Set: all}, "column 2 has no name"},
		{"rest beside entry_data", Entries(), []string{"entry_data", "a"}, Options{Set: all}, `column "a" is no field`},
		{"rest of events", Events(), []string{"a"}, Options{}, `--skip 'a'`},
		{"skip of nothing", Entries(), []string{"a"}, Options{Set: all, Skip: []string{"z"}}, "--skip: there is no column"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewMapping(tt.shape, tt.header, tt.in)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want one with %q", err, tt.want)
			}
		})
	}
}
