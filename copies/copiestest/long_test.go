package copiestest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/fields"
	"github.com/lectern-dev/lectern/copies/files"
	"github.com/lectern-dev/lectern/copies/internal/copytest"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// cached returns a folder that outlives the test, made by a command if it is missing.
func cached(t *testing.T, name string, make func(folder string) *exec.Cmd) string {
	t.Helper()
	needs.Long(t)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "lectern-tests", name)
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	unfinished, err := os.MkdirTemp(filepath.Dir(folder), name+".*")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := make(unfinished).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	if err := os.Rename(unfinished, folder); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	return folder
}

// duckDB runs statements and returns the rows of the last one, by a program that is not ours.
func duckDB(t *testing.T, statements ...string) (rows []row) {
	t.Helper()
	folder := cached(t, "duckdb-1.5.6", func(folder string) *exec.Cmd {
		cmd := exec.Command("npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "@duckdb/node-api@1.5.6-r.1")
		return cmd
	})
	const script = `
const { DuckDBInstance } = require('@duckdb/node-api');
(async () => {
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  let rows = [];
  for (const sql of JSON.parse(require('fs').readFileSync(0, 'utf8')))
    rows = (await connection.runAndReadAll(sql)).getRowObjectsJson();
  process.stdout.write(JSON.stringify(rows));
})().catch(e => { console.error(e.message); process.exit(1); });`
	in, err := json.Marshal(statements)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "-e", script)
	cmd.Dir = folder
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("duckdb: %v: %s", err, stderr.String())
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// statements returns those of the block in docs/how-to/sync.md that sets a variable, for the copy at a place.
func statements(t *testing.T, variable, place string) []string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/how-to/sync.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sql, found := strings.Cut(string(doc), "```sql\nSET VARIABLE "+variable)
	if !found {
		t.Fatalf("docs/how-to/sync.md has no block for %s", variable)
	}
	sql, _, _ = strings.Cut("SET VARIABLE "+variable+sql, "```")
	sql = strings.Replace(sql, "/data/shop/", place+"/", 1)
	return strings.Split(strings.TrimSuffix(strings.TrimSpace(sql), ";"), ";\n")
}

// read returns what the documented views show of the copy at a place.
func read(t *testing.T, place string) copytest.Tables {
	t.Helper()
	all := copytest.NewTables("entries", "events")
	for name, replace := range map[string]string{
		"entries": "epoch_us(created_at) AS created_at, epoch_us(updated_at) AS updated_at", "events": `epoch_us("timestamp") AS "timestamp"`,
	} {
		sql := fmt.Sprintf(`SELECT to_json(t)::VARCHAR AS line FROM (SELECT * REPLACE (%s) FROM %s) AS t`, replace, name)
		for _, r := range duckDB(t, append(statements(t, "copy", place), sql)...) {
			one := asRow(t, r["line"].(string))
			for column := range one { // without those of entry_data
				if name == "entries" && column != "seq" && !slices.Contains(fields.Names[client.Entry](), column) {
					delete(one, column)
				}
			}
			all.Add(t, name, one, nil)
		}
	}
	return all
}

func TestLongDuckDBReadsTheCopyByTheDocumentedViews(t *testing.T) {
	duckDB(t, "SELECT 1")
	s, path := copytest.NewSource(t), filepath.Join(t.TempDir(), "copy of shop")
	sync := func() {
		t.Helper()
		to := files.Folder(path, files.Options{Source: s.Is(), Columns: columns.Choice{All: true}})
		if _, err := s.Sync(t.Context(), copytest.Small(to), nil); err != nil {
			t.Fatal(err)
		}
		copytest.Equal(t, s.Tables(t), read(t, path), true)
	}
	sync() // a copy of nothing has columns too
	s.Fill(0, 60)
	s.Put(copytest.Entry("odd", 1, `{"a":"\u0000\ud800","b":1e200000}`))
	sync()
	s.Put(copytest.Entry("en_1", 900, `{"again":true}`))
	s.Remove(client.Erased, "en_2", "never came")
	s.Remove(client.Purged, "en_4")
	s.Put(copytest.Entry("en_4", 901, `{"back":1}`), copytest.Event("en_4", 8))
	sync()
	got := duckDB(t, append(append(statements(t, "copy", path), statements(t, "survey_files", "")...), `SELECT entry_id, n, price, again, back, typeof(n) AS type FROM survey
		WHERE entry_id IN ('en_1', 'en_3', 'en_4') ORDER BY entry_id`)...)
	want := []row{
		{"entry_id": "en_1", "n": nil, "price": nil, "again": true, "back": nil, "type": "DOUBLE"},
		{"entry_id": "en_3", "n": 3.0, "price": 1.5, "again": nil, "back": nil, "type": "DOUBLE"},
		{"entry_id": "en_4", "n": nil, "price": nil, "again": nil, "back": 1.0, "type": "DOUBLE"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +DuckDB: %s", diff)
	}
}
