package copiestest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/internal/copytest"
	"github.com/lectern-dev/lectern/copies/push"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// TestUpgrades checks that copies in Postgres, and states of Singer and Airbyte, of each released version go on.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	copytest.CheckUpgrades(t, "postgres", func(t *testing.T) copytest.Stored { return newDatabase(t) })
	for name, p := range protocols {
		copytest.CheckUpgrades(t, strings.ToLower(name), func(t *testing.T) copytest.Stored { return newProgram(t, p) })
	}
}

// Save writes a dump of the copy into a folder.
func (d *database) Save(t *testing.T, folder string) {
	t.Helper()
	write(t, filepath.Join(folder, "copy.sql"), pgtest.Client(t, "pg_dump", "--no-owner", "--no-privileges", "--schema", `"Copy of shop"`, d.url))
}

// Load replaces the copy by a dump.
func (d *database) Load(t *testing.T, folder string) {
	t.Helper()
	d.exec(t, `DROP SCHEMA "Copy of shop" CASCADE`)
	pgtest.Client(t, "psql", "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", filepath.Join(folder, "copy.sql"), d.url)
}

// Save writes the state that the program keeps into a folder.
func (d *program) Save(t *testing.T, folder string) {
	t.Helper()
	write(t, filepath.Join(folder, "state.json"), d.state.Raw+"\n")
}

// Load replaces the state that the program keeps.
func (d *program) Load(t *testing.T, folder string) {
	t.Helper()
	state, err := os.ReadFile(filepath.Join(folder, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	d.state = gjson.ParseBytes(state)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPushStateOfAVersion checks that a state of push goes on as version 0.1.0 stores it in a table, with all options that
// the state keeps.
func TestPushStateOfAVersion(t *testing.T) {
	t.Parallel()
	d, from := newDatabase(t), copytest.NewSource(t).Is()
	d.exec(t, `CREATE SCHEMA shop; CREATE TABLE shop.push_state (id integer PRIMARY KEY CHECK (id = 1), state text NOT NULL);
		INSERT INTO shop.push_state VALUES (1, '{"url": "`+from.URL+`", "project_id": "`+from.ProjectID+`", "cursor": "20", "seq": 20, "types": "entry,event",
		"masked": "{\"without\":[\"url\"]}", "from": "now", "stopped_at": "2026-11-29T05:00:00Z"}')`)
	mask, err := copies.NewMask([]string{"url"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	as := push.Options{URL: "http://127.0.0.1:1", Secret: push.Secret(make([]byte, 32)), Source: from, State: d.url, Schema: "shop",
		Types: []client.ChangeType{client.EventAdded, client.EntryChanged}, Mask: mask, From: "now", Resume: true}
	for _, tt := range []struct {
		change func(*push.Options)
		says   string
	}{
		{func(*push.Options) {}, ""},
		{func(o *push.Options) { o.Types = nil }, `the state is one with --types "entry,event"`},
		{func(o *push.Options) { o.Mask = nil }, `the copy has {"without":["url"]}`},
		{func(o *push.Options) { o.From = "beginning" }, `started at "now"`},
		{func(o *push.Options) { o.Resume = false }, "since 2026-11-29T05:00:00Z"},
		{func(o *push.Options) { o.Source.ProjectID = "pr_2" }, `of project "pr_1"`},
	} {
		o := as
		tt.change(&o)
		to, err := push.New(o)
		if err != nil {
			t.Fatal(err)
		}
		at, err := to.Open(t.Context())
		if err == nil {
			err = to.Close()
		}
		if tt.says == "" && (err != nil || at.Seq != 20 || at.Cursor != "20") || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%+v, %v; want %q", at, err, tt.says)
		}
	}
}
