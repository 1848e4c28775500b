package files_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/client/clienttest"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/files"
	"github.com/lectern-dev/lectern/copies/internal/copytest"
	"github.com/lectern-dev/lectern/copies/internal/since"
	"github.com/lectern-dev/lectern/copies/parquetfile"
)

// copied is a copy in a folder, and its source.
type copied struct {
	*lake
	*copytest.Source
	path string
}

func newCopy(t *testing.T) *copied {
	t.Helper()
	l := newLake(t)
	return &copied{l, copytest.NewSource(t), string(l.place.(folder))}
}

// sync runs d in small batches, or the copy with its usual options.
func (c *copied) sync(t *testing.T, d *files.Destination) error {
	t.Helper()
	if d == nil {
		d = files.Folder(c.path, options(c.Is()))
	}
	_, err := c.Sync(t.Context(), copytest.Small(d), nil)
	return err
}

func (c *copied) mustSync(t *testing.T) {
	t.Helper()
	if err := c.sync(t, nil); err != nil {
		t.Fatal(err)
	}
}

func (c *copied) check(t *testing.T) {
	t.Helper()
	copytest.Equal(t, c.Tables(t), c.Read(t), true)
}

// holds returns how many files hold a text, in their bytes or in their rows.
func (c *copied) holds(t *testing.T, text string) (n int) {
	t.Helper()
	for name, data := range c.objects(t) {
		if strings.HasSuffix(name, ".parquet") && strings.Contains(fmt.Sprint(rowsIn(t, name, data)), text) || strings.Contains(string(data), text) {
			n++
		}
	}
	return n
}

// TestFilesOfACopy checks that a copy has a file of each kind, so that readers find columns. Small files are joined, and
// files that are no part of the copy go.
func TestFilesOfACopy(t *testing.T) {
	t.Parallel()
	c := newCopy(t)
	c.mustSync(t)
	if m := c.manifest(t); len(m.entries()) != 1 || len(m.Events) != 1 || len(m.Removals) != 1 {
		t.Errorf("%+v; want an empty file of each kind", m)
	}
	c.Fill(0, 60)
	c.mustSync(t)
	c.Put(copytest.Entry("last", 902, `{}`)) // too few rows for a join with the file before
	c.mustSync(t)
	before := c.manifest(t)
	if len(before.entries()) <= len(before.Entries) {
		t.Errorf("%+v; want an embeddable with several files", before)
	}
	// These files remain of a process that is killed before it writes the manifest, or within a file.
	for _, name := range []string{"entries/emb_1/00000000000000000001-0123456789abcdef.parquet", "events/.00000000000000000001-0123456789abcdef.parquet.123"} {
		c.put(t, name, []byte("cut"))
	}
	c.mustSync(t)
	if diff := cmp.Diff(before, c.manifest(t)); diff != "" {
		t.Errorf("a run without changes: %s", diff)
	}
	if there := c.objects(t); len(there) != len(before.all())+1 {
		t.Errorf("%d files are there; the manifest names %+v", len(there), before)
	}
	for i := range 60 {
		c.Remove(client.Erased, fmt.Sprintf("en_%d", i))
	}
	c.Remove(client.Erased, "last")
	c.mustSync(t)
	c.check(t)
	if m := c.manifest(t); len(m.entries()) != len(m.Entries) {
		t.Errorf("%+v; want one empty file for each embeddable", m)
	}
}

