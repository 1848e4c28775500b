package replicate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/lectern-dev/lectern/cli/internal/columns"
	"github.com/lectern-dev/lectern/cli/internal/replicate"
	"github.com/lectern-dev/lectern/cli/internal/replicate/files"
)

// smallFiles is a copy whose files are small.
type smallFiles struct{ *files.Destination }

func (smallFiles) Limits() replicate.Limits { return replicate.Limits{Changes: 20, Bytes: 8 << 10} }

// lake is a folder for a copy.
type lake struct {
	*source
	path string
}

func newLake(t *testing.T) *lake {
	t.Helper()
	return &lake{newSource(t), filepath.Join(t.TempDir(), "copy of shop")}
}

func (l *lake) open() smallFiles {
	return smallFiles{l.large()}
}

// large is a copy with columns and files of the usual size.
func (l *lake) large() *files.Destination {
	return files.Folder(l.path, files.Options{Source: l.is(), Columns: columns.Choice{All: true}})
}

func (l *lake) sync(ctx context.Context, d replicate.Destination) (replicate.Progress, error) {
	return replicate.Run(ctx, replicate.Options{Client: l.client, Source: l.is(), Destination: d, Project: true, PageSize: 7, Attempts: 1})
}

func (l *lake) mustSync(t *testing.T) replicate.Progress {
	t.Helper()
	p, err := l.sync(t.Context(), l.open())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// manifest has the fields of manifest.json that a reader of a copy needs.
type manifest struct {
	Cursor          string
	ColumnList      []columns.Column `json:"column_list"`
	Entries, Events []struct {
		Path string
		Rows int
	}
}

func (l *lake) manifest(t *testing.T) (m manifest) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(l.path, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// rowsOf reads a file by its own schema, as any reader of Parquet does.
func (l *lake) rowsOf(t *testing.T, name string, want int) (list []row) {
	t.Helper()
	all, err := parquet.ReadFile[any](filepath.Join(l.path, name))
	if err != nil || len(all) != want {
		t.Fatalf("%s: %v, %d rows of %d", name, err, len(all), want)
	}
	for _, one := range all {
		list = append(list, one.(row))
	}
	return list
}

// copied computes the current state as the views of docs/how-to/sync.md do.
func (l *lake) copied(t *testing.T) rows {
	t.Helper()
	m := l.manifest(t)
	current := rows{map[string]row{}, map[string]row{}}
	removed := map[string]int64{}
	seqOf := func(r row) int64 { n, _ := r["seq"].(int64); return n }
	for _, f := range m.Entries {
		for _, r := range l.rowsOf(t, f.Path, f.Rows) {
			id := r["entry_id"].(string)
			if r["removed"].(bool) {
				removed[id] = max(removed[id], seqOf(r))
			}
			if seqOf(r) >= seqOf(current.entries[id]) {
				current.entries[id] = r
			}
		}
	}
	for _, f := range m.Events {
		for _, r := range l.rowsOf(t, f.Path, f.Rows) {
			if key, ok := r["event_key"].(string); ok && seqOf(r) >= seqOf(current.events[key]) {
				current.events[key] = r
			}
		}
	}
	for id, r := range current.entries {
		if r["removed"].(bool) {
			delete(current.entries, id)
		}
	}
	for key, r := range current.events {
		if seqOf(r) < removed[r["entry_id"].(string)] {
			delete(current.events, key)
		}
	}
	return current
}

func (l *lake) check(t *testing.T) {
	t.Helper()
	want, got := l.records(t), l.copied(t)
	for _, all := range []map[string]row{want.entries, want.events, got.entries, got.events} {
		for _, r := range all {
			delete(r, "removed")
			delete(r, "removed_at")
			delete(r, "removal_reason")
			for _, c := range l.manifest(t).ColumnList {
				delete(r, c.Name)
			}
			for name, value := range r {
				switch v := value.(type) {
				case float64:
					r[name] = int64(v)
				case string:
					if name == "created_at" || name == "updated_at" || name == "timestamp" {
						at, err := time.Parse(time.RFC3339Nano, v)
						if err != nil {
							t.Fatal(err)
						}
						r[name] = at.UnixMicro()
					}
				}
			}
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(rows{})); diff != "" {
		t.Errorf("-source +copy: %s", diff)
	}
}

func TestFilesCopyEqualsTheSource(t *testing.T) {
	l := newLake(t)
	if p := l.mustSync(t); !p.Current {
		t.Errorf("%+v", p)
	}
	if m := l.manifest(t); len(m.Entries) != 1 || len(m.Events) != 1 { // so that readers find columns
		t.Errorf("%+v; want an empty file of each kind", m)
	}
	l.fill(t, 0, 60)
	l.MustIngest(t, "entries", entry("odd", 1, `{"a":"\u0000\ud800","b":1e200000}`))
	l.mustSync(t)
	l.check(t)
	l.MustIngest(t, "entries", entry("en_1", 900, `{"again":true}`))
	l.remove(t, "erased", "en_2", "en_3", "never came")
	l.remove(t, "purged", "en_4")
	l.MustIngest(t, "entries", entry("en_4", 901, `{"back":1}`))
	l.MustIngest(t, "events", event("en_4", 8), event("en_4", 77))
	l.mustSync(t)
	l.check(t)
	before := l.manifest(t)
	if p := l.mustSync(t); p.Changes != 0 || len(l.manifest(t).Entries) != len(before.Entries) {
		t.Errorf("%+v; want no change and no further file", p)
	}
}

// A copy is exact although its process is cut while sources write and remove, and leaves no file that is no part of it.
func TestFilesKilled(t *testing.T) {
	l := newLake(t)
	l.fill(t, 0, 100)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := range 8 {
			l.fill(t, 50+10*i, 20)
			l.remove(t, "purged", fmt.Sprintf("en_%d", 60+10*i), fmt.Sprintf("en_%d", i))
		}
	}()
	cut := 0
	for writing := true; writing; {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(10+rand.IntN(100))*time.Millisecond, errors.New("killed"))
		if _, err := l.sync(ctx, l.open()); err != nil {
			cut++
		}
		cancel()
		select {
		case <-stopped:
			writing = false
		default:
		}
	}
	t.Logf("%d runs were cut", cut)
	// These files remain of a process that is killed before it writes the manifest, or within a file.
	for _, name := range []string{"entries/00000000000000000001-0123456789abcdef.parquet", "events/.00000000000000000001-0123456789abcdef.parquet.123"} {
		if err := os.WriteFile(filepath.Join(l.path, name), []byte("cut"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.mustSync(t)
	l.check(t)
	l.mustSync(t) // removes what the run before replaced
	m := l.manifest(t)
	for kind, named := range map[string]int{"entries": len(m.Entries), "events": len(m.Events)} {
		there, err := os.ReadDir(filepath.Join(l.path, kind))
		if err != nil || len(there) != named {
			t.Errorf("%d files in %s, %v; the manifest names %d", len(there), kind, err, named)
		}
	}
}

func TestFilesRefuseWhatIsNotTheirCopy(t *testing.T) {
	l := newLake(t)
	l.fill(t, 0, 3)
	l.mustSync(t)
	was := l.manifest(t)
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "report.csv"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(path, url, project string) replicate.Destination {
		return files.Folder(path, files.Options{Source: replicate.Source{URL: url, ProjectID: project}})
	}
	held := l.open()
	lost := filepath.Join(l.path, was.Entries[0].Path)
	for _, tt := range []struct {
		name     string
		do, undo func() error
		to       replicate.Destination
		says     string
	}{
		{"another project", nil, nil, of(l.path, l.URL, "pr_2"), `a copy of project "pr_1", not of "pr_2"`},
		{"other columns", nil, nil, of(l.path, l.URL, project), "has a copy with --columns auto, not none: give --columns as before"},
		{"another URL", nil, nil, of(l.path, "https://new", project), "give --moved"},
		{"files of others", nil, nil, of(foreign, l.URL, project), "has files (report.csv) and no manifest.json"},
		{"a lost file", func() error { return os.Rename(lost, lost+"x") }, func() error { return os.Rename(lost+"x", lost) }, l.open(), "lacks the file entries/"},
		{"another sync", func() error { _, err := held.Open(t.Context()); return err }, held.Close, l.open(), "another sync writes to folder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.do != nil {
				if err := tt.do(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := l.sync(t.Context(), tt.to); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v; want %q", err, tt.says)
			}
			if tt.undo != nil {
				if err := tt.undo(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if diff := cmp.Diff(was, l.manifest(t)); diff != "" {
		t.Error(diff)
	}
	l.check(t)
}

// Columns of entry_data keep their types. A value that does not fit is null.
func TestFilesHaveColumns(t *testing.T) {
	l := newLake(t)
	const many = 26_000 // more than a file that takes in further rows
	for first := 0; first < many; first += 2_000 {
		var batch []any
		for i := first; i < first+2_000; i++ {
			batch = append(batch, entry(fmt.Sprintf("en_%d", i), i, fmt.Sprintf(`{"n":%d.50,"seq":true,"at":"2026-01-02T03:04:05Z"}`, i)))
		}
		l.MustIngest(t, "entries", batch...)
	}
	sync := func(want ...columns.Column) (m manifest) {
		t.Helper()
		if _, err := l.sync(t.Context(), l.large()); err != nil {
			t.Fatal(err)
		}
		m = l.manifest(t)
		if diff := cmp.Diff(want, m.ColumnList); diff != "" {
			t.Errorf("-want +got: %s", diff)
		}
		return m
	}
	n := columns.Column{Key: "n", Name: "n", Type: columns.Double}
	seq := columns.Column{Key: "seq", Name: "data_seq", Type: columns.Boolean}
	at := columns.Column{Key: "at", Name: "at", Type: columns.Timestamp}
	name := columns.Column{Key: "What's your name?", Name: "What's your name?", Type: columns.Text}
	m := sync(n, seq, at)
	if len(m.Entries) != 1 || l.rowsOf(t, m.Entries[0].Path, many)[7]["n"] != 7.5 {
		t.Fatalf("%+v", m.Entries)
	}
	l.MustIngest(t, "entries", entry("other", 1, `{"n":1,"What's your name?":"Zoë"}`))
	m = sync(n, seq, at, name)
	l.MustIngest(t, "entries", entry("small", 1, `{"n":1e2}`))
	m = sync(n, seq, at, name)
	if len(m.Entries) != 2 || m.Entries[1].Rows != 2 {
		t.Errorf("%+v; want that the small file took in the next row", m.Entries)
	}
	l.MustIngest(t, "entries", entry("en_3", many, `{"n":"none","seq":1}`))
	m = sync(n, seq, at, name)
	got := map[string]row{}
	for _, f := range m.Entries {
		for _, r := range l.rowsOf(t, f.Path, f.Rows) {
			got[r["entry_id"].(string)] = r
		}
	}
	moment := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro()
	for id, want := range map[string][]any{
		"en_7": {7.5, true, moment, nil}, "en_3": {nil, nil, nil, nil}, "other": {1.0, nil, nil, "Zoë"}, "small": {100.0, nil, nil, nil},
	} {
		r := got[id]
		if diff := cmp.Diff(want, []any{r["n"], r["data_seq"], r["at"], r["What's your name?"]}); diff != "" {
			t.Errorf("%s: -want +got: %s", id, diff)
		}
	}
	l.check(t)
}
