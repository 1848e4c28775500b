package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A person on a terminal gets a table, and a pipe gets NDJSON.
func TestOutput(t *testing.T) {
	t.Parallel()
	const list = `[{"id":"a","project_id":"p","n":1.50,"data":{"x": [1]},"none":null},{"id":"b\u001b[31m\n","n":2,"data":"` + long + `"}]`
	for _, tt := range []struct {
		name  string
		flag  string
		width int
		in    string
		want  string
	}{
		{"a list into a pipe", "", 0, list, `{"id":"a","project_id":"p","n":1.50,"data":{"x":[1]},"none":null}` + "\n" + `{"id":"b\u001b[31m\n","n":2,"data":"` + long + `"}` + "\n"},
		{"a list on a terminal", "", 80, list, "" +
			"ID       N     DATA                                      NONE\n" +
			"a        1.50  {\"x\": [1]}                                -\n" +
			"b [31m   2     " + long[:39] + "…  -\n"},
		{"a list on a narrow terminal", "", 20, list, "ID       N     DATA…\na        1.50  {\"x\"…\nb [31m   2     0123…\n"},
		{"wide characters and combining marks", "", 80, `[{"name":"張三","id":1},{"name":"Zoe\u0308","id":2},{"name":"` + strings.Repeat("語", 30) + `","id":3}]`, "" +
			"NAME                                     ID\n" +
			"張三                                     1\n" +
			"Zoe\u0308                                      2\n" +
			strings.Repeat("語", 19) + "…  3\n"},
		{"wide characters on a narrow terminal", "", 8, `[{"name":"張三李四","id":1}]`, "NAME   …\n張三李…\n"},
		{"a table into a pipe", "table", 0, `[{"a":"` + long + `"}]`, "A\n" + long + "\n"},
		{"a record into a pipe", "", 0, "{\"a\":1,\n \"b\":null}", `{"a":1,"b":null}` + "\n"},
		{"a record on a terminal", "", 80, `{"id":"a","b":null}`, "id  a\nb   -\n"},
		{"as json", "json", 80, `[{"a":1.50}]`, "[\n  {\n    \"a\": 1.50\n  }\n]\n"},
		{"nothing", "", 0, "[]\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs strings.Builder
			s := &Session{Context: context.Background(), Out: &out, Err: &errs, Width: tt.width}
			if err := (outputFlags{Output: tt.flag}).print(s, []byte(tt.in)); err != nil || errs.Len() > 0 {
				t.Fatal(err, errs.String())
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const long = "0123456789012345678901234567890123456789012345678901234567890123456789"

// A binary format never reaches a terminal.
func TestNoParquetOnTerminal(t *testing.T) {
	t.Parallel()
	a := newAPI(t, 3)
	export := func(width int, args ...string) result {
		var out, errs strings.Builder
		code := Main(&Session{Context: t.Context(), In: strings.NewReader(""), Out: &out, Err: &errs, Environ: a.environ(), Width: width},
			append([]string{"export", "entries", "-o", "parquet", "--quiet"}, args...))
		return result{code, out.String(), errs.String()}
	}
	if r := export(80); r.code != exitUsage || r.out != "" || !strings.Contains(r.err, "parquet was asked for on a terminal; allowed: ndjson, csv") {
		t.Errorf("%+v", r)
	}
	if r := export(0); r.code != exitOK || !strings.HasPrefix(r.out, "PAR1") {
		t.Errorf("%+v", r)
	}
	file := filepath.Join(t.TempDir(), "entries")
	if r := export(80, "--out", file); r.code != exitOK {
		t.Errorf("%+v", r)
	}
	if b, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(b), "PAR1") {
		t.Error(err)
	}
}
