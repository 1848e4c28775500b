package copiestest

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/internal/copytest"
	"github.com/lectern-dev/lectern/copies/internal/since"
	"github.com/lectern-dev/lectern/copies/postgres"
	"github.com/lectern-dev/lectern/shared/testing/golden"
)

// trial returns a list of revisions in which the newest revision has added columns and a table that copies have today.
func trial(number int64) since.Table {
	all := maps.Clone(since.Copies.Since)
	for _, name := range []string{"entries.contact_id", "events.view_type", "events.total_pages", "embeddables.title", "experiments.name", "experiment_history"} {
		all[name] = since.Copies.Number + 1
	}
	return since.Table{Since: all, Number: since.Copies.Number + number}
}

// shapeOf is a query for the columns of the tables in a schema, with their types.
const shapeOf = `SELECT string_agg(format('%%s.%%s %%s %%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'not null' ELSE '' END),
	E'\n' ORDER BY c.relname, a.attname COLLATE "C")
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped WHERE c.relkind = 'r' AND c.relnamespace = '%q'::regnamespace`

// TestPostgresGains checks that a newer version adds its columns to the copy of an older version, whenever a process is
// killed. The older version can continue the copy in between.
func TestPostgresGains(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	var notes []string
	o := w.options()
	o.Note = func(text string) { notes = append(notes, text) }
	const older, newer = 0, 1
	at := func(number int64) *postgres.Destination {
		t.Helper()
		d, err := postgres.NewAt(o, trial(number))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	run := func(number int64, cut int) error {
		t.Helper()
		_, err := w.Sync(t.Context(), copytest.Small(copytest.CutContext(at(number), cut)), nil)
		return err
	}
	sync := func(number int64) {
		t.Helper()
		if err := run(number, 0); err != nil {
			t.Fatal(err)
		}
	}
	said := func(text string) bool { return strings.Contains(strings.Join(notes, "\n"), text) }
	look := func() string {
		t.Helper()
		state, _, err := at(newer).Look(t.Context())
		if err != nil {
			return err.Error()
		}
		if err := state.Close(); err != nil {
			t.Error(err)
		}
		return ""
	}
	const view, state = in + `entries_of_emb_1`, ` FROM ` + in + `lectern_sync`
	const unfilled = "has not yet all values of the columns"

	w.Define("emb_1", 2, client.Running, 1)
	w.Fill(0, 30)
	w.Person("en_ada", "Ada")
	// A key has the name of a column that the newer version adds.
	w.Put(copytest.Of("emb_2", copytest.Entry("taken", 1, `{"k":"mine"}`)))
	sync(older)
	w.exec(t, `UPDATE `+in+`lectern_columns SET name = 'contact_id' WHERE key = 'k'; DROP VIEW `+in+`entries_of_emb_2`)
	sync(older)
	if columns := w.value(t, fmt.Sprintf(shapeOf, "Copy of shop")); strings.Contains(columns, "entries.contact_id") || strings.Contains(columns, "experiment_history.") {
		t.Fatalf("the older version makes columns of the newer: %s", columns)
	}
	// Users have a view and grants.
	w.exec(t, `CREATE VIEW public.report AS SELECT entry_id, n FROM `+view+`; GRANT SELECT ON `+view+`, `+in+`entries TO pg_monitor`)
	if err := look(); !strings.Contains(err, unfilled) {
		t.Errorf("a verification of the older copy: %v", err)
	}
	reader, err := w.sql.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), `SELECT FROM `+in+`entries`); err != nil {
		t.Fatal(err)
	}
	if err := run(newer, 0); err == nil || !strings.Contains(err.Error(), "a query holds the table entries") {
		t.Errorf("while a query holds the table: %v", err)
	}
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	cut := 1
	for step := 0; ; step++ {
		err := run(newer, cut)
		if err == nil {
			break
		}
		if step%2 == 1 {
			mark := w.value(t, `SELECT coalesce(unfilled_from, seq)::text`+state)
			id := fmt.Sprintf("en_%d", step)
			e, v := copytest.Entry(id, step, fmt.Sprintf(`{"later_%d":1}`, step)), copytest.Event(id, 2*step)
			e.ContactID, v.ViewType, v.TotalPages = "another", nil, nil
			w.Put(e, v, copytest.Event(id, 500+step))
			w.Remove(client.Purged, fmt.Sprintf("en_%d", 29-step))
			w.Define("emb_1", 2, client.Paused, step)
			sync(older)
			if got := w.value(t, `SELECT coalesce(unfilled_from, -1)::text`+state); got != mark {
				t.Errorf("the older version marks rows from %s on, want %s", got, mark)
			}
			if err := look(); !strings.Contains(err, unfilled) {
				t.Errorf("a verification before the newer version has filled the rows: %v", err)
			}
		}
		cut += 1 + cut/4
	}
	if cut < 20 {
		t.Errorf("a run has %d steps", cut)
	}
	equal := func() {
		t.Helper()
		w.check(t)
		if names, left := w.Verify(t, at(newer), nil); left != 0 {
			t.Errorf("differences %q", names)
		}
		if got := w.value(t, `SELECT (unfilled_from IS NULL AND unfilled_cursor IS NULL)::text`+state); got != "true" {
			t.Error("the state says that rows lack values")
		}
	}
	equal()
	if !said("added to the copy: entries.contact_id, events.total_pages, events.view_type, embeddables.title, experiments.name, experiment_history.") || !said("leaves the columns empty in rows after change") {
		t.Errorf("notes: %q", notes)
	}
	if got := w.value(t, `SELECT (SELECT count(n) FROM public.report) || ' ' || (SELECT count(*) FROM `+view+` WHERE contact_id = 'co_ü') || ' '
		|| has_table_privilege('pg_monitor', '`+view+`', 'SELECT') || has_table_privilege('pg_monitor', '`+in+`entries', 'SELECT')`); strings.HasPrefix(got, "0") || strings.Contains(got, " 0") || !strings.HasSuffix(got, "truetrue") {
		t.Errorf("the report, the view and the grants: %s", got)
	}
	if got := w.value(t, `SELECT contact_id FROM `+in+`entries_of_emb_2`); got != "mine" {
		t.Errorf("a key whose name the newer version took shows %q", got)
	}
	w.Put(copytest.Entry("en_1", 900, `{"newest":1}`)) // adds a column of a key after the column that the version added
	sync(newer)
	w.exec(t, `SELECT contact_id, later_1, newest FROM `+view)
	if said("is not up to date") {
		t.Errorf("a view was not replaced: %q", notes)
	}

	// A repair by the older version loses values of the newer, which the newer fills again.
	w.exec(t, `DELETE FROM `+in+`entries WHERE entry_id = 'en_0'`)
	d := at(older)
	if _, err := d.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	changes := []client.Change{}
	for page, err := range w.Client.Changes(t.Context(), copytest.Project, client.ChangeQuery{PageSize: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, page.Changes...)
	}
	if err := d.Mend(t.Context(), &copies.Mending{Put: func(yield func([]client.Change, error) bool) { yield(changes, nil) }}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	sync(newer)
	equal()

	fresh := o
	fresh.Schema = "fresh"
	other, err := postgres.NewAt(fresh, trial(newer))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Sync(t.Context(), other, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.value(t, fmt.Sprintf(shapeOf, "fresh")), w.value(t, fmt.Sprintf(shapeOf, "Copy of shop"))); diff != "" {
		t.Errorf("-new copy +continued: %s", diff)
	}

	w.exec(t, `ALTER TABLE `+in+`entries RENAME contact_id TO c`)
	if err := run(newer, 0); err == nil || !strings.Contains(err.Error(), "lacks the column contact_id (text)") {
		t.Errorf("without a column that was added before: %v", err)
	}
	w.exec(t, `UPDATE `+in+`lectern_sync SET layout = 9`)
	if err := run(older, 0); err == nil || !strings.Contains(err.Error(), "has a copy of layout 9") {
		t.Errorf("another layout: %v", err)
	}
}

