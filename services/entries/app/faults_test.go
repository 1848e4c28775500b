package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// underLoad are the paths that clients read during a fault: every operation, and a list of several chunks.
var underLoad = []string{
	"/projects/pr_1/entries",
	"/projects/pr_1/entries/en_0000007",
	"/projects/pr_1/entries/en_0000007/events",
	"/projects/pr_1/entries-page-views",
	"/projects/pr_1/entries?limit=3000&direction=ASC",
	"/projects/pr_1/entries-page-views?limit=1500&include_urls=true",
}

// fault is a fault of Postgres or Redis while clients read. Clients see only right answers and 503 with Retry-After, and
// soon after the fault only right answers. /healthz answers meanwhile, and ingest either stores a record or answers 503.
type fault struct {
	name       string
	begin, end func(*breakable) error
	refuses    bool // clients may see 503 during the fault
	serves     bool // clients see right answers during the fault
	long       bool // only make test-long has this fault
}

func nothing(*breakable) error { return nil }

func ok(do func(*breakable)) func(*breakable) error {
	return func(f *breakable) error { do(f); return nil }
}

func sql(statements ...string) func(*breakable) error {
	return func(f *breakable) error {
		var faults []error
		for _, s := range statements {
			faults = append(faults, execute(f.server, f.DB.Name, s))
		}
		return errors.Join(faults...)
	}
}

// redis returns a command to the service's Redis.
func redis(args ...any) func(*breakable) error {
	return func(f *breakable) error { return redistest.Client(f.Redis).Do(context.Background(), args...).Err() }
}

