package export

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/fields"
)

// entriesOf returns a Fetch function for a list of entries with these entry_data.
func entriesOf(t *testing.T, data ...string) func(context.Context, string, int, func(client.RawPage) error) error {
	t.Helper()
	return func(_ context.Context, cursor string, limit int, receive func(client.RawPage) error) error {
		from, _ := strconv.Atoi(cursor)
		to := min(from+limit, len(data))
		var body bytes.Buffer
		for i := from; i < to; i++ {
			err := json.NewEncoder(&body).Encode(map[string]string{
				"entry_id": fmt.Sprint("e", i), "group_id": "g", "project_id": "p", "embeddable_id": "m", "contact_id": "c, \"d\"",
				"created_at": "2024-01-01T00:00:00.000001Z", "updated_at": "9999-12-31T23:59:59Z", "entry_data": data[i],
			})
			if err != nil {
				t.Error(err)
			}
		}
		page := client.RawPage{Body: &body}
		if to < len(data) {
			page.NextCursor = strconv.Itoa(to)
		}
		return receive(page)
	}
}

// export returns the output of an export to a stream.
func export(t *testing.T, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	o.Stream = &b
	result, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if result.Bytes != int64(b.Len()) {
		t.Errorf("%d bytes are reported, %d were written", result.Bytes, b.Len())
	}
	return b.Bytes()
}

func readCSV(t *testing.T, b []byte) [][]string {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// readParquet returns the names of the columns and the rows. It uses only the schema in the file.
func readParquet(t *testing.T, b []byte) (names []string, rows []map[string]any) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range f.Schema().Fields() {
		names = append(names, field.Name())
	}
	all, err := parquet.Read[any](bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range all {
		rows = append(rows, row.(map[string]any))
	}
	return names, rows
}

// TestFlattenedEntries checks that a flattened export has the columns of the plain one, then one for each key of any
// entry. The last entry widens the type of a column.
func TestFlattenedEntries(t *testing.T) {
	data := []string{
		`{"n":1.50,"wide":1.50,"ok":true,"at":"2024-01-02T03:04:05.5+02:00","contact_id":"x","N":2}`,
		`{"n":null,"text":"a,\n\"b\"","list":[1, {"a":2}],"":"no name"}`,
		`{"n":-1e25,"ok":false,"text":""}`,
		`["no object"]`,
		`no JSON`,
		`{"n":0.000001,"wide":"x","at":null}`,
	}
	fetch := entriesOf(t, data...)
	plain := readCSV(t, export(t, Options{Query: query(Entries, CSV), Fetch: fetch, PageSize: 2}))
	flat := readCSV(t, export(t, Options{Query: query(Entries, CSV), Fetch: fetch, PageSize: 2, Columns: columns.NewSet(nil, false)}))
	want := [][]string{
		{"n", "wide", "ok", "at", "data_contact_id", "data_N", "text", "list", "data_"},
		{"1.5", "1.50", "true", "2024-01-02T01:04:05.5Z", "x", "2", "", "", ""},
		{"", "", "", "", "", "", "a,\n\"b\"", `[1, {"a": 2}]`, "no name"},
		{"-1e+25", "", "false", "", "", "", "", "", ""},
		{"", "", "", "", "", "", "", "", ""},
		{"", "", "", "", "", "", "", "", ""},
		{"0.000001", "x", "", "", "", "", "", "", ""},
	}
	for i := range want {
		want[i] = append(append([]string(nil), plain[i]...), want[i]...)
	}
	if diff := cmp.Diff(want, flat); diff != "" {
		t.Error(diff)
	}

	names, rows := readParquet(t, export(t, Options{Query: query(Entries, Parquet), Fetch: fetch, PageSize: 2, Columns: columns.NewSet(nil, false)}))
	if diff := cmp.Diff(want[0], names); diff != "" {
		t.Error(diff)
	}
	at := time.Date(2024, 1, 2, 1, 4, 5, 500_000_000, time.UTC).UnixMicro()
	typed := []map[string]any{
		{"n": 1.5, "wide": "1.50", "ok": true, "at": at, "data_contact_id": "x", "data_N": 2.0},
		{"text": "a,\n\"b\"", "list": `[1, {"a": 2}]`, "data_": "no name"},
		{"n": -1e25, "ok": false, "text": ""},
		{}, {},
		{"n": 0.000001, "wide": "x"},
	}
	for i, row := range typed {
		for _, name := range names[len(fieldsOf[Entries]):] {
			if _, ok := row[name]; !ok {
				row[name] = nil
			}
		}
		for c, name := range fieldsOf[Entries] {
			row[name] = plain[i+1][c]
		}
		row["created_at"] = time.Date(2024, 1, 1, 0, 0, 0, 1000, time.UTC).UnixMicro()
		row["updated_at"] = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).UnixMicro()
	}
	if diff := cmp.Diff(typed, rows); diff != "" {
		t.Error(diff)
	}
	names, rows = readParquet(t, export(t, Options{Query: query(Entries, Parquet), Fetch: fetch, PageSize: 2}))
	if diff := cmp.Diff(fieldsOf[Entries], names); diff != "" || len(rows) != len(data) || rows[1]["entry_data"] != data[1] {
		t.Errorf("without columns: %s %v", diff, rows)
	}
}

