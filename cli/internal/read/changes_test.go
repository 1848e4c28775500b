package read_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// copied is the copy that a reader of the feed builds.
type copied struct {
	entries map[string]string            // by entry id
	events  map[string]map[string]string // by entry id, then event key
}

// copyOf does with lines of the feed what docs/reference/api.md says.
func copyOf(t *testing.T, feed []byte) copied {
	t.Helper()
	c := copied{map[string]string{}, map[string]map[string]string{}}
	for line := range bytes.Lines(feed) {
		var change struct {
			Change  string
			Entry   json.RawMessage
			Event   json.RawMessage
			EntryID string `json:"entry_id"`
		}
		if json.Unmarshal(line, &change) != nil {
			continue // a killed follower left it
		}
		switch change.Change {
		case "entry":
			id := clitest.Decode[struct {
				EntryID string `json:"entry_id"`
			}](t, string(change.Entry)).EntryID
			c.entries[id] = string(change.Entry)
		case "event":
			e := clitest.Decode[struct {
				EntryID  string `json:"entry_id"`
				EventKey string `json:"event_key"`
			}](t, string(change.Event))
			if c.events[e.EntryID] == nil {
				c.events[e.EntryID] = map[string]string{}
			}
			c.events[e.EntryID][e.EventKey] = string(change.Event)
		case "entry_removed":
			delete(c.entries, change.EntryID)
			delete(c.events, change.EntryID)
		default:
			t.Errorf("an unknown change: %s", line)
		}
	}
	return c
}

// A follower that is killed again and again leaves nothing out: its file gives the copy that the service has.
func TestChangesKilledAndFollowedLoseNothing(t *testing.T) {
	t.Parallel()
	s, environ := clitest.Entries(t)
	folder := t.TempDir()
	file, cursor := filepath.Join(folder, "changes.ndjson"), filepath.Join(folder, "cursor")
	follow := func() *clitest.Process {
		out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		return clitest.StartTo(t, out, "changes", "--follow", "--url", s.URL, "--api-key", environ["LECTERN_API_KEY"], "--cursor-file", cursor, "--page-size", "20")
	}
	contents := func() []byte {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}

	process := follow()
	for round := range 5 {
		var batch, events []any
		for i := range 40 {
			id := fmt.Sprint("e", i*(round%3+1)) // some anew, some again
			batch, events = append(batch, clitest.Entry(id, round)), append(events, clitest.Event(id, round))
		}
		size := len(contents())
		s.MustIngest(t, "events", events...)
		s.MustIngest(t, "entries", batch...)
		eventually.True(t, "the follower writes", func() bool { return len(contents()) > size })
		process.End(t, syscall.SIGKILL)
		process = follow()
	}
	want := copyOf(t, []byte(clitest.Must(t, environ, "", "changes")))
	eventually.True(t, "the follower has all", func() bool { return reflect.DeepEqual(want, copyOf(t, contents())) })
	if bytes.Contains(contents(), []byte("\n\n")) {
		t.Error("the follower wrote an empty line")
	}
	exported := map[string]string{}
	for line := range strings.Lines(clitest.Must(t, environ, "", "export", "entries")) {
		exported[clitest.Decode[struct {
			EntryID string `json:"entry_id"`
		}](t, line).EntryID] = strings.TrimSuffix(line, "\n")
	}
	if diff := cmp.Diff(exported, want.entries); diff != "" {
		t.Errorf("the copy is not what the list has: %s", diff)
	}

	// It waits, and gets what comes.
	s.MustIngest(t, "entries", clitest.Entry("late", 1))
	eventually.True(t, "the late entry", func() bool { return bytes.Contains(contents(), []byte(`"late"`)) })
	process.End(t, syscall.SIGTERM)
	if process.Code != shell.ExitInterrupted || !strings.Contains(process.Stderr.String(), "changes; the newest") {
		t.Errorf("ended with %d: %s", process.Code, &process.Stderr)
	}
	// The next run has nothing to add.
	if out := clitest.Must(t, environ, "", "changes", "--cursor-file", cursor); out != "" {
		t.Errorf("after all was written, there came %s", out)
	}
}

