package read_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// TestSync: the flags reach the copy, and the exit codes and messages are those of the help. The copies themselves are
// tested in the package copiestest.
func TestSync(t *testing.T) {
	t.Parallel()
	s, environ := clitest.Entries(t)
	environ["LECTERN_SYNC_TO"] = clitest.Warehouse(t)
	s.MustIngest(t, "entries", `{"entry_id":"en_1","group_id":"g","project_id":"pr_1","embeddable_id":"m","contact_id":"c","created_at":"2024-01-01T00:00:00Z","updated_at":"2024-01-01T00:00:00Z","entry_data":"{\"a\":\"\\u0000\"}"}`)

	r := clitest.Run(t, "", environ, "sync", "--schema", "shop")
	if r.Code != shell.ExitOK || r.Out != "" || !strings.Contains(r.Err, "Copied 1 change (") || !strings.Contains(r.Err, "The schema shop of database") ||
		!strings.Contains(r.Err, "1 entry has data that jsonb cannot hold") {
		t.Errorf("%+v", r)
	}
	conn := pgtest.Connect(t, environ["LECTERN_SYNC_TO"])
	var text string
	if err := conn.QueryRow(t.Context(), `SELECT entry_data_text FROM shop.entries`).Scan(&text); err != nil || text != `{"a":"\u0000"}` {
		t.Errorf("%q, %v", text, err)
	}
	folder := filepath.Join(t.TempDir(), "shop")
	if r := clitest.Run(t, "", environ, "sync", "--quiet", "--to", "file://"+folder); r.Code != shell.ExitOK || r.Err != "" {
		t.Errorf("%+v", r)
	}
	var manifest struct{ Entries []any }
	if data, err := os.ReadFile(filepath.Join(folder, "manifest.json")); err != nil || json.Unmarshal(data, &manifest) != nil || len(manifest.Entries) != 1 {
		t.Errorf("%v, %+v; want one file", err, manifest)
	}

	list := clitest.File(t, "columns.json", `[{"key":"a","name":"first"}]`)
	if r := clitest.Run(t, "", environ, "sync", "--schema", "listed", "--columns", list); r.Code != shell.ExitOK {
		t.Errorf("%+v", r)
	}
	if err := conn.QueryRow(t.Context(), `SELECT name FROM listed.lectern_columns`).Scan(&text); err != nil || text != "first" {
		t.Errorf("%q, %v", text, err)
	}
	clitest.Write(t, list, `[{"key":"a","type":"int"}]`)

	if r := clitest.Run(t, "", environ, "sync", "--schema", "shop", "--verify"); r.Code != shell.ExitOK || r.Out != "" || !strings.Contains(r.Err, "equals its source") {
		t.Errorf("%+v", r)
	}
	if _, err := conn.Exec(t.Context(), `DELETE FROM shop.entries`); err != nil {
		t.Fatal(err)
	}
	const missing = `{"fault":"missing","change":"entry","key":"en_1"}` + "\n"
	if r := clitest.Run(t, "", environ, "sync", "--schema", "shop", "--verify"); r.Code != shell.ExitFailure || r.Out != missing || !strings.Contains(r.Err, ": 1 missing; to mend it") {
		t.Errorf("%+v", r)
	}
	address := freeAddress(t)
	sync := clitest.Begin(t, environ, "sync", "--schema", "shop", "--follow", "--metrics-address", address)
	eventually.True(t, "the metric of the difference", func() bool {
		_, text := scrape(t, "http://"+address+"/metrics")
		n, _ := metricOf(t, text, "lectern_sync_differences")
		return n == 1
	})
	sync.Stop(t)
	if r := clitest.Run(t, "", environ, "sync", "--schema", "shop", "--verify", "--repair"); r.Code != shell.ExitOK || r.Out != missing || !strings.Contains(r.Err, "It is mended.") {
		t.Errorf("%+v", r)
	}

	for _, tt := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"a repair of nothing", []string{"--repair"}, shell.ExitUsage, "allowed are"},
		{"a wrong file of columns", []string{"--columns", list}, shell.ExitUsage, `the type "int"; allowed: text, double, integer, boolean, timestamp, date`},
		{"other columns", []string{"--schema", "listed"}, shell.ExitFailure, "give --columns as before"},
		{"another project's key", []string{"--project", "pr_2", "--schema", "other"}, shell.ExitFailure, "check the key"},
		{"another project's copy", []string{"--project", "pr_2", "--schema", "shop"}, shell.ExitFailure, `a copy of project "pr_1", not of "pr_2"`},
		{"no Postgres", []string{"--to", "postgres://u:secret-1@127.0.0.1:1/d"}, shell.ExitFailure,
			"database=d`: 127.0.0.1:1 (127.0.0.1): dial error: dial tcp 127.0.0.1:1: connect: connection refused; nothing listens there"},
	} {
		r := clitest.Run(t, "", environ, append([]string{"sync"}, tt.args...)...)
		if r.Code != tt.code || !strings.Contains(r.Err, tt.says) || strings.Contains(r.Err, "secret-1") {
			t.Errorf("%s: %+v; want %d and %q", tt.name, r, tt.code, tt.says)
		}
	}
}