// TestSafeForSpreadsheets reads exports as spreadsheets do that separate cells by commas, semicolons or tabs. No cell
// may be a formula.
func TestSafeForSpreadsheets(t *testing.T) {
	fetch := entriesOf(t,
		`{"a":"=1+1","b":" -x","c":"x;=cmd|' /C calc'!A0","d":"x\t@SUM(A1)","e":"x\r\n+1","f":"\t=1","g":"x;\"=1\"","h":"＝1","i":["a;=1"],"=k":1,"zero":"007","long":12345678901234567,"lines":"x\ny"}`,
		`{"cut":"`+strings.Repeat("x", 32_768)+`","whole":"`+strings.Repeat("ü", 32_767)+`"}`,
		`{"n":-5,"m":-1.5e+25,"a":"a;b","b":"-5"}`)
	for _, set := range []*columns.Set{nil, columns.NewSet(nil, false)} {
		q := query(Entries, CSV)
		unsafe := export(t, Options{Query: q, Fetch: fetch, PageSize: 2, Columns: set})
		q.Safe = true
		long := 0
		safe := export(t, Options{Query: q, Fetch: fetch, PageSize: 2, Columns: set, Long: func() { long++ }})
		if want := map[bool]int{true: 1, false: 2}[set == nil]; long != want {
			t.Errorf("%d cells are too long for Excel, want %d", long, want)
		}
		for _, separator := range []rune{',', ';', '\t'} {
			if set != nil && formulas(t, unsafe, separator) == 0 {
				t.Errorf("no formula without Safe, separated by %q", separator)
			}
			if n := formulas(t, safe, separator); n > 0 {
				t.Errorf("%d formulas, separated by %q, in\n%s", n, separator, safe)
			}
		}
		if set != nil && !strings.Contains(string(safe), "-5,-1.5e+25\r\n") {
			t.Errorf("numbers have changed:\n%s", safe)
		}
		if set != nil && (!bytes.HasPrefix(safe, []byte("\ufeffentry_id,")) || !strings.Contains(string(safe), ",'007,'12345678901234567,\"x\ny\",") || !bytes.HasSuffix(safe, []byte("\r\n"))) {
			t.Errorf("not the form of spreadsheets:\n%s", safe)
		}
	}
}

