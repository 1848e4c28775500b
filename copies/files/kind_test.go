package files_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/fields"
	"github.com/lectern-dev/lectern/copies/files"
	"github.com/lectern-dev/lectern/copies/internal/copytest"
)

func TestFolder(t *testing.T) {
	copytest.Run(t, func(t *testing.T) copytest.Kind { return newLake(t) })
}

func TestBucket(t *testing.T) {
	copytest.Run(t, func(t *testing.T) copytest.Kind {
		b := newBucket(t)
		b.versioned = true
		return &lake{b}
	})
}

// TestUpgrades checks that the manifest and the files of each released version go on. The files of a folder also go on in
// a bucket, which has the same.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	copytest.CheckUpgrades(t, "files", func(t *testing.T) copytest.Stored { return newLake(t) })
}

func TestUpgradesInABucket(t *testing.T) {
	t.Parallel()
	copytest.CheckUpgrades(t, "files", func(t *testing.T) copytest.Stored { return &lake{newBucket(t)} })
}

// place is where a copy is: a folder or a bucket.
type place interface {
	open(t *testing.T, o files.Options) *files.Destination
	// objects returns all files by their names.
	objects(t *testing.T) map[string][]byte
	put(t *testing.T, name string, data []byte)
}

// lake is a copy in files.
type lake struct{ place }

func newLake(t *testing.T) *lake {
	t.Helper()
	return &lake{folder(filepath.Join(t.TempDir(), "copy of shop"))}
}

type folder string

func (f folder) open(_ *testing.T, o files.Options) *files.Destination {
	return files.Folder(string(f), o)
}