func TestChangesRefuse(t *testing.T) {
	t.Parallel()
	s, environ := clitest.Entries(t)
	s.MustIngest(t, "entries", clitest.Entry("a", 1))
	other := maps.Clone(environ)
	other["LECTERN_PROJECT_ID"], other["LECTERN_API_KEY"] = "pr_2", s.Keys.Key("pr_2")
	folder := t.TempDir()
	cursor, strange, altered := filepath.Join(folder, "cursor"), filepath.Join(folder, "strange"), filepath.Join(folder, "altered")
	if out := clitest.Must(t, environ, "", "changes", "--cursor-file", cursor, "--types", "entry_removed,entry"); strings.Count(out, "\n") != 1 {
		t.Errorf("%s, want one change", out)
	}
	if out := clitest.Must(t, environ, "", "changes", "--cursor-file", cursor, "--types", "entry", "--types", "entry_removed"); out != "" {
		t.Errorf("the same types in another order give %s", out)
	}
	held, err := os.ReadFile(cursor)
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{strange: "AQAA", altered: strings.Replace(string(held), `"cursor": "`, `"cursor": "A`, 1)} {
		clitest.Write(t, path, content)
	}
	for _, tt := range []struct {
		name    string
		environ map[string]string
		args    []string
		code    int
		says    string
	}{
		{"another project", other, []string{"--cursor-file", cursor, "--types", "entry,entry_removed"}, shell.ExitFailure, `is of another feed (its project_id is "pr_1", not "pr_2")`},
		{"other types", environ, []string{"--cursor-file", cursor}, shell.ExitFailure, `its types is "entry,entry_removed", not ""`},
		{"no cursor file", environ, []string{"--cursor-file", strange}, shell.ExitFailure, "is no cursor file"},
		{"an altered cursor", environ, []string{"--cursor-file", altered, "--types", "entry,entry_removed"}, shell.ExitFailure, "invalid_parameter"},
		{"no such folder", environ, []string{"--cursor-file", filepath.Join(folder, "none", "c")}, shell.ExitFailure, "no such file or directory"},
	} {
		r := clitest.Run(t, "", tt.environ, append([]string{"changes"}, tt.args...)...)
		if r.Code != tt.code || !strings.Contains(r.Err, tt.says) || r.Out != "" {
			t.Errorf("%s: %+v; want %d and %q", tt.name, r, tt.code, tt.says)
		}
	}
	if b, err := os.ReadFile(cursor); err != nil || string(b) != string(held) {
		t.Errorf("a refused run changed the cursor file: %s, %v", b, err)
	}

	// Two followers with one cursor file would each skip what the other one wrote.
	locked := filepath.Join(folder, "locked")
	process := clitest.Start(t, "changes", "--follow", "--url", s.URL, "--api-key", environ["LECTERN_API_KEY"], "--cursor-file", locked)
	eventually.True(t, "the cursor file", func() bool { _, err := os.Stat(locked); return err == nil })
	if r := clitest.Run(t, "", environ, "changes", "--cursor-file", locked); r.Code != shell.ExitFailure || !strings.Contains(r.Err, "another process follows") {
		t.Errorf("%+v", r)
	}
	process.End(t, os.Interrupt)
	clitest.Must(t, environ, "", "changes", "--cursor-file", locked)
}

// The export of all events has what reading entry by entry gives, and import takes it back.
func TestExportedEventsEqualThoseOfEachEntry(t *testing.T) {
	t.Parallel()
	s, environ := clitest.Entries(t)
	var events []any
	for i := range 12 {
		id := fmt.Sprint("e", i)
		s.MustIngest(t, "entries", clitest.Entry(id, i))
		for n := range i % 4 {
			events = append(events, clitest.Event(id, n))
		}
	}
	s.MustIngest(t, "events", events...)
	want := map[string]int{}
	for i := range 12 {
		for _, event := range clitest.Decode[[]map[string]any](t, clitest.Must(t, environ, "", "get", "events", fmt.Sprint("e", i), "--limit", "100", "-o", "json")) {
			want[fmt.Sprint(event)]++
		}
	}
	if len(want) != len(events) {
		t.Fatalf("%d events are read, want %d", len(want), len(events))
	}
	file := filepath.Join(t.TempDir(), "events.ndjson")
	clitest.Must(t, environ, "", "export", "events", "--page-size", "7", "--out", file)
	exported, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for line := range strings.Lines(string(exported)) {
		event := clitest.Decode[map[string]any](t, line)
		if event["url"] != "https://example.com/?a=1&b=2" || event["event_id"] == nil {
			t.Errorf("%s: want its url and event_id", line)
		}
		delete(event, "url")
		delete(event, "event_id")
		got[fmt.Sprint(event)]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r := clitest.Run(t, string(exported), environ, "import", "events", "-"); !strings.Contains(r.Err, fmt.Sprintf("0 new, 0 changed, %d unchanged, 0 rejected", len(events))) {
		t.Errorf("%+v", r)
	}
	table := clitest.Must(t, environ, "", "export", "events", "-o", "csv", "--limit", "15", "--page-size", "7")
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil || len(rows) != 16 || len(rows[0]) != 20 || rows[1][19] != "https://example.com/?a=1&b=2" || rows[1][16] != "a, <b>" || rows[1][7] != "" {
		t.Errorf("%d rows, %v: %s", len(rows), err, table)
	}
	if r := clitest.Run(t, table, environ, "import", "events", "-"); !strings.Contains(r.Err, "0 new, 0 changed, 15 unchanged, 0 rejected") {
		t.Errorf("%+v", r)
	}
}