// TestSafeCells writes the cells of testdata/safe.json. The console's test TestLongSafeSpreadsheet has the same table, so that
// both files for spreadsheets have the same form.
func TestSafeCells(t *testing.T) {
	var cases []struct {
		Name, Cell string
		Value      json.RawMessage
	}
	if err := json.Unmarshal(read(t, filepath.Join("testdata", "safe.json")), &cases); err != nil {
		t.Fatal(err)
	}
	for _, tt := range cases {
		text := string(tt.Value)
		if text == "null" {
			text = ""
		} else if text[0] == '"' {
			if err := json.Unmarshal(tt.Value, &text); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		if err := newCSVWriter(&out, true, nil).write("first", text); err != nil {
			t.Fatal(err)
		}
		if want := "first," + tt.Cell + "\r\n"; out.String() != want {
			t.Errorf("%s: %q, want %q", tt.Name, &out, want)
		}
	}
}

// formulas counts the cells that a spreadsheet would run.
func formulas(t *testing.T, file []byte, separator rune) (n int) {
	t.Helper()
	r := csv.NewReader(bytes.NewReader(file))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = separator, true, -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range slices.Concat(rows...) {
		cell = strings.TrimLeft(cell, " \t\r\n\"")
		if _, err := strconv.ParseFloat(cell, 64); err != nil && strings.IndexAny(cell, "=+-@＝") == 0 {
			n++
		}
	}
	return n
}

// TestFlattenedIntoNamedColumns checks that an export has only the columns that the user names, with their types.
func TestFlattenedIntoNamedColumns(t *testing.T) {
	list, err := columns.Parse([]byte(`[{"key": "n", "name": "number"}, {"key": "age", "type": "double"}, {"key": "none", "type": "boolean"},
		{"key": "day", "type": "date"}, {"key": "count", "type": "integer"}]`))
	if err != nil {
		t.Fatal(err)
	}
	fetch := entriesOf(t, `{"n":1.50,"age":1,"other":1,"day":"0001-02-28","count":-12.0}`, `{"age":"old","day":"2026-02-29","count":1.5}`)
	rows := readCSV(t, export(t, Options{Query: query(Entries, CSV), Fetch: fetch, PageSize: 9, Columns: columns.NewSet(list, true)}))
	for i, want := range []string{"number,age,none,day,count", "1.50,1,,0001-02-28,-12", ",,,,"} {
		if got := strings.Join(rows[i][len(fieldsOf[Entries]):], ","); got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
}

// TestEventsAsParquet checks that events have the same values in Parquet as in NDJSON.
func TestEventsAsParquet(t *testing.T) {
	const event = `{"change":"event","seq":%d,"event":{"entry_id":"e","contact_id":"c","project_id":"p","group_id":"g","embeddable_id":"m","embeddable_version_number":%s,` +
		`"timestamp":"2024-01-01T00:00:00.25Z","page_id":%s,"page_key":"k","page_index":0,"max_page_id":"z","max_page_key":null,"max_page_index":9007199254740991,"total_pages":null,` +
		`"event_type":"flowpage.viewed","view_type":"flowpage","custom_event_name":"a, <b>","custom_event_props":"{\"a\":1}","event_id":%s,"event_key":"x","url":"https://example.com/?a=1&b=2"}}` + "\n"
	fetch := func(_ context.Context, _ string, _ int, receive func(client.RawPage) error) error {
		body := fmt.Sprintf(event, 1, "3", `"p1"`, "null") + fmt.Sprintf(event, 2, "null", "null", `"ev_2"`)
		return receive(client.RawPage{Body: strings.NewReader(body), NextCursor: "next", Current: true})
	}
	names, rows := readParquet(t, export(t, Options{Query: query(Events, Parquet), Fetch: fetch, PageSize: 9}))
	if diff := cmp.Diff(fieldsOf[Events], names); diff != "" {
		t.Error(diff)
	}
	for line := range strings.Lines(string(export(t, Options{Query: query(Events, NDJSON), Fetch: fetch, PageSize: 9}))) {
		want := map[string]any{}
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		for name, value := range want {
			if n, ok := value.(float64); ok {
				want[name] = int64(n)
			}
		}
		want["timestamp"] = time.Date(2024, 1, 1, 0, 0, 0, 250_000_000, time.UTC).UnixMicro()
		if len(rows) == 0 {
			t.Fatalf("no row for %s", line)
		}
		if diff := cmp.Diff(want, rows[0]); diff != "" {
			t.Error(diff)
		}
		rows = rows[1:]
	}
	if len(rows) > 0 {
		t.Errorf("more rows: %v", rows)
	}
}

func TestNothingAsTables(t *testing.T) {
	empty := func(_ context.Context, _ string, _ int, receive func(client.RawPage) error) error {
		return receive(client.RawPage{Body: strings.NewReader(""), NextCursor: "", Current: true})
	}
	rows := readCSV(t, export(t, Options{Query: query(Entries, CSV), Fetch: empty, PageSize: 9, Columns: columns.NewSet(nil, false)}))
	if diff := cmp.Diff([][]string{fieldsOf[Entries]}, rows); diff != "" {
		t.Error(diff)
	}
	for kind, want := range map[Kind][]string{Entries: fieldsOf[Entries], Events: fieldsOf[Events]} {
		path := filepath.Join(t.TempDir(), "f")
		if _, err := Run(t.Context(), Options{Query: query(kind, Parquet), Fetch: empty, PageSize: 9, Path: path}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if names, rows := readParquet(t, b); !cmp.Equal(names, want) || len(rows) > 0 {
			t.Errorf("%s: %v, %d rows", kind, names, len(rows))
		}
	}
}

// TestCutConversionEqualsUncut interrupts runs during the reading of pages and during the conversion. The next run
// reads no page again and writes the same file as an uninterrupted run.
func TestCutConversionEqualsUncut(t *testing.T) {
	const total = 2500
	data := make([]string, total)
	for i := range data {
		data[i] = fmt.Sprintf(`{"n":%d,"k%d":"x"}`, i, i/500)
	}
	data[total-1] = `{"n":"wide"}`
	fetch := entriesOf(t, data...)
	for _, format := range []Format{CSV, Parquet} {
		t.Run(string(format), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out")
			options := func() Options {
				return Options{Query: query(Entries, format), Fetch: fetch, PageSize: 600, Path: path, Columns: columns.NewSet(nil, false)}
			}
			streamed := options()
			streamed.Path = ""
			want := export(t, streamed)

			// Interrupt the reading of pages.
			pages := 0
			o := options()
			o.Fetch = func(ctx context.Context, cursor string, limit int, receive func(client.RawPage) error) error {
				if pages++; pages == 3 {
					return errCut
				}
				return fetch(ctx, cursor, limit, receive)
			}
			if result, err := Run(t.Context(), o); !errors.Is(err, errCut) || result.Records != 1200 {
				t.Fatalf("%+v, %v", result, err)
			}
			// Interrupt the conversion.
			o = options()
			ctx, cancel := context.WithCancel(t.Context())
			o.Converted = func(int) { cancel() }
			if result, err := Run(ctx, o); !errors.Is(err, context.Canceled) || result.Records != total || !result.Resumed {
				t.Fatalf("%+v, %v", result, err)
			}
			if left, _ := filepath.Glob(path + "*"); !cmp.Equal(left, []string{path + ".part", path + ".part.json"}) {
				t.Errorf("there are %v", left)
			}
			// A killed run also leaves half of the converted file.
			if err := os.WriteFile(path+".part.out", []byte(strings.Repeat("half", 1<<20)), 0o600); err != nil {
				t.Fatal(err)
			}
			part, state := read(t, path+".part"), read(t, path+".part.json")
			o = options()
			o.Fetch = func(context.Context, string, int, func(client.RawPage) error) error {
				return errors.New("the list is whole, and is read again")
			}
			again := func(what string) {
				t.Helper()
				if o.Query.Format != NDJSON {
					o.Columns = columns.NewSet(nil, false)
				}
				result, err := Run(t.Context(), o)
				if err != nil || result.Records != total || result.Bytes != int64(len(want)) {
					t.Fatalf("%s: %+v, %v", what, result, err)
				}
				if !bytes.Equal(read(t, path), want) {
					t.Errorf("%s: the file differs", what)
				}
				if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
					t.Errorf("%s: files left: %v", what, left)
				}
				if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
					t.Errorf("%s: %v, %v", what, info.Mode(), err)
				}
			}
			again("killed in the conversion")
			// A run that is killed after the rename leaves the part files.
			for name, content := range map[string][]byte{path + ".part": part, path + ".part.json": state} {
				if err := os.WriteFile(name, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			again("killed after the rename")
			// The part file has the unconverted list, so the next run can use another format.
			for name, content := range map[string][]byte{path + ".part": part, path + ".part.json": state} {
				if err := os.WriteFile(name, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, o.Query.Format, o.Columns = part, NDJSON, nil
			again("another format")
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestNoConversion checks that Run refuses an unsupported conversion before it reads a page. The error about a bad
// record has the record's number.
func TestNoConversion(t *testing.T) {
	for _, tt := range []struct {
		query Query
		set   *columns.Set
		want  string
	}{
		{query(PageViews, Parquet), nil, "no way to write page-views as parquet"},
		{query(Entries, NDJSON), columns.NewSet(nil, false), "no way to write entries as ndjson with columns"},
		{query(Events, Parquet), columns.NewSet(nil, false), "no way to write events as parquet with columns"},
	} {
		if _, err := Run(t.Context(), Options{Query: tt.query, Columns: tt.set}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	_, err := Run(t.Context(), Options{Query: query(Entries, Parquet), PageSize: 9, Stream: &bytes.Buffer{},
		Fetch: func(_ context.Context, _ string, _ int, receive func(client.RawPage) error) error {
			return receive(client.RawPage{Body: strings.NewReader(record(1) + `{"created_at":"soon"}` + "\n")})
		}})
	if err == nil || !strings.Contains(err.Error(), "record 2: ") {
		t.Error(err)
	}
}

// TestRecordsOfAnOlderService checks that a field that may be null is empty if a service does not send it. A record that
// lacks another field is an error.
func TestRecordsOfAnOlderService(t *testing.T) {
	names := fieldsOf[Experiments]
	for without, says := range map[string]string{"winner_variant": "", "impact_metrics": "", "flowId": "it has no flowId"} {
		record := map[string]any{}
		for _, name := range names {
			record[name] = "x"
		}
		delete(record, without)
		line, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		cells, err := cellsOf(nil, line, names)
		if says != "" {
			if err == nil || err.Error() != says {
				t.Errorf("without %s: %v; want %q", without, err, says)
			}
			continue
		}
		if at := slices.Index(names, without); err != nil || cells[at] != "" || cells[at-1] != "x" {
			t.Errorf("without %s: %q, %v", without, cells, err)
		}
	}
}

// TestEventsHaveAllFields checks that an export has the fields of an event of the feed, except event_key.
func TestEventsHaveAllFields(t *testing.T) {
	if diff := cmp.Diff(fields.Names[client.ChangedEvent](), append(slices.Clip(fieldsOf[Events]), "event_key")); diff != "" {
		t.Error(diff)
	}
}
