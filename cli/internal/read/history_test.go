package read_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
