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
		{"open quote", "a\n\"b\nc", []row{{1, "a\n", []string{"a"}, ""}, {2, "\"b\nc", nil, errOpenQuote.Error()}}},
		{"invalid UTF-8", "a\xff\nb\n", []row{{1, "a\xff\n", nil, errUTF8.Error()}, {2, "b\n", []string{"b"}, ""}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(tt.in), ',', 1)
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
		r := NewReader(strings.NewReader(in), ',', 1)
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

func TestEventRow(t *testing.T) {
	m, err := NewMapping(Events(), []string{"entry_id", "timestamp", "page_index", "event_type", "junk"}, Options{
		Set:  []string{"contact_id=c", "project_id=p", "group_id=g", "embeddable_id=m"},
		Skip: []string{"junk"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Append(nil, []string{"e", "2024-01-01", "3", "flowpage.viewed", "x"})
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(got, &record); err != nil {
		t.Fatal(err)
	}
	if record["page_index"] != 3.0 || record["url"] != nil || len(record) != len(Events().Fields) {
		t.Errorf("got %s", got)
	}
	if _, err := m.Append(nil, []string{"e", "2024-01-01", "3.5", "x", ""}); err == nil || !strings.Contains(err.Error(), "whole number") {
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
		{"twice the same name", Entries(), []string{"a", "b", "a"}, Options{Set: all}, `names "a" twice, in columns 1 and 3`},
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
