package replicate_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/cli/internal/replicate"
)

// rounds returns how often a test repeats: short, or long if the long tests run.
func rounds(short, long int) int {
	if os.Getenv("LECTERN_LONG") == "1" {
		return long
	}
	return short
}

// verify returns the names of what differs, sorted, and how many differences are left.
func verify(t *testing.T, s *source, d replicate.Destination, repair bool) (names []string, left int64) {
	t.Helper()
	found, err := replicate.Verify(t.Context(), replicate.Verification{
		Options: replicate.Options{Client: s.client, Source: s.is(), Destination: d, PageSize: 50, Attempts: 20},
		Folder:  t.TempDir(), Repair: repair,
		Name: func(d replicate.Difference) error {
			names = append(names, fmt.Sprintf("%s %s %s", d.Fault, d.Type, d.Key))
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

func TestVerifyPostgres(t *testing.T) {
	w := newWarehouse(t)
	w.fill(t, 0, 40)
	w.MustIngest(t, "entries", entry("odd", 1, `{"a":"\u0000","b":1e200000}`), entry("numbers", 1, `{"b":1.50,"a":1e3,"a":[1,  2]}`))
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
	check()
	for range rounds(8, 70) {
		injured := injure()
		check(injured)
		if got, left := verify(t, w.source, d, true); left != 0 || len(got) != 1 {
			t.Fatalf("repaired %q, and %d are left", got, left)
		}
		w.check(t)
	}
	if v, err := d.Verified(t.Context()); err != nil || v.Differences != 0 || v.At.IsZero() {
		t.Errorf("%+v, %v", v, err)
	}
	w.exec(t, `ALTER TABLE "Copy of shop".entries DROP CONSTRAINT entries_pkey`)
	k := key("entries", "entry_id")
	w.exec(t, `INSERT INTO "Copy of shop".entries SELECT * FROM "Copy of shop".entries WHERE entry_id = '`+k+`'`)
	check("doubled entry " + k)
	if v, err := d.Verified(t.Context()); err != nil || v.Differences != 1 {
		t.Errorf("%+v, %v", v, err)
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
func TestVerifyDuringWrites(t *testing.T) {
	w := newWarehouse(t)
	w.fill(t, 0, 60)
	w.mustSync(t, w.options())
	defer writing(t, w.source)()
	for range rounds(5, 70) {
		copied := make(chan error, 1)
		go func() {
			_, err := w.sync(t.Context(), w.open(t, w.options()))
			copied <- err
		}()
		got, _ := verify(t, w.source, w.open(t, w.options()), false)
		if err := <-copied; err != nil || len(got) > 0 {
			t.Fatalf("%v, invented: %s", err, strings.Join(got, ", "))
		}
	}
}
