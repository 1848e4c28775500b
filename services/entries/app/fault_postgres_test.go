package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// TestPostgresFaultsUnderLoad checks that clients see only right answers and 503 with Retry-After during a fault, and
// only right answers soon after it.
func TestPostgresFaultsUnderLoad(t *testing.T) {
	f := startBreakable(t, nil)
	sql := func(statements ...string) func(*testing.T) error {
		return func(t *testing.T) error {
			for _, s := range statements {
				f.admin(t, s)
			}
			return nil
		}
	}
	const terminate = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'entries_reader'`
	for _, fault := range []struct {
		name       string
		begin, end func(*testing.T) error
		refuses    bool // clients may see 503 during the fault
		serves     bool // clients see good answers during the fault
	}{
		{"killed", func(*testing.T) error { return f.server.Kill() }, func(t *testing.T) error { return f.server.Restart(t.Context()) }, true, false},
		{"stopped", func(*testing.T) error { return f.server.Pause() }, func(*testing.T) error { return f.server.Resume() }, true, false},
		{"slow", func(*testing.T) error { f.postgres.Slow(50 * time.Millisecond); return nil }, func(*testing.T) error { f.postgres.Heal(); return nil }, false, true},
		{"half-open", func(*testing.T) error { f.postgres.Silence(); return nil }, func(*testing.T) error { f.postgres.Heal(); return nil }, true, false},
		{"reset", func(*testing.T) error { f.postgres.Refuse(); return nil }, func(*testing.T) error { f.postgres.Heal(); return nil }, true, false},
		{"all connections terminated", sql(terminate), sql(), true, true},
		{"too many connections", sql(`ALTER ROLE entries_reader CONNECTION LIMIT 2`, terminate), sql(`ALTER ROLE entries_reader CONNECTION LIMIT -1`), true, true},
		{"a migration", sql(`ALTER TABLE entries ADD COLUMN extra text; ALTER TABLE events ADD COLUMN extra text`),
			sql(`ALTER TABLE entries DROP COLUMN extra; ALTER TABLE events DROP COLUMN extra`), false, true},
	} {
		t.Run(fault.name, func(t *testing.T) {
			load := f.load(t)
			load.Await(20)
			if err := fault.begin(t); err != nil {
				t.Fatal(err)
			}
			if fault.serves {
				load.Await(4)
			} else {
				eventually.True(t, "clients are refused", func() bool { _, refused, _ := load.Seen(); return refused >= 10 })
			}
			checkHealth(t, f.Service, "meanwhile")
			if err := fault.end(t); err != nil {
				t.Fatal(err)
			}
			took := load.Await(50)
			report := load.Stop()
			report.Check(t, fault.name)
			t.Logf("50 good answers in a row %v after the end", took)
			// Only lists in flight at the start of the fault may be broken.
			if most := 4; report.Broken > most || fault.serves && !fault.refuses && report.Broken > 0 {
				t.Errorf("%d answers were broken off", report.Broken)
			}
			if !fault.refuses && report.Refused > 0 {
				t.Errorf("%d refusals", report.Refused)
			}
			if longest := faulttest.Quantile(report.Refusals, 1); longest > time.Minute {
				t.Errorf("a client waited %v for a refusal", longest)
			}
			f.checkKeys(t, "afterwards")
		})
	}
}

// TestFailoverUnderLoad kills the primary and promotes its synchronous standby. The service finds the new primary
// without a restart. Reads continue in the meantime, and no acknowledged record is lost.
func TestFailoverUnderLoad(t *testing.T) {
	primary := pgtest.PrivatePrimary(t, nil)
	redis := redistest.Start(t)
	b := &servicetest.Backing{DB: primary.Database(t, store.Schema()), Redis: redis, Keys: authtest.New(t, redis.URL)}
	standby := primary.Standby(t, nil)
	superuser(t, primary, "", `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	superuser(t, primary, "", `SELECT pg_reload_conf()`)
	anywhere := func(of string) string {
		u, err := url.Parse(primary.TCPURL(of))
		if err != nil {
			t.Fatal(err)
		}
		u.Host += fmt.Sprintf(",127.0.0.1:%d", standby.Port())
		u.RawQuery += "&target_session_attrs=read-write"
		return u.String()
	}
	s := startOn(t, b, shortTimeouts(map[string]string{
		"DATABASE_URL": anywhere(b.DB.ReaderURL), "INGEST_DATABASE_URL": anywhere(b.DB.IngestURL),
		"READ_DATABASE_URL": standby.TCPURL(standby.Here(b.DB).ReaderURL),
	}))
	key := b.Keys.Key(project)
	fill(t, s, project, 4000)
	eventually.True(t, "reads go to the standby", func() bool {
		return strings.Contains(s.Log(), "reads go to a standby") && s.Get(t, key, underLoad[1]).Status == 200
	})
	load := faulttest.Start(t, s.URL, faulttest.LoadOptions{Key: key, Paths: underLoad, Clients: 2})

	// A follower copies what the sender below stores, through both primaries.
	copied := newFollower(b.Keys.Key("pr_2"), "pr_2")
	following, followed := context.WithCancel(t.Context())
	copying := make(chan struct{})
	go func() {
		defer close(copying)
		for following.Err() == nil {
			if _, err := copied.step(t, s.URL, 7, 1); err != nil {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}()

	// A sender continues with the next entry when one is acknowledged.
	var acknowledged atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; {
			select {
			case <-stop:
				return
			default:
			}
			line, _ := json.Marshal(newEntry("pr_2", fmt.Sprintf("en_%06d", n), at(n))) // it has only strings, so Marshal cannot fail
			a := s.DoInternal(t, servicetest.Request{Method: "POST", Path: "/internal/entries", Key: servicetest.IngestKey, Body: strings.NewReader(string(line))})
			switch a.Status {
			case 200:
				n++
				acknowledged.Store(int64(n))
			case 503:
			default:
				t.Errorf("ingest: %d %s", a.Status, a.Body)
				return
			}
		}
	}()
	sent := func(more int64) time.Duration {
		before := acknowledged.Load()
		return eventually.True(t, "entries are taken in", func() bool { return acknowledged.Load() >= before+more })
	}
	sent(20)
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	load.Await(50)
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	superuser(t, standby, "", `ALTER SYSTEM SET synchronous_standby_names = ''`)
	superuser(t, standby, "", `SELECT pg_reload_conf()`)
	sent(20)
	t.Logf("taken in again %v after the primary died", time.Since(begin))
	close(stop)
	<-stopped
	followed()
	<-copying
	copied.finish(t, s.URL)
	copied.equals(t, source(t, standby.Here(b.DB).OwnerURL, "pr_2"))
	report := load.Stop()
	report.Check(t, "failover")
	if report.Broken > 0 || report.Gap > time.Minute {
		t.Errorf("reads did not go on: %v", report)
	}
	list, _ := s.List(t, b.Keys.Key("pr_2"), "/projects/pr_2/entries?limit=100000&direction=ASC")
	if int64(len(list)) < acknowledged.Load() {
		t.Errorf("%d entries were acknowledged, %d are there", acknowledged.Load(), len(list))
	}
	for i, id := range servicetest.Column(list, "entry_id") {
		if want := fmt.Sprintf("en_%06d", i); id != want {
			t.Fatalf("%s where %s should be", id, want)
		}
	}
}
