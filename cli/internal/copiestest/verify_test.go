package copiestest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"

	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/files"
	"github.com/lectern-dev/lectern/copies/postgres"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// verify returns the names of what differs, sorted, and how many differences are left.
func verify(t *testing.T, s *source, d copies.Destination, repair bool) (names []string, left int64) {
	t.Helper()
	found, err := copies.Verify(t.Context(), copies.Verification{
		Options: copies.Options{Client: s.client, Source: s.is(), Destination: d, Project: true, PageSize: 50, Attempts: 20},
		Folder:  t.TempDir(), Repair: repair,
		Name: func(d copies.Difference) error {
			names = append(names, fmt.Sprintf("%s %s %s", d.Fault, d.Type, d.ID))
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, n := range found.Counts {
		sum += n
	}
	if sum != int64(len(names)) {
		t.Errorf("%v, and %d names", found.Counts, len(names))
	}
	slices.Sort(names)
	return names, found.Left
}

func TestVerifyPostgres(t *testing.T) { testVerifyPostgres(t, 5) }

func TestLongVerifyPostgres(t *testing.T) {
	needs.Long(t)
	testVerifyPostgres(t, 30)
}

// testVerifyPostgres injures a copy, as often as rounds says.
func testVerifyPostgres(t *testing.T, rounds int) {
	w := newWarehouse(t)
	w.source = newWholeSource(t)
	w.define(t, "emb_1", 2, "running", 1)
	w.fill(t, 0, 40)
	w.MustIngest(t, "entries", entry("odd", 1, `{"a":"\u0000","b":1e200000}`), entry("numbers", 1, `{"b":1.50,"a":1e3,"a":[1,  2]}`), entry("misfit", 1, `{"n":"x","text":"t"}`))
	w.mustSync(t, w.options())
	w.remove(t, "purged", "en_38", "en_39")
	w.MustIngest(t, "entries", entry("en_38", 901, `{"back":1}`))
	w.mustSync(t, w.options())
	const in = `"Copy of shop".`
	key := func(table, column string) string {
		return w.value(t, `SELECT `+column+` FROM `+in+table+` ORDER BY random() LIMIT 1`)
	}
	n := 0
	injure := func() (want string) {
		if rand.IntN(3) == 0 {
			small := [][2]string{
				{`DELETE FROM ` + in + `embeddables`, "missing embeddable emb_1"}, {`UPDATE ` + in + `embeddables SET definition = 'x'`, "stale embeddable emb_1"},
				{`INSERT INTO ` + in + `embeddables VALUES ('emb_9', '', '', '', '')`, "extra embeddable emb_9"},
				{`DELETE FROM ` + in + `embeddable_versions WHERE version_number = 2`, "missing embeddable_version emb_1/2"},
				{`UPDATE ` + in + `embeddable_versions SET saved_at = now() WHERE version_number = 1`, "stale embeddable_version emb_1/1"},
				{`UPDATE ` + in + `experiments SET no_impact_metrics = NULL`, "stale experiment exp_emb_1"}, {`UPDATE ` + in + `experiments SET hypothesis = ''`, "stale experiment exp_emb_1"},
				{`DELETE FROM ` + in + `experiment_history`, "missing experiment_status exp_emb_1/1"}, {`UPDATE ` + in + `experiment_history SET status = NULL`, "stale experiment_status exp_emb_1/1"},
				{`UPDATE ` + in + `entries SET entry_columns = NULL WHERE entry_id = 'misfit'`, "stale entry misfit"}, {`UPDATE ` + in + `entries SET entry_columns = '{"n": 99}' WHERE entry_id = 'en_7'`, "stale entry en_7"},
			}
			one := small[rand.IntN(len(small))]
			w.exec(t, one[0])
			return one[1]
		}
		table, column, kind := "entries", "entry_id", "entry"
		if rand.IntN(2) == 0 {
			table, column, kind = "events", "event_key", "event"
		}
		k := key(table, column)
		at := ` WHERE ` + column + ` = '` + k + `'`
		content := map[string][]string{
			"entries": {`entry_data = '{"other":1}'`, `contact_id = 'other'`, `updated_at = updated_at + interval '1 us'`, `entry_data = NULL`, `seq = seq - 1`, `entry_data_text = 'x', entry_data = NULL`},
			"events":  {`url = NULL`, `page_index = page_index + 1`, `"timestamp" = now()`, `entry_id = 'other'`, `seq = seq + 1000000000000`},
		}[table]
		another := func(project string) {
			n++
			k = fmt.Sprintf("another %d", n)
			w.exec(t, `CREATE TEMP TABLE one AS SELECT * FROM `+in+table+at)
			w.exec(t, `UPDATE one SET project_id = '`+project+`', `+column+` = '`+k+`'; INSERT INTO `+in+table+` SELECT * FROM one; DROP TABLE one`)
		}
		switch rand.IntN(5) {
		case 0:
			w.exec(t, `DELETE FROM `+in+table+at)
			return "missing " + kind + " " + k
		case 1:
			w.exec(t, `UPDATE `+in+table+` SET removed_at = now()`+at)
			return "missing " + kind + " " + k
		case 2:
			another(project)
			return "extra " + kind + " " + k
		case 3:
			another("pr_2")
			return "foreign " + kind + " " + k
		}
		w.exec(t, `UPDATE `+in+table+` SET `+content[rand.IntN(len(content))]+at)
		return "stale " + kind + " " + k
	}
	d := w.open(t, w.options())
	check := func(want ...string) {
		t.Helper()
		if got, left := verify(t, w.source, d, false); left != int64(len(want)) || cmp.Diff(want, got) != "" {
			t.Errorf("%d left, -want +got: %s", left, cmp.Diff(want, got))
		}
	}
	mended := func(injuries ...string) {
		t.Helper()
		check(injuries...)
		if got, left := verify(t, w.source, d, true); left != 0 || len(got) != len(injuries) {
			t.Fatalf("repaired %q, and %d are left", got, left)
		}
		w.check(t)
	}
	check()
	// An event of another entry is one difference, although the comparison finds it in two places.
	k := key("events", "event_key")
	w.exec(t, `UPDATE `+in+`events SET entry_id = 'other' WHERE event_key = '`+k+`'; DELETE FROM `+in+`embeddables; UPDATE `+in+`experiment_history SET status = NULL`)
	mended("missing embeddable emb_1", "stale event "+k, "stale experiment_status exp_emb_1/1")
	if text := w.value(t, `SELECT title || status FROM `+in+`embeddables, `+in+`experiment_history`); text != "Title ürunning" {
		t.Errorf("a repair writes no embeddables and experiments again: %s", text)
	}
	// A row has one form of entry_data, and no reason of a removal.
	w.exec(t, `UPDATE `+in+`entries SET entry_data_text = '' WHERE entry_id = 'en_7'; UPDATE `+in+`entries SET removal_reason = 'x' WHERE entry_id = 'odd';
		UPDATE `+in+`events SET removal_reason = 'x' WHERE event_key = '`+k+`'`)
	mended("stale entry en_7", "stale entry odd", "stale event "+k)
	for range rounds {
		mended(injure())
	}
	w.exec(t, `DELETE FROM `+in+`lectern_columns WHERE key = 'text'; UPDATE `+in+`lectern_columns SET position = position + 10`)
	if got, left := verify(t, w.source, d, true); left != 0 || len(got) != 1 || !strings.HasPrefix(got[0], "stale entry en_") {
		t.Errorf("a lost column: %q, %d are left", got, left)
	}
	check()
	if s, err := d.Status(t.Context()); err != nil || s.Verified.Differences != 0 || s.Verified.At.IsZero() {
		t.Errorf("%+v, %v", s, err)
	}
	w.exec(t, `ALTER TABLE "Copy of shop".entries DROP CONSTRAINT entries_pkey`)
	k = key("entries", "entry_id")
	w.exec(t, `INSERT INTO "Copy of shop".entries SELECT * FROM "Copy of shop".entries WHERE entry_id = '`+k+`'`)
	check("doubled entry " + k)
	if s, err := d.Status(t.Context()); err != nil || s.Verified.Differences != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// edit changes the rows of a file of a copy, without its process.
func (l *lake) edit(t *testing.T, name string, change func(schema *parquet.Schema, rows []parquet.Row) []parquet.Row) {
	t.Helper()
	path := filepath.Join(l.path, name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var all []parquet.Row
	for _, group := range f.RowGroups() {
		rows := group.Rows()
		for {
			one := make([]parquet.Row, 1)
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
	if err := errors.Join(w.Close(), os.WriteFile(path, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyFiles(t *testing.T) {
	t.Parallel()
	l := &lake{path: filepath.Join(t.TempDir(), "copy of shop")}
	testVerifyFiles(t, l, 2, func(o files.Options) *files.Destination { return files.Folder(l.path, o) })
}

func TestLongVerifyBucket(t *testing.T) {
	g := newGateway(t)
	l := &lake{path: filepath.Join(g.folder, "lake", "copies", "shop")} // the server keeps objects as files
	testVerifyFiles(t, l, 8, func(o files.Options) *files.Destination {
		d, err := files.Bucket("lake", "copies/shop", g.environ(), o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

// testVerifyFiles injures a copy n times.
func testVerifyFiles(t *testing.T, l *lake, n int, at func(files.Options) *files.Destination) {
	l.source = newWholeSource(t)
	open := func() smallFiles {
		return smallFiles{at(files.Options{Source: l.is(), Columns: columns.Choice{All: true}})}
	}
	repairing := at(files.Options{Source: l.is(), Columns: columns.Choice{All: true}, Repair: true})
	sync := func() {
		t.Helper()
		if _, err := l.sync(t.Context(), open()); err != nil {
			t.Fatal(err)
		}
	}
	l.define(t, "emb_1", 2, "running", 1)
	l.fill(t, 0, 40)
	l.MustIngest(t, "entries", entry("odd", 1, `{"a":"\u0000","b":1e200000}`), of("emb_2", entry("other", 1, `{"b":1.50}`)))
	sync()
	l.remove(t, "purged", "en_38", "en_39")
	l.MustIngest(t, "entries", entry("en_38", 901, `{"back":1}`), entry("en_37", 902, `{}`), of("emb_3", entry("en_36", 903, `{}`)))
	sync()
	made := 0
	var removals []string
	injure := func() (want []string) {
		if rand.IntN(3) == 0 {
			m := l.manifest(t)
			list := []struct {
				path   string
				change func(schema *parquet.Schema, rows []parquet.Row) []parquet.Row
				says   []string
			}{
				{m.Removals[0].Path, func(_ *parquet.Schema, _ []parquet.Row) []parquet.Row { return nil }, removals},
				{m.Removals[0].Path, setting(t, "removed_at", int64(7)), []string{"stale entry_removed en_38", "stale entry_removed en_39"}},
				{m.Embeddables[0].Path, setting(t, "title", "x"), []string{"stale embeddable emb_1"}},
				{m.Versions[0].Path, func(_ *parquet.Schema, rows []parquet.Row) []parquet.Row { return rows[1:] }, []string{"missing embeddable_version emb_1/1"}},
				{m.Experiments[0].Path, setting(t, "status", "x"), []string{"stale experiment exp_emb_1"}},
				{m.History[0].Path, func(_ *parquet.Schema, rows []parquet.Row) []parquet.Row { return append(rows, rows...) }, []string{"doubled experiment_status exp_emb_1/1"}},
				{m.entries()[0].Path, setting(t, "n", 99.0), nil}, // a column of entry_data
			}
			one := list[rand.IntN(len(list))]
			l.edit(t, one.path, one.change)
			return slices.Sorted(slices.Values(append([]string{"stale file " + one.path}, one.says...)))
		}
		column, kind, list := "entry_id", "entry", l.manifest(t).entries()
		current := l.copied(t)
		live, text := current.entries, "entry_data"
		if rand.IntN(2) == 0 {
			column, kind, list, live, text = "event_key", "event", l.manifest(t).Events, current.events, "url"
		}
		list = slices.DeleteFunc(list, func(f file) bool { return f.Rows == 0 })
		path := list[rand.IntN(len(list))].Path
		defer func() { want = append(want, "stale file "+path); slices.Sort(want) }()
		l.edit(t, path, func(schema *parquet.Schema, rows []parquet.Row) []parquet.Row {
			at := func(name string) int {
				leaf, ok := schema.Lookup(name)
				if !ok {
					t.Fatalf("no column %s", name)
				}
				return leaf.ColumnIndex
			}
			set := func(r parquet.Row, name string, v any) {
				i := at(name)
				r[i] = parquet.ValueOf(v).Level(0, r[i].DefinitionLevel(), i)
			}
			i := rand.IntN(len(rows))
			for _, r := range rows[i:] { // one that is current, and has no history
				if k := r[at(column)].String(); live[k]["seq"] == r[at("seq")].Int64() && !slices.Contains([]string{"en_36", "en_37", "en_38"}, live[k]["entry_id"].(string)) {
					break
				}
				i++
			}
			if i == len(rows) {
				return rows
			}
			k, r := rows[i][at(column)].String(), rows[i].Clone()
			say := func(fault, key string) { want = []string{fault + " " + kind + " " + key} }
			made++
			another := fmt.Sprintf("another %d", made)
			switch rand.IntN(7) {
			case 0:
				say("missing", k)
				return slices.Delete(rows, i, i+1)
			case 1:
				say("doubled", k)
				return slices.Insert(rows, rand.IntN(len(rows)), r)
			case 2:
				say("extra", another)
				set(r, column, another)
				return append(rows, r)
			case 3:
				say("foreign", another)
				set(r, column, another)
				set(r, "project_id", "pr_2")
				return append(rows, r)
			case 4:
				say("stale", k)
				set(rows[i], text, "changed")
			case 5:
				say("stale", k)
				set(rows[i], "contact_id", "changed")
			case 6:
				say("stale", k)
				set(rows[i], "seq", r[at("seq")].Int64()-1+2_000_000_000_000*rand.Int64N(2))
			}
			return rows
		})
		return want
	}
	check := func(want []string) {
		t.Helper()
		if got, left := verify(t, l.source, open(), false); left != int64(len(want)) || cmp.Diff(want, got, cmpopts.EquateEmpty()) != "" {
			t.Errorf("%d left, -want +got: %s", left, cmp.Diff(want, got))
		}
	}
	check(nil)
	// Without its removals, the copy shows the older states of removed entries.
	path := l.manifest(t).Removals[0].Path
	l.edit(t, path, func(_ *parquet.Schema, _ []parquet.Row) []parquet.Row { return nil })
	removals, _ = verify(t, l.source, open(), false)
	removals = slices.DeleteFunc(removals, func(name string) bool { return name == "stale file "+path })
	if !slices.Contains(removals, "missing entry_removed en_38") || !slices.Contains(removals, "missing entry_removed en_39") || !strings.HasPrefix(removals[0], "extra ") {
		t.Errorf("without removals: %q", removals)
	}
	if _, left := verify(t, l.source, repairing, true); left != 0 {
		t.Fatalf("%d are left", left)
	}
	removals = []string{"missing entry_removed en_38", "missing entry_removed en_39"} // the repair has removed the states
	check(nil)
	l.flip(t, open, n)
	for range n {
		check(injure())
		if _, left := verify(t, l.source, repairing, true); left != 0 {
			t.Fatalf("%d are left", left)
		}
		check(nil)
		l.check(t)
	}
	l.fill(t, 40, 1)
	sync() // a second file of events
	for _, lose := range []func(path string) error{os.Remove, func(path string) error { return os.Truncate(path, 100) }} {
		was := l.manifest(t)
		lost, embeddables := slices.MaxFunc(was.Events, func(a, b file) int { return a.Rows - b.Rows }), was.Embeddables[0]
		if err := errors.Join(lose(filepath.Join(l.path, lost.Path)), lose(filepath.Join(l.path, embeddables.Path))); err != nil {
			t.Fatal(err)
		}
		fails := func(d copies.Destination, says string) {
			t.Helper()
			_, err := copies.Verify(t.Context(), copies.Verification{
				Options: copies.Options{Client: l.client, Source: l.is(), Destination: d, PageSize: 50, Attempts: 1}, Folder: t.TempDir(), Repair: d == repairing,
				Name: func(copies.Difference) error { return errors.New("killed") },
			})
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v; want %q", err, says)
			}
		}
		fails(repairing, "killed") // a repair that ends early leaves the copy as it is
		fails(open(), ".parquet")
		if got, left := verify(t, l.source, repairing, true); left != 0 || len(got) == 0 {
			t.Errorf("mended %q, %d are left", got, left)
		}
		l.check(t)
		l.rowsOf(t, l.manifest(t).Embeddables[0].Path, 1)
		if now := l.manifest(t).Events; len(now) < 2 || len(now) != len(was.Events) || now[slices.Index(was.Events, lost)].Rows == 0 {
			t.Errorf("the rows of %+v are in other files: %+v, before %+v", lost, now, was.Events)
		}
	}
	// A removal that never was hides rows.
	l.edit(t, l.manifest(t).Removals[0].Path, func(schema *parquet.Schema, rows []parquet.Row) []parquet.Row {
		r := rows[0].Clone()
		seq, _ := schema.Lookup("seq")
		id, _ := schema.Lookup("entry_id")
		r[seq.ColumnIndex] = parquet.ValueOf(int64(1)<<60).Level(0, 0, seq.ColumnIndex)
		r[id.ColumnIndex] = parquet.ValueOf("en_5").Level(0, 0, id.ColumnIndex)
		return append(rows, r)
	})
	if got, left := verify(t, l.source, repairing, true); left != 0 || len(got) != 5 || got[0] != "extra entry_removed en_5" || got[1] != "missing entry en_5" {
		t.Errorf("mended %q, %d are left", got, left)
	}
	l.check(t)
	l.fill(t, 40, 3)
	sync() // joins files that were repaired
	l.check(t)
}

// setting returns a change that sets a column of all rows.
func setting(t *testing.T, name string, v any) func(schema *parquet.Schema, rows []parquet.Row) []parquet.Row {
	return func(schema *parquet.Schema, rows []parquet.Row) []parquet.Row {
		leaf, ok := schema.Lookup(name)
		if !ok {
			t.Fatalf("no column %s", name)
		}
		for _, r := range rows {
			i := leaf.ColumnIndex
			r[i] = parquet.ValueOf(v).Level(0, leaf.MaxDefinitionLevel, i)
		}
		return rows
	}
}

// flip flips a bit of a random file n times. A verification names the file each time.
func (l *lake) flip(t *testing.T, open func() smallFiles, n int) {
	t.Helper()
	m := l.manifest(t)
	var paths []string
	for _, f := range slices.Concat(m.entries(), m.Events, m.Removals, m.Embeddables, m.Versions, m.Experiments, m.History) {
		paths = append(paths, filepath.Join(l.path, f.Path))
	}
	for range n {
		path := paths[rand.IntN(len(paths))]
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bad := slices.Clone(data)
		i := rand.IntN(len(bad))
		bad[i] ^= 1 << rand.IntN(8)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		var named []string
		_, err = copies.Verify(t.Context(), copies.Verification{
			Options: copies.Options{Client: l.client, Source: l.is(), Destination: open(), PageSize: 50, Attempts: 1}, Folder: t.TempDir(),
			Name: func(d copies.Difference) error { named = append(named, d.ID); return nil },
		})
		if says := fmt.Sprint(named, err); !strings.Contains(says, filepath.Base(path)) {
			t.Errorf("bit of byte %d of %s: %s", i, path, says)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// writing writes and removes until the returned function is called.
func writing(t *testing.T, s *source) (stop func()) {
	stopping, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stopping:
				return
			default:
			}
			s.fill(t, i%50, 20) // most of them again
			s.remove(t, "purged", fmt.Sprintf("en_%d", i%40), fmt.Sprintf("en_%d", 40+i%20))
		}
	}()
	return func() { close(stopping); <-stopped }
}

// A sound copy has no differences, although sources write and another process copies meanwhile.
func TestVerifyDuringWrites(t *testing.T) { testVerifyDuringWrites(t, 2) }

func TestLongVerifyDuringWrites(t *testing.T) {
	needs.Long(t)
	testVerifyDuringWrites(t, 10)
}

func testVerifyDuringWrites(t *testing.T, n int) {
	w := newWarehouse(t)
	l := &lake{w.source, filepath.Join(t.TempDir(), "copy")}
	w.fill(t, 0, 60)
	w.mustSync(t, w.options())
	l.mustSync(t)
	defer writing(t, w.source)()
	for range n {
		for _, d := range []copies.Destination{w.open(t, w.options()), l.open()} {
			copied := make(chan error, 1)
			go func() {
				_, err := w.sync(t.Context(), d)
				copied <- err
			}()
			var checked copies.Destination = l.open()
			if _, ok := d.(*postgres.Destination); ok {
				checked = w.open(t, w.options())
			}
			got, _ := verify(t, w.source, checked, false)
			if err := <-copied; err != nil || len(got) > 0 {
				t.Fatalf("%v, invented: %s", err, strings.Join(got, ", "))
			}
		}
	}
}
