package copiestest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/files"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// smallFiles is a copy whose files are small.
type smallFiles struct{ *files.Destination }

func (smallFiles) Limits() copies.Limits { return copies.Limits{Changes: 20, Bytes: 8 << 10} }

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

func (l *lake) sync(ctx context.Context, d copies.Destination) (copies.Progress, error) {
	return copies.Run(ctx, copies.Options{Client: l.client, Source: l.is(), Destination: d, Project: true, PageSize: 7, Attempts: 1})
}

func (l *lake) mustSync(t *testing.T) copies.Progress {
	t.Helper()
	p, err := l.sync(t.Context(), l.open())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// manifest has the fields of manifest.json that a reader of a copy needs.
type manifest struct {
	Cursor           string
	Seq              int64
	Entries          []embeddable
	Events, Removals []file

	Embeddables, Experiments []file
	Versions                 []file `json:"embeddable_versions"`
	History                  []file `json:"experiment_history"`
}

type embeddable struct {
	EmbeddableID string `json:"embeddable_id"`
	Columns      []columns.Column
	Files        []file
}

type file struct {
	Path     string
	Rows     int
	FirstSeq int64 `json:"first_seq"`
	LastSeq  int64 `json:"last_seq"`
}

// entries are the files of all embeddables.
func (m manifest) entries() (files []file) {
	for _, e := range m.Entries {
		files = append(files, e.Files...)
	}
	return files
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
	last := int64(0)
	for _, one := range all {
		r := one.(row)
		seq, _ := r["seq"].(int64)
		if list, last = append(list, r), max(seq, last); seq < last {
			t.Errorf("%s: %d comes after %d", name, seq, last)
		}
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
	read := func(f file) []row {
		list := l.rowsOf(t, f.Path, f.Rows)
		inOrder := slices.IsSortedFunc(list, func(a, b row) int { return int(seqOf(a) - seqOf(b)) })
		if len(list) > 0 && (!inOrder || seqOf(list[0]) != f.FirstSeq || seqOf(list[len(list)-1]) != f.LastSeq) {
			t.Errorf("the rows of %+v are not in order, or not from first_seq to last_seq", f)
		}
		return list
	}
	for _, f := range m.Removals {
		for _, r := range read(f) {
			removed[r["entry_id"].(string)] = seqOf(r)
		}
	}
	keep := func(to map[string]row, key string, files []file) {
		for _, f := range files {
			for _, r := range read(f) {
				if id := r[key].(string); seqOf(r) > max(seqOf(to[id]), removed[r["entry_id"].(string)]) {
					to[id] = r
				}
			}
		}
	}
	keep(current.entries, "entry_id", m.entries())
	keep(current.events, "event_key", m.Events)
	return current
}

func (l *lake) check(t *testing.T) {
	t.Helper()
	want, got := l.records(t), l.copied(t)
	for _, all := range []map[string]row{want.entries, want.events, got.entries, got.events} {
		for _, r := range all {
			for _, e := range l.manifest(t).Entries {
				for _, c := range e.Columns {
					delete(r, c.Name)
				}
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
	t.Parallel()
	l := newLake(t)
	if p := l.mustSync(t); !p.Current {
		t.Errorf("%+v", p)
	}
	if m := l.manifest(t); len(m.entries()) != 1 || len(m.Events) != 1 || len(m.Removals) != 1 { // so that readers find columns
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
	l.MustIngest(t, "entries", entry("last", 902, `{}`)) // too few rows for a join with the file before
	l.mustSync(t)
	before := l.manifest(t)
	if p := l.mustSync(t); p.Changes != 0 || len(l.manifest(t).entries()) != len(before.entries()) {
		t.Errorf("%+v; want no change and no further file", p)
	}
	if len(before.entries()) <= len(before.Entries) {
		t.Errorf("%+v; want an embeddable with several files", before)
	}
	l.remove(t, "erased", slices.Collect(maps.Keys(l.records(t).entries))...)
	l.mustSync(t)
	l.check(t)
	if m := l.manifest(t); len(m.entries()) != len(m.Entries) {
		t.Errorf("%+v; want one empty file for each embeddable", m)
	}
}

// A copy is exact although its process is cut while sources write and remove, and leaves no file that is no part of it.
func TestFilesKilled(t *testing.T) {
	t.Parallel()
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
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(10+rand.IntN(300))*time.Millisecond, errors.New("killed"))
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
	for _, name := range []string{"entries/emb_1/00000000000000000001-0123456789abcdef.parquet", "events/.00000000000000000001-0123456789abcdef.parquet.123"} {
		path := filepath.Join(l.path, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("cut"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	l.mustSync(t)
	l.check(t)
	l.mustSync(t) // removes what the run before replaced
	if there, m := l.objects(t, "*.parquet"), l.manifest(t); len(there) != len(m.entries())+len(m.Events)+len(m.Removals)+len(m.Embeddables)+len(m.Versions)+len(m.Experiments)+len(m.History) {
		t.Errorf("%d files are there; the manifest names %+v", len(there), m)
	}
}

// objects are the files of the copy that match a pattern, each with its bytes, and its rows if it is Parquet.
func (l *lake) objects(t *testing.T, pattern string) map[string]string {
	t.Helper()
	return objects(t, pattern, l.path)
}

func objects(t *testing.T, pattern string, folders ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if ok, _ := filepath.Match(pattern, filepath.Base(path)); errors.Is(err, fs.ErrNotExist) || err == nil && (entry.IsDir() || !ok) {
				return nil // a copy that is written meanwhile may remove a file
			}
			data, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			found[path] = string(data)
			if magic := []byte("PAR1"); bytes.HasPrefix(data, magic) && bytes.HasSuffix(data, magic) { // and not half written
				rows, err := parquet.Read[any](bytes.NewReader(data), int64(len(data)))
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				found[path] += fmt.Sprint(rows)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// with counts the objects that hold a text.
func with(objects map[string]string, text string) (n int) {
	for _, data := range objects {
		if strings.Contains(data, text) {
			n++
		}
	}
	return n
}

// person stores an entry and an event with a text in the contact, an answer and the event.
func (s *source) person(t *testing.T, id, text string) {
	t.Helper()
	one, view := entry(id, 1, fmt.Sprintf(`{"n":1,"text":%q}`, text)), event(id, 1)
	one["contact_id"], view["contact_id"], view["url"], view["page_key"] = text, text, "https://example.com/"+text, text
	s.MustIngest(t, "entries", one)
	s.MustIngest(t, "events", view)
}

// An erased entry leaves all files at once, also those that were replaced and wait for readers. Files without it are not
// read. One of retention leaves with the next rows that are joined with its file.
func TestFilesForget(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := copies.Run(ctx, copies.Options{Client: l.client, Source: l.is(), Destination: l.open(), Follow: true, PageSize: 7, Attempts: 1})
		done <- err
	}()
	hold := func(want bool, texts ...string) {
		t.Helper()
		for _, text := range texts {
			eventually.True(t, fmt.Sprintf("files hold %s: %v", text, want), func() bool { return with(l.objects(t, "*"), text) > 0 == want })
		}
	}
	l.fill(t, 0, 30)
	l.MustIngest(t, "entries", of("emb_2", entry("far", 1, `{"far":true}`)))
	l.person(t, "en_ada", "Ada-canary")
	l.person(t, "en_bob", "Bob-canary")
	l.person(t, "en_cyd", "Cyd-canary")
	hold(true, "Ada-canary", "Bob-canary", "Cyd-canary")
	l.fill(t, 30, 20) // the files with Ada are joined with these
	eventually.True(t, "replaced files stay", func() bool { return with(l.objects(t, "*"), "Ada-canary") > 2 })
	last := l.manifest(t).entries()
	far := filepath.Join(l.path, last[len(last)-1].Path) // of emb_2
	data, err := os.ReadFile(far)
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(far, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(append(make([]byte, 100), data[100:]...)) // its rows cannot be read
	l.remove(t, "erased", "en_ada", "never came", "en_bob")
	hold(false, "Ada-canary", "Bob-canary")
	write(data)
	l.check(t)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	l.remove(t, "purged", "en_cyd")
	l.fill(t, 50, 20)
	if _, err := l.sync(t.Context(), l.large()); err != nil { // one batch, which is joined with all small files
		t.Fatal(err)
	}
	l.mustSync(t) // removes what was replaced
	hold(false, "Cyd-canary")
	l.check(t)
}

func TestFilesRefuseWhatIsNotTheirCopy(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.fill(t, 0, 3)
	l.mustSync(t)
	was := l.manifest(t)
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "report.csv"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(path, url, project string) copies.Destination {
		return files.Folder(path, files.Options{Source: copies.Source{URL: url, ProjectID: project}})
	}
	held := l.open()
	lost := filepath.Join(l.path, was.entries()[0].Path)
	for _, tt := range []struct {
		name     string
		do, undo func() error
		to       copies.Destination
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

// The files of a project's other records are replaced as a whole, and stay if the key may not read them.
func TestFilesHaveTheWholeProject(t *testing.T) {
	t.Parallel()
	l := &lake{newWholeSource(t), filepath.Join(t.TempDir(), "copy")}
	l.fill(t, 0, 3)
	l.define(t, "emb_1", 1, "draft", 1)
	l.mustSync(t)
	l.define(t, "emb_1", 2, "running", 2)
	l.mustSync(t)
	was := l.manifest(t)
	l.define(t, "emb_2", 1, "draft", 3)
	all := l.client
	l.client = l.with(t, auth.EntriesRead)
	l.mustSync(t)
	if diff := cmp.Diff([][]file{was.Embeddables, was.History}, [][]file{l.manifest(t).Embeddables, l.manifest(t).History}); diff != "" {
		t.Errorf("a key without scopes: %s", diff)
	}
	l.client = all
	l.mustSync(t)
	m := l.manifest(t)
	at := func(second int) int64 { return time.Date(2022, 1, 1, 0, 0, second, 0, time.UTC).UnixMicro() }
	embeddable := func(id, definition string) row {
		return row{"embeddable_id": id, "title": "Title ü", "group_id": "gr_1", "project_id": project, "definition": definition}
	}
	version := func(id string, n int64) row {
		return row{"embeddable_id": id, "version_number": n, "saved_at": at(0), "definition": fmt.Sprintf(`{"v":%d}`, n)}
	}
	want := [][]row{{embeddable("emb_1", `{"n":2}`), embeddable("emb_2", `{"n":1}`)}, {version("emb_1", 1), version("emb_1", 2), version("emb_2", 1)}}
	got := [][]row{l.rowsOf(t, m.Embeddables[0].Path, 2), l.rowsOf(t, m.Versions[0].Path, 3)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	experiment := row{
		"experiment_id": "exp_emb_1", "flow_id": "emb_1", "name": "One", "hypothesis": nil, "impact_metrics": []any{"m"}, "no_impact_metrics": []any{},
		"created_at": at(0), "updated_at": at(2), "observations": nil, "outcome": nil, "attachments": "[]", "variants": "{}", "flow_ids": []any{"emb_1"},
		"paused_showing_variant": nil, "winner_variant": nil, "status": "running",
	}
	if diff := cmp.Diff(experiment, l.rowsOf(t, m.Experiments[0].Path, 2)[1]); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if last := l.rowsOf(t, m.History[0].Path, 3)[2]; last["experiment_id"] != "exp_emb_1" || last["status"] != "running" || last["changed_at"] != at(2) {
		t.Errorf("%+v", last)
	}
	l.check(t)
	// A repair by a key that may not read a lost list leaves it to the next sync with one that may.
	if err := os.Remove(filepath.Join(l.path, m.Embeddables[0].Path)); err != nil {
		t.Fatal(err)
	}
	l.client = l.with(t, auth.EntriesRead)
	if _, left := verify(t, l.source, files.Folder(l.path, files.Options{Source: l.is(), Columns: columns.Choice{All: true}, Repair: true}), true); left != 0 {
		t.Errorf("%d are left", left)
	}
	l.client = all
	l.mustSync(t)
	if diff := cmp.Diff(want[0], l.rowsOf(t, l.manifest(t).Embeddables[0].Path, 2)); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

// Each embeddable has files with columns of its own. A value that does not fit its column stays in entry_data.
func TestFilesHaveColumns(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	of := func(embeddable, id, data string) any {
		e := entry(id, 1, data)
		e["embeddable_id"] = embeddable
		return e
	}
	l.MustIngest(t, "entries",
		of("a/*.?", "a1", `{"n":7.50,"seq":true,"at":"2026-01-02T03:04:05Z"}`),
		of("B", "b1", `{"n":"seven","What's your name?":"Zoë"}`))
	l.mustSync(t)
	l.MustIngest(t, "entries", of("a/*.?", "a2", `{"n":"n/a","more":[1]}`), of("B", "b2", `{"n":"eight"}`))
	var notes []string
	d := files.Folder(l.path, files.Options{Source: l.is(), Columns: columns.Choice{All: true}, Note: func(text string) { notes = append(notes, text) }})
	if _, err := l.sync(t.Context(), smallFiles{d}); err != nil {
		t.Fatal(err)
	}
	if want := `1 value of the key "n" of embeddable "a/*.?" does not fit its column of type double: the value of entry "a2". `; len(notes) != 1 || !strings.HasPrefix(notes[0], want) {
		t.Errorf("notes: %q", notes)
	}
	m := l.manifest(t)
	want := []embeddable{
		{EmbeddableID: "a/*.?", Columns: []columns.Column{
			{Key: "n", Name: "n", Type: columns.Double}, {Key: "seq", Name: "data_seq", Type: columns.Boolean},
			{Key: "at", Name: "at", Type: columns.Timestamp}, {Key: "more", Name: "more", Type: columns.Text},
		}},
		{EmbeddableID: "B", Columns: []columns.Column{
			{Key: "n", Name: "n", Type: columns.Text}, {Key: "What's your name?", Name: "What's your name?", Type: columns.Text},
		}},
	}
	got := map[string]row{}
	for i, e := range m.Entries {
		folder := []string{"entries/a~2f~2a~2e~3f", "entries/B"}[i]
		if len(e.Files) != 1 || filepath.Dir(e.Files[0].Path) != folder {
			t.Errorf("%+v; want one file in %s", e.Files, folder)
		}
		for _, r := range l.rowsOf(t, e.Files[0].Path, 2) {
			got[r["entry_id"].(string)] = r
		}
		m.Entries[i].Files = nil
	}
	if diff := cmp.Diff(want, m.Entries); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	moment := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro()
	for id, want := range map[string][]any{
		"a1": {7.5, true, moment, nil}, "a2": {nil, nil, nil, "[1]"}, "b1": {"seven", nil, nil, nil}, "b2": {"eight", nil, nil, nil},
	} {
		r := got[id]
		if diff := cmp.Diff(want, []any{r["n"], r["data_seq"], r["at"], r["more"]}); diff != "" {
			t.Errorf("%s: -want +got: %s", id, diff)
		}
	}
	l.check(t)
}
