package app

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// positionOf returns the number of the newest change of the project. A reader with all changes has this position.
func positionOf(t testing.TB, s *servicetest.Service, key string) int64 {
	t.Helper()
	_, a := changesOf(t, s, key, feed+"?after=now")
	n, err := strconv.ParseInt(a.Header.Get("X-Last-Seq"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// answerAt describes what a reader at a position gets: the changes, or the stretch that is lost.
func answerAt(t testing.TB, s *servicetest.Service, key string, position int64) string {
	t.Helper()
	a := s.Get(t, key, fmt.Sprintf("%s?after=%d", feed, position))
	if a.Status == http.StatusGone {
		return lostBy(t, a)
	}
	var list []object
	a.JSON(t, &list)
	return kinds(list)
}

// lostBy describes the stretch that an answer says is lost.
func lostBy(t testing.TB, a servicetest.Answer) string {
	t.Helper()
	var lost struct {
		Error     struct{ Code string }
		ProjectID string
		After     int64
		Until     *int64
	}
	a.JSON(t, &lost)
	until := "null"
	if lost.Until != nil {
		until = strconv.FormatInt(*lost.Until, 10)
	}
	return fmt.Sprintf("%d %s of %s after %d until %s", a.Status, lost.Error.Code, lost.ProjectID, lost.After, until)
}

func lost(after int64, until any) string {
	return fmt.Sprintf("410 history_lost of %s after %d until %v", project, after, until)
}

// untilOf returns the end of the newest stretch that the project has lost.
func untilOf(t testing.TB, s *servicetest.Service) int64 {
	t.Helper()
	return int64(queryInt(t, s, `SELECT max(until) FROM lost_numbers WHERE project_id = $1`, project))
}

// grownOld makes the project as old as one whose numbers follow the clock.
func grownOld(t testing.TB, s *servicetest.Service) {
	t.Helper()
	const hour = `3600000000`
	s.Exec(t, `UPDATE project_changes SET last_seq = last_seq - `+hour+` WHERE project_id = $1`, project)
	s.Exec(t, `UPDATE entries SET seq = seq - `+hour+` WHERE project_id = $1`, project)
	s.Exec(t, `DELETE FROM lost_numbers WHERE project_id = $1`, project)
}

// TestRestores checks that a reader with lost changes gets 410, before and after the next change. No other reader does.
func TestRestores(t *testing.T) {
	t.Parallel()
	primary := pgtest.PrivatePrimary(t)
	redis := redistest.Start(t)
	keys := authtest.New(t, redis.URL)
	on := func(t *testing.T, db pgtest.DB) *servicetest.Service {
		return startOn(t, &servicetest.Backing{DB: db, Redis: redis, Keys: keys}, nil)
	}
	// Each way makes a backup, and returns what restores it and returns a service over it.
	type way = func(t *testing.T, s *servicetest.Service) (restore func() *servicetest.Service)
	dump := func(into func(t *testing.T, s *servicetest.Service) *servicetest.Service) way {
		return func(t *testing.T, s *servicetest.Service) func() *servicetest.Service {
			file := filepath.Join(t.TempDir(), "dump")
			pgtest.Client(t, "pg_dump", "--format=custom", "--file="+file, s.DB.OwnerURL)
			return func() *servicetest.Service {
				restored := into(t, s)
				pgtest.Client(t, "pg_restore", "--clean", "--dbname="+restored.DB.OwnerURL, file)
				return restored
			}
		}
	}
	standby := func(lags bool) way {
		return func(t *testing.T, s *servicetest.Service) func() *servicetest.Service {
			other := primary.Standby(t)
			if lags {
				superuser(t, other, "", `ALTER SYSTEM SET primary_conninfo = ''`)
				superuser(t, other, "", `SELECT pg_reload_conf()`)
				eventually.Succeeds(t, "the standby receives no more", func() error {
					return execute(other, "", `SELECT 1 / (SELECT count(*) = 0 FROM pg_stat_wal_receiver)::int`)
				})
			}
			return func() *servicetest.Service {
				if !lags {
					superuser(t, primary, "", `ALTER SYSTEM SET synchronous_standby_names = '*'`)
					superuser(t, primary, "", `SELECT pg_reload_conf()`)
					s.Exec(t, `CREATE TABLE received ()`) // is on both servers once it is committed
				}
				if err := other.Promote(t.Context()); err != nil {
					t.Fatal(err)
				}
				return on(t, other.Here(s.DB))
			}
		}
	}
	for _, tt := range []struct {
		name   string
		loses  bool
		backup way
	}{
		{"a dump into another database", true, dump(func(t *testing.T, _ *servicetest.Service) *servicetest.Service {
			return on(t, primary.Database(t, store.Schema()))
		})},
		{"a dump into the same database", true, dump(func(_ *testing.T, s *servicetest.Service) *servicetest.Service { return s })},
		{"a standby that lags", true, standby(true)},
		{"a standby that has everything", false, standby(false)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := on(t, primary.Database(t, store.Schema()))
			key := keys.Key(project)
			s.MustIngest(t, "entries", newEntry(project, "a", at(1)))
			grownOld(t, s)
			kept := positionOf(t, s, key)
			restore := tt.backup(t, s)
			// The clock of the lost life is ahead.
			s.Exec(t, `UPDATE project_changes SET last_seq = last_seq + 60000000`)
			s.MustIngest(t, "entries", newEntry(project, "b", at(1)))
			read := positionOf(t, s, key)

			s = restore()
			want := map[int64]string{0: "entry a", kept: "", kept + 1: lost(kept, "null"), read: lost(kept, "null")}
			if !tt.loses {
				want = map[int64]string{0: "entry a, entry b", kept: "entry b", kept + 1: "entry b", read: "", read + 1: lost(read, "null")}
			}
			for position, want := range want {
				if got := answerAt(t, s, key, position); got != want {
					t.Errorf("restored, at %d: %s; want %s", position, got, want)
				}
			}
			s.MustIngest(t, "entries", newEntry(project, "c", at(1)))
			until := untilOf(t, s)
			want = map[int64]string{0: "entry a, entry c", kept - 1: "entry a, entry c", kept: "entry c",
				kept + 1: lost(kept, until), read: lost(kept, until), until - 1: lost(kept, until), until: "entry c", until + 1: ""}
			if !tt.loses {
				want = map[int64]string{0: "entry a, entry b, entry c", kept: "entry b, entry c", read: "entry c",
					read + 1: lost(read, until), until: "entry c", until + 1: ""}
			}
			for position, want := range want {
				if got := answerAt(t, s, key, position); got != want {
					t.Errorf("written again, at %d: %s; want %s", position, got, want)
				}
			}
			s.MustIngest(t, "entries", newEntry(project, "d", at(1)))
			if n := metricOf(t, s, "lectern_feed_lost_total"); n != "1" || !strings.Contains(s.Log(), "changes of a project are lost") {
				t.Errorf("the metric has %s losses", n)
			}
			if again := untilOf(t, s); again != until {
				t.Errorf("the second change lost the numbers up to %d, too", again)
			}
		})
	}
}

// TestLostNumbers checks what else makes a project lose numbers.
func TestLostNumbers(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key := s.Keys.Key(project)
	store := func(id string) (position int64) {
		t.Helper()
		s.MustIngest(t, "entries", newEntry(project, id, at(1)))
		return positionOf(t, s, key)
	}
	check := func(when string, position int64, want string) {
		t.Helper()
		if got := answerAt(t, s, key, position); got != want {
			t.Errorf("%s: at %d: %s; want %s", when, position, got, want)
		}
	}
	check("without changes", 5, "")
	first := store("a")
	check("in a new project", 5, lost(0, untilOf(t, s)))
	check("in a new project", 0, "entry a")

	// A request that waits is told at once that its position is lost.
	answered := make(chan servicetest.Answer, 1)
	go func() { answered <- s.Get(t, key, fmt.Sprintf("%s?wait=60&after=%d", feed, first)) }()
	eventually.True(t, "the request waits", func() bool { return metricOf(t, s, "lectern_feed_waiting") == "1" })
	s.Exec(t, `UPDATE project_changes SET last_seq = last_seq - 1, identity = 'of another database'`)
	if got := lostBy(t, eventually.Receive(t, "an answer", answered)); got != lost(first-1, "null") {
		t.Errorf("a request that waited: %s", got)
	}
	_ = store("b")
	check("of another database", first, lost(first-1, untilOf(t, s)))
	until := untilOf(t, s)
	second := store("b2")
	if untilOf(t, s) != until {
		t.Errorf("the numbers up to %d are lost, too", untilOf(t, s))
	}

	// The numbers are ahead of the clock for an hour. A backup from that hour, restored twice, goes on at greater numbers.
	backup := second
	for n := range 2 {
		s.Exec(t, `UPDATE project_changes SET last_seq = $1, identity = NULL`, backup)
		s.Exec(t, `DELETE FROM lost_numbers WHERE until > $1`, backup)
		before := second
		if second = store("c"); second <= before {
			t.Errorf("a backup was restored again, and goes on at %d; before, the project was at %d", second, before)
		}
		if n > 0 {
			check("restored again", before, lost(backup, untilOf(t, s)))
		}
	}

	// An administrator says that the database was restored.
	s.Exec(t, `DELETE FROM lost_numbers`) // that of the new project would be the first to be told
	to := time.Now().Add(-time.Minute)
	for _, tt := range []struct {
		body  string
		after int64  // of the stretch
		want  string // after it
	}{
		{`{}`, second, ""},
		{`{"to": "` + to.UTC().Format(time.RFC3339Nano) + `"}`, to.UnixMicro(), "entry a, entry b, entry b2, entry c"},
	} {
		if a := administer(t, s, "POST", "/internal/restored", tt.body); a.Status != 200 || strings.TrimSpace(string(a.Body)) != `{"projects":1,"next":null}` {
			t.Errorf("%s: %d %s", tt.body, a.Status, a.Body)
		}
		check(tt.body, tt.after, tt.want)
		check(tt.body, tt.after+1, lost(tt.after, untilOf(t, s)))
		check(tt.body, untilOf(t, s), "")
	}

	// No page of a reader ends among numbers that are counted as lost and still have changes.
	var read []string
	for cursor, more := fmt.Sprint("after=", to.UnixMicro()), true; more; {
		list, a := changesOf(t, s, key, feed+"?limit=1&"+cursor)
		read, more = append(read, kinds(list)), a.Header.Get("Link") != ""
		cursor = "cursor=" + a.Header.Get("X-Next-Cursor")
	}
	if got := strings.Join(read, "; "); got != "entry a, entry b, entry b2, entry c" {
		t.Errorf("by pages of one change: %s", got)
	}

	s.Exec(t, `INSERT INTO lost_numbers (project_id, after, until) SELECT $1, i, i + 1 FROM generate_series(1, 200) i`, project)
	s.Exec(t, `UPDATE project_changes SET identity = NULL WHERE project_id = $1`, project)
	_ = store("d")
	if n := queryInt(t, s, `SELECT count(*) FROM lost_numbers WHERE project_id = $1`, project); n != 100 {
		t.Errorf("%d stretches are kept", n)
	}

	// Whatever the administrator says, a reader can begin.
	s.Exec(t, `DELETE FROM lost_numbers`)
	for body, want := range map[string]int{`{"to": "0001-01-01"}`: 200, `{"after": "\u0000"}`: 400} {
		if a := administer(t, s, "POST", "/internal/restored", body); a.Status != want {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	check("all is lost", 0, "entry a, entry b, entry b2, entry c, entry d")
}

// TestHiddenIdentity checks that a server that refuses to say its identity takes changes.
func TestHiddenIdentity(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	if server.Citus() {
		t.Skip("rights of plain Postgres")
	}
	b := servicetest.NewBacking(t, store.Schema())
	superuser(t, server, b.DB.Name, `REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC`)
	s := startOn(t, b, nil)
	for range 2 {
		s.MustIngest(t, "entries", newEntry(project, "a", at(1)))
	}
	if n := queryInt(t, s, `SELECT count(*) FROM lost_numbers l JOIN project_changes c USING (project_id) WHERE c.identity IS NULL`); n != 1 {
		t.Errorf("%d stretches; want that of the new project", n)
	}
}