func (f folder) put(t *testing.T, name string, data []byte) {
	t.Helper()
	path := filepath.Join(string(f), name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (f folder) objects(t *testing.T) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(string(f), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == ".lock" {
			return err
		}
		name, err := filepath.Rel(string(f), path)
		if err == nil {
			found[name], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// options are those of a copy with columns.
func options(from copies.Source) files.Options {
	return files.Options{Source: from, Columns: columns.Choice{All: true}}
}

// Open returns the copy.
func (l *lake) Open(t *testing.T, o copytest.Options) (copies.Destination, error) {
	d := l.open(t, files.Options{Source: o.Source, Moved: o.Moved, Mask: o.Mask, Repair: o.Repair, Columns: columns.Choice{All: true}})
	if o.Cut > 0 {
		d.FailAt(o.Cut)
	}
	return d, nil
}

// Exact reports that entry_data is as it was.
func (*lake) Exact() bool { return true }

// Save writes all files of the copy into a folder.
func (l *lake) Save(t *testing.T, to string) {
	t.Helper()
	for name, data := range l.objects(t) {
		folder(to).put(t, name, data)
	}
}

// Load stores the files of a folder. They replace the copy, because a manifest names its files.
func (l *lake) Load(t *testing.T, from string) {
	t.Helper()
	for name, data := range folder(from).objects(t) {
		l.put(t, name, data)
	}
}

// Text returns all files, and the rows of those that are Parquet.
func (l *lake) Text(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	add := func(name string, data []byte) {
		fmt.Fprintf(&all, "%s: %s\n", name, data)
		if strings.HasSuffix(name, ".parquet") {
			fmt.Fprintln(&all, rowsIn(t, name, data))
		}
	}
	for name, data := range l.objects(t) {
		add(name, data)
	}
	if b, ok := l.place.(*bucket); ok { // also the past versions
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, v := range b.versions {
			add(v.Key, v.data)
		}
	}
	return all.String()
}

// manifest has the fields of manifest.json that a reader of a copy needs.
type manifest struct {
	Seq              int64
	Unfilled         *copies.Position
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

// all are the files that the manifest names.
func (m manifest) all() []file {
	return slices.Concat(m.entries(), m.Events, m.Removals, m.Embeddables, m.Versions, m.Experiments, m.History)
}

func (l *lake) manifest(t *testing.T) (m manifest) {
	t.Helper()
	if err := json.Unmarshal(l.objects(t)["manifest.json"], &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// rowsIn reads a file by its own schema, as any reader of Parquet does.
func rowsIn(t *testing.T, name string, data []byte) (list []copytest.Row) {
	t.Helper()
	all, err := parquet.Read[any](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, one := range all {
		list = append(list, one.(copytest.Row))
	}
	return list
}

// seqOf returns the number of a row; 0 if it has none.
func seqOf(r copytest.Row) int64 {
	n, _ := r["seq"].(int64)
	return n
}

// rows returns the rows of a file of the manifest, which is as the manifest says.
func (l *lake) rows(t *testing.T, f file) []copytest.Row {
	t.Helper()
	list := rowsIn(t, f.Path, l.objects(t)[f.Path])
	inOrder := slices.IsSortedFunc(list, func(a, b copytest.Row) int { return int(seqOf(a) - seqOf(b)) })
	if len(list) != f.Rows || len(list) > 0 && (!inOrder || seqOf(list[0]) != f.FirstSeq || seqOf(list[len(list)-1]) != f.LastSeq) {
		t.Errorf("the rows of %+v are not in order, or not from first_seq to last_seq", f)
	}
	return list
}

// Read computes the current state as the views of docs/how-to/sync.md do.
func (l *lake) Read(t *testing.T) copytest.Tables {
	t.Helper()
	m, all := l.manifest(t), copytest.NewTables()
	removed := map[string]int64{}
	for _, f := range m.Removals {
		for _, r := range l.rows(t, f) {
			removed[r["entry_id"].(string)] = max(seqOf(r), removed[r["entry_id"].(string)])
		}
	}
	keep := func(table, key string, list []file, names []string) {
		newest := map[string]copytest.Row{}
		for _, f := range list {
			for _, r := range l.rows(t, f) {
				if id := r[key].(string); seqOf(r) > max(seqOf(newest[id]), removed[r["entry_id"].(string)]) {
					newest[id] = copytest.Row{"seq": r["seq"]}
					for _, name := range names { // and none of the columns of entry_data
						newest[id][name] = r[name]
					}
				}
			}
		}
		for _, r := range newest {
			all.Add(t, table, r, nil)
		}
	}
	keep("entries", "entry_id", m.entries(), fields.Names[client.Entry]())
	keep("events", "event_key", m.Events, fields.Names[client.ChangedEvent]())
	for table, list := range map[string][]file{"embeddables": m.Embeddables, "embeddable_versions": m.Versions, "experiments": m.Experiments, "experiment_history": m.History} {
		for _, f := range list {
			for _, r := range l.rows(t, f) {
				all.Add(t, table, r, nil)
			}
		}
	}
	return all
}

// edit changes the rows of a file of a copy, without its process.
func (l *lake) edit(t *testing.T, name string, change func(schema *parquet.Schema, rows []parquet.Row) []parquet.Row) {
	t.Helper()
	data := l.objects(t)[name]
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var all []parquet.Row
	for _, group := range f.RowGroups() {
		rows := group.Rows()
		for one := make([]parquet.Row, 1); ; {
			n, err := rows.ReadRows(one)
			if n == 1 {
				all = append(all, one[0].Clone())
			}
			if err != nil {
				break
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	w := parquet.NewGenericWriter[any](&out, f.Schema())
	if _, err := w.WriteRows(change(f.Schema(), all)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l.put(t, name, out.Bytes())
}

type row = copytest.Row

// editManifest changes the lists of entries and of events in the manifest.
func (l *lake) editManifest(t *testing.T, change func(entries, events []any)) {
	t.Helper()
	var m row
	err := json.Unmarshal(l.objects(t)["manifest.json"], &m)
	if err == nil {
		change(m["entries"].([]any), m["events"].([]any))
	}
	data, fault := json.Marshal(m)
	if err = errors.Join(err, fault); err != nil {
		t.Fatal(err)
	}
	l.put(t, "manifest.json", data)
}

// set sets a column of a row.
func set(schema *parquet.Schema, r parquet.Row, name string, v any) {
	leaf, _ := schema.Lookup(name)
	r[leaf.ColumnIndex] = parquet.ValueOf(v).Level(0, leaf.MaxDefinitionLevel, leaf.ColumnIndex)
}

// setting returns a change that sets a column of all rows.
func setting(name string, v any) func(*parquet.Schema, []parquet.Row) []parquet.Row {
	return func(schema *parquet.Schema, rows []parquet.Row) []parquet.Row {
		for _, r := range rows {
			set(schema, r, name, v)
		}
		return rows
	}
}

// Aside returns the lines of the files in the folder lost.
func (l *lake) Aside(t *testing.T) (lines []string) {
	t.Helper()
	for name, data := range l.objects(t) {
		if strings.HasPrefix(name, "lost/") {
			lines = slices.AppendSeq(lines, strings.Lines(string(data)))
		}
	}
	return lines
}

// Injuries returns changes of the rows of each kind of file, and of a file as a whole.
func (l *lake) Injuries(*testing.T) [][]copytest.Injury {
	type change = func(*parquet.Schema, []parquet.Row) []parquet.Row
	injury := func(name string, which func(m manifest) []file, change change, want ...string) copytest.Injury {
		return copytest.Injury{Name: name, Do: func(t *testing.T) []string {
			path := which(l.manifest(t))[0].Path
			l.edit(t, path, change)
			return append(want, "stale file "+path)
		}}
	}
	var rows []copytest.Injury
	for _, kind := range []struct{ name, column, key, text string }{{"entry", "entry_id", "en_%d", "entry_data"}, {"event", "event_key", "en_%d/%d", "url"}} {
		for i, one := range []struct {
			fault  string
			change func(schema *parquet.Schema, rows []parquet.Row, at int) []parquet.Row
		}{
			{"missing", func(_ *parquet.Schema, rows []parquet.Row, at int) []parquet.Row {
				return slices.Delete(rows, at, at+1)
			}},
			{"doubled", func(_ *parquet.Schema, rows []parquet.Row, at int) []parquet.Row {
				return slices.Insert(rows, at, rows[at].Clone())
			}},
			{"extra", func(schema *parquet.Schema, rows []parquet.Row, at int) []parquet.Row {
				r := rows[at].Clone()
				set(schema, r, kind.column, "extra")
				return append(rows, r)
			}},
			{"foreign", func(schema *parquet.Schema, rows []parquet.Row, at int) []parquet.Row {
				r := rows[at].Clone()
				set(schema, r, kind.column, "foreign")
				set(schema, r, "project_id", "pr_2")
				return append(rows, r)
			}},
			{"stale", func(schema *parquet.Schema, rows []parquet.Row, at int) []parquet.Row {
				set(schema, rows[at], kind.text, "changed")
				return rows
			}},
			{"stale", func(schema *parquet.Schema, rows []parquet.Row, at int) []parquet.Row {
				set(schema, rows[at], "seq", int64(1)<<50)
				return rows
			}},
		} {
			key := fmt.Sprintf(strings.ReplaceAll(kind.key, "/%d", fmt.Sprintf("/%d", 2*i)), i)
			says := key
			if one.fault == "extra" || one.fault == "foreign" {
				says = one.fault
			}
			rows = append(rows, copytest.Injury{Name: one.fault + " " + key, Do: func(t *testing.T) []string {
				m := l.manifest(t)
				for _, f := range map[string][]file{"entry": m.entries(), "event": m.Events}[kind.name] {
					if slices.ContainsFunc(rowsIn(t, f.Path, l.objects(t)[f.Path]), func(r copytest.Row) bool { return r[kind.column] == key }) {
						l.edit(t, f.Path, func(schema *parquet.Schema, rows []parquet.Row) []parquet.Row {
							column, _ := schema.Lookup(kind.column)
							return one.change(schema, rows, slices.IndexFunc(rows, func(r parquet.Row) bool { return r[column.ColumnIndex].String() == key }))
						})
						return []string{one.fault + " " + kind.name + " " + says, "stale file " + f.Path}
					}
				}
				t.Fatalf("no row of %s", key)
				return nil
			}})
		}
	}
	none := func(_ *parquet.Schema, _ []parquet.Row) []parquet.Row { return nil }
	removals := func(m manifest) []file { return m.Removals }
	all := [][]copytest.Injury{append(rows,
		injury("a title", func(m manifest) []file { return m.Embeddables }, setting("title", "x"), "stale embeddable emb_1"),
		injury("a version", func(m manifest) []file { return m.Versions }, func(_ *parquet.Schema, rows []parquet.Row) []parquet.Row { return rows[1:] }, "missing embeddable_version emb_1/1"),
		injury("an experiment", func(m manifest) []file { return m.Experiments }, setting("status", "x"), "stale experiment exp_emb_1"),
		injury("a history", func(m manifest) []file { return m.History }, func(_ *parquet.Schema, rows []parquet.Row) []parquet.Row { return append(rows, rows...) },
			"doubled experiment_status exp_emb_1/1"),
	), {
		injury("removals, and older states of what they removed", removals, none, "missing entry_removed en_28", "missing entry_removed en_29",
			"extra entry en_29", "extra event en_28/56", "extra event en_28/57", "extra event en_29/58", "extra event en_29/59"),
	}, {
		injury("removals", removals, none, "missing entry_removed en_28", "missing entry_removed en_29"), // the repair has removed the older states
		injury("a column of entry_data", manifest.entries, setting("n", 99.0)),
	}, {
		injury("times of removals", removals, setting("removed_at", int64(7)), "stale entry_removed en_28", "stale entry_removed en_29"),
		injury("a removal that never was", removals, func(schema *parquet.Schema, rows []parquet.Row) []parquet.Row {
			r := rows[0].Clone()
			set(schema, r, "seq", int64(1)<<60)
			set(schema, r, "entry_id", "en_5")
			return append(rows, r)
		}, "extra entry_removed en_5", "missing entry en_5", "missing event en_5/10", "missing event en_5/11"),
	}, {{Name: "rows and numbers in the manifest", Do: func(t *testing.T) []string {
		m := l.manifest(t)
		l.editManifest(t, func(entries, events []any) {
			entries[0].(row)["files"].([]any)[0].(row)["first_seq"] = 1
			events[0].(row)["rows"] = 1
		})
		return []string{"stale file " + m.Entries[0].Files[0].Path, "stale file " + m.Events[0].Path}
	}}}, {{Name: "embeddables in the manifest", Do: func(t *testing.T) (names []string) {
		for _, r := range l.Read(t)["entries"] {
			names = append(names, "stale entry "+r["entry_id"].(string))
		}
		l.editManifest(t, func(entries, _ []any) {
			one, other := entries[0].(row), entries[1].(row)
			one["embeddable_id"], other["embeddable_id"] = other["embeddable_id"], one["embeddable_id"]
		})
		return names
	}}}}
	if _, ok := l.place.(*bucket); ok {
		return all[3:] // the others are the same as in a folder
	}
	return all
}