const terminate = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'entries_reader'`

var (
	mendPostgres = ok(func(f *breakable) { f.postgres.Heal() })
	mendRedis    = ok(func(f *breakable) { f.redis.Heal() })
)

var faults = []fault{
	{name: "Postgres killed", refuses: true, begin: func(f *breakable) error { return f.server.Kill() },
		end: func(f *breakable) error { return f.server.Restart(context.Background()) }},
	{name: "Postgres hangs", refuses: true, begin: func(f *breakable) error { return f.server.Pause() },
		end: func(f *breakable) error { return f.server.Resume() }},
	{name: "Postgres half-open", refuses: true, begin: ok(func(f *breakable) { f.postgres.Silence() }), end: mendPostgres},
	{name: "Postgres reset", refuses: true, begin: ok(func(f *breakable) { f.postgres.Refuse() }), end: mendPostgres},
	{name: "all connections terminated", refuses: true, serves: true, begin: sql(terminate), end: nothing},
	{name: "too many connections", refuses: true, serves: true,
		begin: sql(`ALTER ROLE entries_reader CONNECTION LIMIT 2`, terminate), end: sql(`ALTER ROLE entries_reader CONNECTION LIMIT -1`)},
	{name: "Postgres slow", serves: true, begin: ok(func(f *breakable) { f.postgres.Slow(50 * time.Millisecond) }), end: mendPostgres},
	{name: "a migration", serves: true,
		begin: sql(`ALTER TABLE entries ADD COLUMN extra text; ALTER TABLE events ADD COLUMN extra text`),
		end:   sql(`ALTER TABLE entries DROP COLUMN extra; ALTER TABLE events DROP COLUMN extra`)},
	{name: "Redis killed", serves: true, begin: ok(func(f *breakable) { f.Redis.Kill() }), end: ok(func(f *breakable) { f.Redis.Restart() })},
	{name: "Redis hangs", serves: true, begin: ok(func(f *breakable) { f.Redis.Pause() }), end: ok(func(f *breakable) { f.Redis.Resume() })},
	{name: "Redis slow", serves: true, long: true, begin: ok(func(f *breakable) { f.redis.Slow(500 * time.Millisecond) }), end: mendRedis},
	{name: "Redis reset", serves: true, long: true, begin: ok(func(f *breakable) { f.redis.Refuse() }), end: mendRedis},
	{name: "Redis half-open", serves: true, long: true, begin: ok(func(f *breakable) { f.redis.Silence() }), end: mendRedis},
	{name: "Redis full", serves: true, long: true, begin: redis("CONFIG", "SET", "maxmemory", "1"), end: redis("CONFIG", "SET", "maxmemory", "0")},
	{name: "Redis a read-only replica", serves: true, long: true, begin: redis("REPLICAOF", "127.0.0.1", "1"), end: redis("REPLICAOF", "NO", "ONE")},
	{name: "Redis flushed", serves: true, long: true, begin: redis("FLUSHALL"), end: nothing},
}

func TestFaultsUnderLoad(t *testing.T) {
	t.Parallel()
	checkFaults(t, false)
}

func TestLongFaultsUnderLoad(t *testing.T) {
	needs.Long(t)
	checkFaults(t, true)
}

// checkFaults has each fault on a service with short time-outs if clients may notice the fault. If they may not, the
// time-outs are long enough for a busy machine.
func checkFaults(t *testing.T, long bool) {
	for _, refuses := range []bool{true, false} {
		t.Run(map[bool]string{true: "refused", false: "unnoticed"}[refuses], func(t *testing.T) {
			if !long {
				t.Parallel()
			}
			var f *breakable
			for _, fault := range faults {
				if fault.long != long || fault.refuses != refuses {
					continue
				}
				if f == nil {
					f = startBreakable(t, map[bool]map[string]string{true: servicetest.ShortTimeouts}[refuses])
				}
				t.Run(fault.name, func(t *testing.T) { fault.check(t, f) })
			}
		})
	}
}

func (fault fault) check(t *testing.T, f *breakable) {
	load := faulttest.Start(t, f.URL, faulttest.LoadOptions{Key: f.key, Paths: underLoad})
	load.Await(20)
	if err := fault.begin(f); err != nil {
		t.Fatal(err)
	}
	if fault.serves {
		load.Await(10)
	} else {
		eventually.True(t, "clients are refused", func() bool { _, refused, _ := load.Seen(); return refused >= 5 })
	}
	if !fault.refuses {
		f.checkKeys(t, "meanwhile", false)
	}
	if status := f.store(t); status != http.StatusOK && (!fault.refuses || status != http.StatusServiceUnavailable) || status == http.StatusOK && !fault.serves {
		t.Errorf("ingest: %d", status)
	}
	checkHealth(t, f.Service, "meanwhile")
	if err := fault.end(f); err != nil {
		t.Fatal(err)
	}
	recovered := eventually.True(t, "Redis is used again, and ingest stores", func() bool {
		a := f.DoInternal(t, servicetest.Request{Path: "/readyz"})
		return strings.Contains(string(a.Body), `"redis":"ok"`) && f.store(t) == http.StatusOK
	})
	load.Await(50)
	report := load.Stop()
	report.Check(t, fault.name)
	t.Logf("back after %v", recovered)
	// Only lists in flight at the start of the fault may be broken.
	if report.Broken > 4 || !fault.refuses && report.Broken+report.Refused > 0 {
		t.Errorf("clients saw the fault: %v", report)
	}
	if longest := faulttest.Quantile(report.Refusals, 1); longest > time.Minute || fault.serves && report.Gap > time.Minute {
		t.Errorf("a client waited %v for a refusal, and all of them %v for an answer", longest, report.Gap)
	}
	f.checkKeys(t, "afterwards", fault.refuses)
}

// breakable is a service that reaches Postgres and Redis through proxies. A test may break the proxies and the servers.
type breakable struct {
	*servicetest.Service
	server   *pgtest.Instance
	postgres *faulttest.Proxy
	redis    *faulttest.Proxy
	key      string
}

// startBreakable runs a breakable service with 4,000 entries.
func startBreakable(t *testing.T, environ map[string]string) *breakable {
	t.Helper()
	b, server := servicetest.NewBreakable(t, store.Schema())
	direct, err := url.Parse(server.TCPURL(b.DB.ReaderURL))
	if err != nil {
		t.Fatal(err)
	}
	f := &breakable{server: server, redis: faulttest.NewProxy(t, b.Redis.Addr()), postgres: faulttest.NewProxy(t, direct.Host)}
	through := map[string]string{"REDIS_URL": "redis://" + f.redis.Addr(), "RATE_LIMIT": "1000000"}
	for name, of := range map[string]string{"DATABASE_URL": b.DB.ReaderURL, "INGEST_DATABASE_URL": b.DB.IngestURL} {
		through[name] = strings.Replace(server.TCPURL(of), direct.Host, f.postgres.Addr(), 1)
		if environ == nil {
			through[name] += "&connect_timeout=60" // a busy machine is no failure
		}
	}
	maps.Copy(through, environ)
	f.Service = startOn(t, b, through)
	f.key = b.Keys.Key(project)
	fill(t, f.Service, project, 4000)
	return f
}

// execute runs sql as the superuser of a server in db, or in the database postgres.
func execute(server *pgtest.Instance, db, sql string) error {
	cfg, err := pgx.ParseConfig(server.AdminURL())
	if err != nil {
		return err
	}
	if db != "" {
		cfg.Database = db
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

func superuser(t *testing.T, server *pgtest.Instance, db, sql string) {
	t.Helper()
	if err := execute(server, db, sql); err != nil {
		t.Fatal(err)
	}
}

// store sends an entry of a project that no client reads, and returns the status.
func (f *breakable) store(t *testing.T) int {
	t.Helper()
	line, err := json.Marshal(newEntry("pr_2", "en_1", at(1)))
	if err != nil {
		t.Fatal(err)
	}
	return f.DoInternal(t, servicetest.Request{
		Method: http.MethodPost, Path: "/internal/entries", Key: servicetest.IngestKey, Body: strings.NewReader(string(line)),
	}).Status
}

// checkKeys checks that a key that the process has not seen yet is accepted, and one that was never minted is not. A 401
// for a good key would present a fault as a refusal. If the service may refuse, it is asked again after 503.
func (f *breakable) checkKeys(t *testing.T, when string, refuses bool) {
	t.Helper()
	for key, want := range map[string]int{f.Keys.Key(project): 200, mintElsewhere(): 401} {
		eventually.True(t, "the key is checked", func() bool {
			a := f.Get(t, key, underLoad[1])
			if a.Status != want && (!refuses || a.Status != 503) {
				t.Errorf("%s: a key seen for the first time: %d %s, want %d", when, a.Status, a.Body, want)
			}
			return !refuses || a.Status != 503
		})
	}
}

// checkHealth checks /healthz, which no fault of another system may break.
func checkHealth(t *testing.T, s *servicetest.Service, when string) {
	t.Helper()
	begin := time.Now()
	if a := s.DoInternal(t, servicetest.Request{Path: "/healthz"}); a.Status != 200 || time.Since(begin) > time.Minute {
		t.Errorf("%s: /healthz: %d after %v", when, a.Status, time.Since(begin))
	}
}

// TestFailoverUnderLoad kills the primary and promotes its synchronous standby. The service finds the new primary
// without a restart. Reads continue in the meantime, and no acknowledged record is lost.
func TestFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	primary := pgtest.PrivatePrimary(t)
	redis := redistest.Start(t)
	b := &servicetest.Backing{DB: primary.Database(t, store.Schema()), Redis: redis, Keys: authtest.New(t, redis.URL)}
	standby := primary.Standby(t)
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
	s := startOn(t, b, map[string]string{
		"DATABASE_URL": anywhere(b.DB.ReaderURL), "INGEST_DATABASE_URL": anywhere(b.DB.IngestURL),
		"READ_DATABASE_URL": standby.TCPURL(standby.Here(b.DB).ReaderURL), "INGEST_RETRY_TIME": "300ms",
		"DATABASE_ACQUIRE_TIMEOUT": "2s", "STATEMENT_TIMEOUT": "5s",
	})
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
			// It tries again until a primary answers, or the test has seen enough.
			_ = eventually.Try(func() error {
				_, err := copied.step(t, s.URL, 7, 1)
				if following.Err() != nil {
					return nil
				}
				return err
			})
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
