package read_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/client/clienttest"
)

// TestHistoryLost checks that readers stop where the source was restored from a backup, and say how to go on. The restored
// source is read before and after it has new changes.
func TestHistoryLost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, again string // what the user is told to do
		args        func(position string) []string
		reset       func(position string) []string
	}{
		{"changes", "remove that file, and run the command again",
			func(file string) []string { return []string{"changes", "--cursor-file", file} },
			func(file string) []string { return []string{"changes", "--cursor-file", file + ".new"} }},
		{"singer", "run once with --reset-state",
			func(file string) []string { return []string{"singer", "--state", file} },
			func(file string) []string { return []string{"singer", "--state", file, "--reset-state"} }},
		{"airbyte", "run once with --reset-state",
			func(file string) []string { return []string{"airbyte", "read", "--state", file} },
			func(file string) []string { return []string{"airbyte", "read", "--state", file, "--reset-state"} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			api := clienttest.New(clienttest.Data{})
			defer api.Close()
			environ := map[string]string{"LECTERN_URL": api.URL, "LECTERN_PROJECT_ID": "pr_1", "LECTERN_API_KEY": "key"}
			put := func(id string) {
				api.AddChanges(client.Change{Type: client.EntryChanged, Entry: &client.Entry{EntryID: id, ProjectID: "pr_1"}})
			}
			position := filepath.Join(t.TempDir(), "position.json")
			if tt.name != "changes" {
				clitest.Write(t, position, "{}")
			}
			put("kept")
			var backup clienttest.Data
			api.Update(func(d *clienttest.Data) { backup = *d })
			put("lost") // its number is 20
			out := clitest.Must(t, environ, "", tt.args(position)...)
			if tt.name != "changes" {
				for line := range strings.Lines(out) {
					if gjson.Get(line, "type").String() == "STATE" {
						clitest.Write(t, position, gjson.Get(line, map[string]string{"singer": "value", "airbyte": "state"}[tt.name]).Raw)
					}
				}
			}
			before, err := os.ReadFile(position)
			if err != nil {
				t.Fatal(err)
			}
			api.Update(func(d *clienttest.Data) { *d = backup })
			for _, stretch := range []string{"after 10,", "after 10 and before 1000,"} {
				r := clitest.Run(t, "", environ, tt.args(position)...)
				if r.Code != shell.ExitHistoryLost || !strings.Contains(r.Err, "has lost its changes "+stretch) || !strings.Contains(r.Err, tt.again) || strings.Count(r.Err, "\n") != 1 {
					t.Errorf("%d: %s", r.Code, r.Err)
				}
				api.Update(func(d *clienttest.Data) { d.Lost = []clienttest.Stretch{{After: 10, Until: 1000}} })
				put("new")
			}
			if after, err := os.ReadFile(position); err != nil || string(after) != string(before) {
				t.Errorf("%v: the position became %s", err, after)
			}
			if out := clitest.Must(t, environ, "", tt.reset(position)...); !strings.Contains(out, `"kept"`) || !strings.Contains(out, `"new"`) || strings.Contains(out, `"lost"`) {
				t.Errorf("read again: %s", out)
			}
		})
	}
}

// TestSyncMendsLostHistory checks what the command says when its source has lost changes, and that the rows it puts aside are
// an import.
func TestSyncMendsLostHistory(t *testing.T) {
	t.Parallel()
	api := clienttest.New(clienttest.Data{})
	defer api.Close()
	folder := t.TempDir()
	environ := map[string]string{"LECTERN_URL": api.URL, "LECTERN_PROJECT_ID": "pr_1", "LECTERN_API_KEY": "key"}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	put := func(ids ...string) {
		for _, id := range ids {
			api.AddChanges(client.Change{Type: client.EntryChanged, Entry: &client.Entry{EntryID: id, GroupID: "g", ProjectID: "pr_1", EmbeddableID: "m", ContactID: "c", CreatedAt: at, UpdatedAt: at, Data: "{}"}},
				client.Change{Type: client.EventAdded, Event: &client.ChangedEvent{EventKey: id, Event: client.Event{EntryID: id, GroupID: "g", ProjectID: "pr_1", EmbeddableID: "m", ContactID: "c", EventType: "x", Timestamp: at}}})
		}
	}
	put("kept", "erased")
	var backup clienttest.Data
	api.Update(func(d *clienttest.Data) { backup = *d })
	put("lost")
	api.AddChanges(client.Change{Type: client.EntryRemoved, Removal: &client.Removal{EntryID: "erased", RemovedAt: at, Reason: client.Erased}})
	args := []string{"sync", "--to", "file://" + folder}
	clitest.Must(t, environ, "", args...)
	api.Update(func(d *clienttest.Data) { *d = backup })
	r := clitest.Run(t, "", environ, args...)
	for _, want := range []string{
		"Note that the source at " + api.URL + " has lost its changes after 40, for example by a restore of a backup, and the position 70 is among them.\n",
		"1 entry was removed after that, and is in the source again: erased\n", "2 rows that only the copy has are in the folder lost of folder " + folder + " now", "is current",
	} {
		if r.Code != shell.ExitOK || !strings.Contains(r.Err, want) {
			t.Errorf("%d: %s; want %s", r.Code, r.Err, want)
		}
	}
	for _, resource := range []string{"entries", "events"} {
		files, err := filepath.Glob(filepath.Join(folder, "lost", resource+"-*.ndjson"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %q", err, files)
		}
		if r := clitest.Run(t, "", environ, "import", resource, "--dry-run", files[0]); r.Code != shell.ExitOK || !strings.Contains(r.Err, "1 new, 0 changed, 0 unchanged, 0 rejected") {
			t.Errorf("%d: %s", r.Code, r.Err)
		}
	}
}
