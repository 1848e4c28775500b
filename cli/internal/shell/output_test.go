package shell

import (
	"context"
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
			if err := (OutputFlags{Output: tt.flag}).Print(s, []byte(tt.in)); err != nil || errs.Len() > 0 {
				t.Fatal(err, errs.String())
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const long = "0123456789012345678901234567890123456789012345678901234567890123456789"