// TestFilesForget checks that an erased entry leaves all files at once, also those that were replaced and wait for readers.
// Files without it are not read. An entry of retention leaves with the next rows that are joined with its file.
func TestFilesForget(t *testing.T) {
	t.Parallel()
	c := newCopy(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seqs, done := make(chan int64, 1000), make(chan error, 1)
	c.Put(copytest.Of("emb_2", copytest.Entry("far", 1, `{"far":true}`)))
	go func() {
		_, err := c.Sync(ctx, copytest.Small(files.Folder(c.path, options(c.Is()))), func(o *copies.Options) {
			o.Follow, o.Progress = true, func(p copies.Progress) { seqs <- p.Seq }
		})
		done <- err
		close(seqs)
	}()
	arrived := func() {
		t.Helper()
		page, err := c.Client.ChangesPage(ctx, copytest.Project, client.ChangeQuery{After: "now"})
		if err != nil {
			t.Fatal(err)
		}
		for seq := range seqs {
			if seq >= page.LastSeq {
				return
			}
		}
		t.Fatal(<-done)
	}
	c.Fill(0, 30)
	for id, text := range map[string]string{"en_ada": "Ada-canary", "en_bob": "Bob-canary", "en_cyd": "Cyd-canary"} {
		c.Person(id, text)
	}
	arrived()
	c.Fill(30, 20) // the files with the persons are joined with these
	arrived()
	if n := c.holds(t, "Ada-canary"); n <= 2 {
		t.Errorf("%d files have the person; want also those that were replaced", n)
	}
	entries := c.manifest(t).Entries
	far := entries[slices.IndexFunc(entries, func(e embeddable) bool { return e.EmbeddableID == "emb_2" })].Files[0].Path
	data := c.objects(t)[far]
	c.put(t, far, append(make([]byte, 100), data[100:]...)) // its rows cannot be read
	c.Remove(client.Erased, "en_ada", "never came", "en_bob")
	arrived()
	c.put(t, far, data)
	if n := c.holds(t, "Ada-canary") + c.holds(t, "Bob-canary"); n > 0 {
		t.Errorf("%d files have erased persons", n)
	}
	c.check(t)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.Remove(client.Purged, "en_cyd")
	c.Fill(50, 20)
	if _, err := c.Sync(t.Context(), files.Folder(c.path, options(c.Is())), nil); err != nil { // one batch, which is joined with all small files
		t.Fatal(err)
	}
	c.mustSync(t) // removes what was replaced
	if n := c.holds(t, "Cyd-canary"); n > 0 {
		t.Errorf("%d files have the purged person", n)
	}
	c.check(t)
}

func TestFilesRefuseWhatIsNotTheirCopy(t *testing.T) {
	t.Parallel()
	c := newCopy(t)
	c.Fill(0, 3)
	c.mustSync(t)
	was := c.manifest(t)
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "report.csv"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	held, lost := files.Folder(c.path, options(c.Is())), filepath.Join(c.path, was.entries()[0].Path)
	for _, tt := range []struct {
		name     string
		do, undo func() error
		to       *files.Destination
		says     string
	}{
		{"other columns", nil, nil, files.Folder(c.path, files.Options{Source: c.Is()}), `has a copy with --columns "auto", not "none": give --columns as before`},
		{"files of others", nil, nil, files.Folder(foreign, options(c.Is())), "has files (report.csv) and no manifest.json"},
		{"a lost file", func() error { return os.Rename(lost, lost+"x") }, func() error { return os.Rename(lost+"x", lost) }, nil, "lacks the file entries/"},
		{"another sync", func() error { _, err := held.Open(t.Context()); return err }, held.Close, nil, "another sync writes to folder"},
	} {
		if tt.do != nil {
			if err := tt.do(); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.sync(t, tt.to); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.says)
		}
		if tt.undo != nil {
			if err := tt.undo(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(was, c.manifest(t)); diff != "" {
		t.Error(diff)
	}
}

// TestFilesHaveColumns checks that each embeddable has files with columns of its own. A value that does not fit its column
// stays in entry_data.
func TestFilesHaveColumns(t *testing.T) {
	t.Parallel()
	c := newCopy(t)
	of := func(embeddable, id, data string) client.Entry {
		return copytest.Of(embeddable, copytest.Entry(id, 1, data))
	}
	c.Put(of("a/*.?", "a1", `{"n":7.50,"seq":true,"at":"2026-01-02T03:04:05Z"}`), of("B", "b1", `{"n":"seven","What's your name?":"Zoë"}`))
	c.mustSync(t)
	c.Put(of("a/*.?", "a2", `{"n":"n/a","more":[1]}`), of("B", "b2", `{"n":"eight"}`))
	var notes []string
	o := options(c.Is())
	o.Note = func(text string) { notes = append(notes, text) }
	if err := c.sync(t, files.Folder(c.path, o)); err != nil {
		t.Fatal(err)
	}
	if want := `1 value of the key "n" of embeddable "a/*.?" does not fit its column of type double: the value of entry "a2". `; len(notes) != 1 || !strings.HasPrefix(notes[0], want) {
		t.Errorf("notes: %q", notes)
	}
	want := [][]columns.Column{
		{
			{Key: "n", Name: "n", Type: columns.Double}, {Key: "seq", Name: "data_seq", Type: columns.Boolean},
			{Key: "at", Name: "at", Type: columns.Timestamp}, {Key: "more", Name: "more", Type: columns.Text},
		},
		{{Key: "n", Name: "n", Type: columns.Text}, {Key: "What's your name?", Name: "What's your name?", Type: columns.Text}},
	}
	values := map[string][]any{}
	for i, e := range c.manifest(t).Entries {
		if folder := []string{"entries/a~2f~2a~2e~3f", "entries/B"}[i]; len(e.Files) != 1 || filepath.Dir(e.Files[0].Path) != folder {
			t.Errorf("%+v; want one file in %s", e.Files, folder)
		}
		if diff := cmp.Diff(want[i], e.Columns); diff != "" {
			t.Errorf("-want +got: %s", diff)
		}
		for _, r := range c.rows(t, e.Files[0]) {
			values[r["entry_id"].(string)] = []any{r["n"], r["data_seq"], r["at"], r["more"]}
		}
	}
	moment := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro()
	if diff := cmp.Diff(map[string][]any{
		"a1": {7.5, true, moment, nil}, "a2": {nil, nil, nil, "[1]"}, "b1": {"seven", nil, nil, nil}, "b2": {"eight", nil, nil, nil},
	}, values); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	c.check(t)
}

// TestFilesDamaged checks that a verification names a file with another bit. A repair writes lost and cut files again,
// even if an earlier repair was killed.
func TestFilesDamaged(t *testing.T) {
	t.Parallel()
	c := newCopy(t)
	c.Define("emb_1", 1, client.Draft, 1)
	c.Fill(0, 40)
	c.mustSync(t)
	c.Fill(40, 1)
	c.mustSync(t) // a second file of events
	verify := func(repair bool, name func(copies.Difference) error) error {
		o := options(c.Is())
		o.Repair = repair
		_, err := copies.Verify(t.Context(), copies.Verification{
			Options: copies.Options{Client: c.Client, Source: c.Is(), Destination: files.Folder(c.path, o), PageSize: 50, Attempts: 1},
			Folder:  t.TempDir(), Repair: repair, Name: name,
		})
		return err
	}
	was := c.manifest(t)
	for i, f := range was.all() {
		if f.Rows == 0 {
			continue
		}
		data := c.objects(t)[f.Path]
		bad := slices.Clone(data)
		at := (i*7919 + 4) % len(bad)
		bad[at] ^= 1 << (i % 8)
		c.put(t, f.Path, bad)
		var named []string
		err := verify(false, func(d copies.Difference) error { named = append(named, d.ID); return nil })
		if says := fmt.Sprint(named, err); !strings.Contains(says, filepath.Base(f.Path)) {
			t.Errorf("bit of byte %d of %s: %s", at, f.Path, says)
		}
		c.put(t, f.Path, data)
	}
	for _, lose := range []func(path string) error{os.Remove, func(path string) error { return os.Truncate(path, 100) }} {
		was := c.manifest(t)
		lost := slices.MaxFunc(was.Events, func(a, b file) int { return a.Rows - b.Rows })
		for _, f := range []file{lost, was.Embeddables[0]} {
			if err := lose(filepath.Join(c.path, f.Path)); err != nil {
				t.Fatal(err)
			}
		}
		killed := errors.New("killed")
		if err := verify(true, func(copies.Difference) error { return killed }); !errors.Is(err, killed) {
			t.Errorf("%v; want a repair that ends early", err)
		}
		if err := verify(false, func(copies.Difference) error { return nil }); err == nil || !strings.Contains(err.Error(), ".parquet") {
			t.Errorf("%v; want the file that is lost", err)
		}
		named := 0
		if err := verify(true, func(copies.Difference) error { named++; return nil }); err != nil || named == 0 {
			t.Errorf("%d differences, %v", named, err)
		}
		c.check(t)
		if now := c.manifest(t).Events; len(now) < 2 || len(now) != len(was.Events) || now[slices.Index(was.Events, lost)].Rows == 0 {
			t.Errorf("the rows of %+v are in other files: %+v, before %+v", lost, now, was.Events)
		}
	}
	// A repair by a key that may not read a lost list leaves the list to the next sync whose key may.
	if err := os.Remove(filepath.Join(c.path, c.manifest(t).Embeddables[0].Path)); err != nil {
		t.Fatal(err)
	}
	c.API.Order(clienttest.Answer{Path: "/embeddables", Status: 403, Code: client.CodeInsufficientScope, Always: true})
	if err := verify(true, func(copies.Difference) error { return nil }); err != nil {
		t.Error(err)
	}
	c.API.Order()
	c.mustSync(t)
	c.check(t)
	c.Fill(40, 3)
	c.mustSync(t) // joins files that were repaired
	c.check(t)
}

// olderEntry and olderEvent are rows in files of an older version, which lacks columns that copies have today.
type olderEntry struct {
	Seq          int64  `parquet:"seq"`
	EntryID      string `parquet:"entry_id"`
	GroupID      string `parquet:"group_id,dict"`
	ProjectID    string `parquet:"project_id,dict"`
	EmbeddableID string `parquet:"embeddable_id,dict"`
	CreatedAt    int64  `parquet:"created_at,timestamp(microsecond:utc)"`
	UpdatedAt    int64  `parquet:"updated_at,timestamp(microsecond:utc)"`
	EntryData    string `parquet:"entry_data"`
}

type olderEvent struct {
	Seq          int64   `parquet:"seq"`
	EventKey     string  `parquet:"event_key"`
	EventID      *string `parquet:"event_id,optional"`
	EntryID      string  `parquet:"entry_id"`
	ContactID    string  `parquet:"contact_id"`
	ProjectID    string  `parquet:"project_id,dict"`
	GroupID      string  `parquet:"group_id,dict"`
	EmbeddableID string  `parquet:"embeddable_id,dict"`
	Timestamp    int64   `parquet:"timestamp,timestamp(microsecond:utc)"`
	EventType    string  `parquet:"event_type,dict"`
}

// asOlder writes files of the copy again as an older version writes them. list is a list of files in manifest.json.
func asOlder[T any](t *testing.T, c *copied, list any, set *columns.Set, data func(*T) string) {
	t.Helper()
	for _, f := range list.([]any) {
		f := f.(map[string]any)
		var older bytes.Buffer
		w := parquetfile.NewWriter(&older, set, data)
		for rows, err := range parquetfile.Rows[T](bytes.NewReader(c.objects(t)[f["path"].(string)])) {
			if err == nil {
				err = w.Write(rows)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		f["bytes"], f["sha256"] = older.Len(), fmt.Sprintf("%x", sha256.Sum256(older.Bytes()))
		c.place.put(t, f["path"].(string), older.Bytes())
	}
}

// TestFilesGain checks that a newer version fills its columns in the copy of an older version, whenever a process is
// killed. The older version can continue the copy in between.
func TestFilesGain(t *testing.T) {
	t.Parallel()
	c := newCopy(t)
	trial := since.Table{Number: since.Copies.Number + 1, Since: maps.Clone(since.Copies.Since)}
	trial.Since["entries.contact_id"], trial.Since["events.url"] = trial.Number, trial.Number
	var notes []string
	at := func(r since.Table, cut int) *files.Destination {
		o := options(c.Is())
		o.Note = func(text string) { notes = append(notes, text) }
		d := files.Folder(c.path, o)
		d.At(r)
		if cut > 0 {
			d.FailAt(cut)
		}
		return d
	}
	older := func() { // continues the copy
		t.Helper()
		if err := c.sync(t, at(since.Copies, 0)); err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(c.objects(t)["manifest.json"], &m); err != nil {
			t.Fatal(err)
		}
		asOlder[olderEvent](t, c, m["events"], nil, nil)
		sets := c.manifest(t).Entries
		for i, e := range m["entries"].([]any) {
			set := columns.Choice{All: true}.Restore(sets[i].Columns)
			asOlder(t, c, e.(map[string]any)["files"], set, func(e *olderEntry) string { return e.EntryData })
		}
		manifest, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		c.place.put(t, "manifest.json", manifest)
	}
	verify := func() error {
		d := at(trial, 0)
		_, _, err := d.Look(t.Context())
		return err
	}
	const unfilled = "has not yet all values of the columns"

	c.Fill(0, 30)
	c.Put(copytest.Of("emb_2", copytest.Entry("other", 1, `{"n":1}`)))
	older()
	if err := verify(); err == nil || !strings.Contains(err.Error(), unfilled) {
		t.Errorf("a verification of the older copy: %v", err)
	}
	steps, progress := 0, false
	for cut := 1; ; cut += 1 + cut/3 {
		err := c.sync(t, at(trial, cut))
		if err == nil {
			break
		}
		if !errors.Is(err, copytest.ErrCut) {
			t.Fatal(err)
		}
		at := c.manifest(t).Unfilled
		progress = progress || at != nil && at.Seq > 0
		if steps++; steps%3 == 0 {
			c.Fill(30+steps, 1)
			c.Remove(client.Erased, fmt.Sprintf("en_%d", steps)) // writes the older files again
			older()
		}
		if err := verify(); err != nil && !strings.Contains(err.Error(), unfilled) {
			t.Fatal(err)
		}
	}
	if steps < 6 || !progress {
		t.Errorf("a run was killed %d times; progress that the next run finds: %t", steps, progress)
	}
	c.check(t)
	equal := func() {
		t.Helper()
		if names, left := c.Verify(t, at(trial, 0), nil); left != 0 {
			t.Errorf("differences %q", names)
		}
	}
	equal()
	older()
	before := c.manifest(t)
	if err := c.sync(t, at(trial, 0)); err != nil {
		t.Fatal(err)
	}
	c.check(t)
	equal()
	if said := strings.Join(notes, "\n"); !strings.Contains(said, "added to the copy: entries.contact_id, events.url.") || !strings.Contains(said, "leaves the columns out of the files that it writes") || !strings.Contains(said, "The run reads the feed again and fills them.") {
		t.Errorf("notes: %q", notes)
	}
	after := c.manifest(t)
	if slices.Equal(before.Events, after.Events) || slices.Equal(before.entries(), after.entries()) {
		t.Error("files that lack values stayed")
	}
	for _, version := range []since.Table{since.Copies, trial} {
		if err := c.sync(t, at(version, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(after, c.manifest(t)); diff != "" {
		t.Errorf("after runs without changes: %s", diff)
	}

	// A repair fills as well, also a file that a run cannot read.
	older()
	lost := filepath.Join(c.path, c.manifest(t).Events[0].Path)
	if err := os.Truncate(lost, 100); err != nil {
		t.Fatal(err)
	}
	if err := c.sync(t, at(trial, 0)); err == nil || !strings.Contains(err.Error(), "--verify --repair") {
		t.Errorf("with a damaged file: %v", err)
	}
	repaired := at(trial, 0)
	repaired.Repair = true
	if _, left := c.Verify(t, repaired, func(v *copies.Verification) { v.Repair = true }); left != 0 {
		t.Errorf("%d differences after the repair", left)
	}
	if err := c.sync(t, at(trial, 0)); err != nil {
		t.Fatal(err)
	}
	c.check(t)
	equal()
}
