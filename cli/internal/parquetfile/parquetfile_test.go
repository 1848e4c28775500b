package parquetfile_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/lectern-dev/lectern/cli/internal/columns"
	"github.com/lectern-dev/lectern/cli/internal/parquetfile"
)

type row struct {
	Z    int64   `parquet:"z"`
	Data *string `parquet:"entry_data,optional"`
	A    *string `parquet:"a,optional,dict"`
}

// written returns a Parquet file with the rows.
func written(t *testing.T, set *columns.Set, rows []row) []byte {
	t.Helper()
	var file bytes.Buffer
	w := parquetfile.NewWriter(&file, set, func(r *row) *string { return r.Data })
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func opened(t *testing.T, file []byte) *parquet.File {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func rowsOf(t *testing.T, file []byte) (all []row) {
	t.Helper()
	for some, err := range parquetfile.Rows[row](bytes.NewReader(file)) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

func TestFilesHaveTheColumnsOfTheirRows(t *testing.T) {
	data := []string{
		`{"What's your name?":"Zoë\u0000","a, b":1.5,"ok":true,"at":"2026-01-02T03:04:05.000006Z","o":{"x":[1]}}`,
		`{"What's your name?":null,"ok":false}`, `[]`, `{"Z":"other"}`,
	}
	set := columns.NewSet(nil, false)
	var rows []row
	for i, d := range data {
		set.Observe(d)
		rows = append(rows, row{Z: int64(i), Data: &d})
	}
	rows = append(rows, row{Z: 9, A: new("no data")})
	file := written(t, set, rows)
	f := opened(t, file)
	var names []string
	for _, c := range f.Schema().Fields() {
		names = append(names, c.Name())
	}
	if diff := cmp.Diff([]string{"z", "entry_data", "a", "What's your name?", "a, b", "ok", "at", "o", "Z"}, names); diff != "" {
		t.Error(diff)
	}
	all, err := parquet.Read[any](bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	want := []any{
		map[string]any{"z": int64(0), "entry_data": data[0], "a": nil, "What's your name?": "Zoë\x00", "a, b": 1.5, "ok": true, "at": int64(1767323045000006), "o": `{"x":[1]}`, "Z": nil},
		map[string]any{"z": int64(1), "entry_data": data[1], "a": nil, "What's your name?": nil, "a, b": nil, "ok": false, "at": nil, "o": nil, "Z": nil},
	}
	if diff := cmp.Diff(want, all[:2]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(rows, rowsOf(t, file)); diff != "" {
		t.Error(diff)
	}
}

func TestRowGroups(t *testing.T) {
	set := columns.NewSet(nil, false)
	rows := make([]row, 3*parquetfile.RowGroup/2)
	for i := range rows {
		d := fmt.Sprintf(`{"k%d":%d}`, i%20, i)
		set.Observe(d)
		rows[i] = row{Z: int64(i), Data: &d}
	}
	file := written(t, set, rows)
	f := opened(t, file)
	if groups := f.RowGroups(); len(groups) != 2 || groups[0].NumRows() != parquetfile.RowGroup {
		t.Errorf("%d row groups, the first of %d rows", len(groups), groups[0].NumRows())
	}
	if diff := cmp.Diff(rows, rowsOf(t, file)); diff != "" {
		t.Error(diff)
	}
}

// TestRowGroupsOfLongData checks that long data ends a row group early, because the writer holds a row group in memory.
func TestRowGroupsOfLongData(t *testing.T) {
	noise := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{})
	var file bytes.Buffer
	w := parquetfile.NewWriter(&file, nil, func(r *row) *string { return r.Data })
	for i := range 40 {
		_, _ = random.Read(noise) // ChaCha8.Read never fails
		if err := w.Write([]row{{Z: int64(i), Data: new(string(noise))}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f := opened(t, file.Bytes())
	var rows []int64
	for _, g := range f.RowGroups() {
		rows = append(rows, g.NumRows())
	}
	if diff := cmp.Diff([]int64{32, 8}, rows); diff != "" {
		t.Error(diff)
	}
}
