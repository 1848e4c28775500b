package pagelist

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStatements(t *testing.T) {
	one := Keyset{Table: "t", Columns: "id, title", Key: "id", Where: "p = $1 AND {range}"}
	two := Keyset{Table: "t", Columns: "at, id,\n title", Key: "at, id", Where: "p = $1 AND q = $2 AND s = {1} AND {range} AND u < {2}",
		Parent: "SELECT q FROM parents WHERE p = $1 AND q = $2"}
	for _, tt := range []struct {
		name string
		in   Statements
		want Statements
	}{
		{"one column, ascending", one.Statements(false), Statements{
			Chunk: "SELECT id, title\nFROM t\nWHERE p = $1 AND id > $2 AND id <= $3\nORDER BY id LIMIT $4",
			Nth:   "SELECT id\nFROM t\nWHERE p = $1 AND id > $2 AND id <= $3\nORDER BY id OFFSET $4 LIMIT 2",
			Last:  "SELECT id\nFROM t\nWHERE p = $1 AND id > $2 AND id <= $3\nORDER BY id DESC LIMIT 1",
		}},
		{"two columns, a filter and a parent, descending", two.Orders().In(true), Statements{
			First: "SELECT v.at, v.id, v.title\nFROM (SELECT q FROM parents WHERE p = $1 AND q = $2) e\nLEFT JOIN (\n" +
				"SELECT at, id,\n title\nFROM t\nWHERE p = $1 AND q = $2 AND s = $8 AND (at, id) < ($3, $4) AND (at, id) >= ($5, $6) AND u < $9\n" +
				"ORDER BY at DESC, id DESC LIMIT $7\n) v ON true\nORDER BY v.at DESC, v.id DESC",
			Chunk: "SELECT at, id,\n title\nFROM t\nWHERE p = $1 AND q = $2 AND s = $8 AND (at, id) < ($3, $4) AND (at, id) >= ($5, $6) AND u < $9\n" +
				"ORDER BY at DESC, id DESC LIMIT $7",
			Nth: "SELECT at, id\nFROM t\nWHERE p = $1 AND q = $2 AND s = $8 AND (at, id) < ($3, $4) AND (at, id) >= ($5, $6) AND u < $9\n" +
				"ORDER BY at DESC, id DESC OFFSET $7 LIMIT 2",
			Last: "SELECT at, id\nFROM t\nWHERE p = $1 AND q = $2 AND s = $7 AND (at, id) < ($3, $4) AND (at, id) >= ($5, $6) AND u < $8\n" +
				"ORDER BY at, id LIMIT 1",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.in); diff != "" {
				t.Errorf("statements (-want +got):\n%s", diff)
			}
		})
	}
}