// TestPostgresRevisions pins the tables of version 0.1.0. If this test fails, a version has a new column or table: name it
// in since.Copies with the next revision. Only a new layout changes the golden file.
func TestPostgresRevisions(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.mustSync(t, w.options())
	first, last := []string{}, int64(0)
	for line := range strings.Lines(w.value(t, fmt.Sprintf(shapeOf, "Copy of shop")) + "\n") {
		column, _, _ := strings.Cut(line, " ")
		table, _, _ := strings.Cut(column, ".")
		added := max(since.Copies.Since[column], since.Copies.Since[table])
		if last = max(last, added); added == 0 {
			first = append(first, line)
		}
	}
	golden.Check(t, "testdata/tables-0.1.0.txt", strings.Join(first, ""))
	if last != since.Copies.Number {
		t.Errorf("the newest revision of a column is %d, and the version writes %d", last, since.Copies.Number)
	}

	// A copy from before the first revision goes on.
	w.exec(t, `ALTER TABLE `+in+`lectern_sync DROP revision, DROP unfilled_from, DROP unfilled_cursor`)
	w.Fill(0, 3)
	w.mustSync(t, w.options())
	w.check(t)
	if got := w.value(t, `SELECT revision::text FROM `+in+`lectern_sync`); got != fmt.Sprint(since.Copies.Number) {
		t.Errorf("the revision is %s", got)
	}
}
