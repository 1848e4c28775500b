package pgcitus_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/pgcitus"
	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pgmigrate"
	"github.com/lectern-dev/lectern/shared/pgreplica"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// open opens a pool as a service does.
func open(t *testing.T, url string, o pgdb.Options) *pgdb.Pool {
	t.Helper()
	o.Attach = pgcitus.Attach
	p, err := pgdb.Open(t.Context(), config.NewSecret(url), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func isUnavailable(err error) bool {
	return err != nil && apierr.From(err).Code() == apierr.Unavailable
}

// shelves returns a schema with a distributed table.
func shelves() pgmigrate.Schema {
	return pgmigrate.Schema{
		Name: "shelves",
		Migrations: fstest.MapFS{"0001_shelves.sql": {Data: []byte(`-- +goose Up
CREATE TABLE shelves (project_id text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, body text, PRIMARY KEY (project_id, id));
-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM create_distributed_table('shelves', 'project_id', colocate_with => 'none');
    END IF;
END $$;
-- +goose StatementEnd
`)}},
		Grants: map[pgmigrate.Role][]string{
			pgmigrate.Reader: {"SELECT ON shelves"},
			pgmigrate.Ingest: {"SELECT, INSERT, UPDATE ON shelves"},
		},
	}
}

// broken is a database whose second worker is behind a proxy.
type broken struct {
	server  *pgtest.Instance
	db      pgtest.DB
	proxy   *faulttest.Proxy
	healthy []string // projects on other workers
	failing []string // projects on the second worker
}

func breakable(t *testing.T) *broken {
	t.Helper()
	b := &broken{server: pgtest.NeedCitus(t)}
	b.db = b.server.Database(t, shelves())
	b.server.Through(t, b.db, 2, func(target string) string {
		b.proxy = faulttest.NewProxy(t, target)
		return b.proxy.Addr()
	})
	conn, err := pgx.Connect(t.Context(), b.server.Superuser(b.db))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for i := range 64 {
		project := fmt.Sprintf("pr_%d", i)
		var addr string
		err := conn.QueryRow(t.Context(), `
			SELECT n.nodename || ':' || n.nodeport FROM pg_dist_placement p JOIN pg_dist_node n USING (groupid)
			WHERE p.shardid = get_shard_id_for_distribution_column('shelves', $1::text)`, project).Scan(&addr)
		if err != nil {
			t.Fatal(err)
		}
		if addr == b.proxy.Addr() {
			b.failing = append(b.failing, project)
		} else {
			b.healthy = append(b.healthy, project)
		}
		if _, err := conn.Exec(t.Context(), `INSERT INTO shelves VALUES ($1, 'a', 'body')`, project); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.failing) < 8 || len(b.healthy) < 8 {
		t.Fatalf("%d projects on one side and %d on the other", len(b.failing), len(b.healthy))
	}
	return b
}

// distributed waits until the pool knows that tables are distributed, and knows their workers.
func distributed(t *testing.T, p *pgdb.Pool) {
	t.Helper()
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !p.Distributed() {
		t.Fatal("the pool does not know that tables are distributed")
	}
	for deadline := time.Now().Add(10 * time.Second); pgcitus.Workers(p) < 2; {
		if time.Now().After(deadline) {
			t.Fatalf("the pool knows %d workers", pgcitus.Workers(p))
		}
		time.Sleep(10 * time.Millisecond) // there is no notification of a change
	}
}

// at returns the URL of with the address addr.
func at(t *testing.T, of, addr string) string {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = addr
	return u.String()
}

func hostPort(t *testing.T, of string) string {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

const readShelf = `SELECT body FROM shelves WHERE project_id = $1 AND id = $2`

func read(ctx context.Context, p *pgdb.Pool, project string) error {
	var body string
	return p.QueryRow(ctx, []any{&body}, readShelf, project, "a")
}

// seen records the answers to the clients of some projects.
type seen struct {
	mu     sync.Mutex
	took   []time.Duration // durations of good answers
	faults []time.Duration // durations of 503
	why    error           // the error of the first 503
	other  []error
}

func (s *seen) note(took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.took = append(s.took, took)
	case isUnavailable(err):
		if len(s.faults) == 0 {
			s.why = errors.Unwrap(err)
		}
		s.faults = append(s.faults, took)
	default:
		s.other = append(s.other, err)
	}
}

// since returns the observations so far in ascending order, and clears them.
func (s *seen) since() (took, faults []time.Duration, other []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	took, faults, other = s.took, s.faults, s.other
	s.took, s.faults, s.other = nil, nil, nil
	slices.Sort(took)
	slices.Sort(faults)
	return took, faults, other
}

// TestCitusWorkerFaults checks that requests for projects of a failing worker get 503 each time. Other projects are not
// affected. The worker's projects recover by themselves.
func TestCitusWorkerFaults(t *testing.T) {
	b := breakable(t)
	var o operator
	p := open(t, b.db.ReaderURL, o.watch(pgdb.Options{MaxConns: 8, StatementTimeout: 30 * time.Second}))
	distributed(t, p)
	o.sees(t, map[string]int64{"serving": 2})
	// This pool never uses the projects of the failing worker, so it shows the delays by the machine.
	separate := open(t, b.db.ReaderURL, pgdb.Options{MaxConns: 8, StatementTimeout: 30 * time.Second})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var others, own, control seen
	ask := func(p *pgdb.Pool, s *seen, projects []string, n int) {
		for i := range n {
			running.Go(func() {
				for j := i; ctx.Err() == nil; j++ {
					begin := time.Now()
					err := read(context.Background(), p, projects[j%len(projects)])
					s.note(time.Since(begin), err)
					time.Sleep(5 * time.Millisecond) // the pause of a client
				}
			})
		}
	}
	ask(p, &others, b.healthy, 4)
	ask(p, &own, b.failing, 16) // more than the connections
	ask(separate, &control, b.healthy, 2)
	during := func(d time.Duration) { time.Sleep(d) }
	during(2 * time.Second)
	quiet, _, _ := others.since()
	own.since()
	control.since()
	// tolerance returns how many of n requests may be refused because the machine is busy. That is 0, unless the
	// control also waits long. A request waits at most a second.
	tolerance := func(n int, calm []time.Duration) int {
		if faulttest.Quantile(calm, 1) > 300*time.Millisecond {
			return 1 + n/50
		}
		return 0
	}
	p99 := func(d []time.Duration) time.Duration { return faulttest.Quantile(d, 0.99) }
	for _, fault := range []struct {
		name  string
		begin func()
		worst time.Duration // the longest time until a refusal
		state string        // the state in the metrics
	}{
		{"down", b.proxy.Refuse, 2 * time.Second, "down"},
		{"does not answer", b.proxy.Silence, 6 * time.Second, "hanging"},
	} {
		t.Run(fault.name, func(t *testing.T) {
			o.log.Reset()
			fault.begin()
			during(6 * time.Second)
			o.sees(t, map[string]int64{"serving": 1, fault.state: 1})
			took, refused, wrong := others.since()
			calm, _, _ := control.since()
			if len(refused) > tolerance(len(took), calm) || len(wrong) > 0 || len(took) < 200 {
				t.Errorf("others: %d good, %d refused (%v), wrong %v; in the control the worst took %v", len(took), len(refused), others.why, wrong, faulttest.Quantile(calm, 1))
			}
			t.Logf("others: p99 %v, quiet %v, worst %v", p99(took), p99(quiet), faulttest.Quantile(took, 1))
			// A delay that the control has too is not caused by the worker.
			if worst := faulttest.Quantile(took, 1); worst > max(time.Second, 3*faulttest.Quantile(quiet, 1), 3*faulttest.Quantile(calm, 1)) {
				t.Errorf("others: the worst took %v, in the control %v", worst, faulttest.Quantile(calm, 1))
			}
			good, refused, wrong := own.since()
			if len(refused) < 100 || len(wrong) > 0 {
				t.Errorf("its own: %d good, %d refused, wrong %v", len(good), len(refused), wrong)
			}
			t.Logf("its own: %d refused, median %v, worst %v", len(refused), faulttest.Quantile(refused, 0.5), faulttest.Quantile(refused, 1))
			if worst := faulttest.Quantile(refused, 1); worst > fault.worst+3*faulttest.Quantile(calm, 1) || faulttest.Quantile(refused, 0.5) > max(50*time.Millisecond, 3*p99(quiet)) {
				t.Errorf("its own: refused after %v, at worst %v", faulttest.Quantile(refused, 0.5), worst)
			}
			b.proxy.Heal()
			begin := time.Now()
			for _, project := range b.failing {
				for read(context.Background(), p, project) != nil {
					if time.Since(begin) > 10*time.Second {
						t.Fatalf("%s is not back", project)
					}
					time.Sleep(5 * time.Millisecond) // the pause of a client
				}
			}
			t.Logf("back after %v", time.Since(begin))
			o.sees(t, map[string]int64{"serving": 2})
			o.reads(t, b.proxy.Addr(), fault.state)
			// Requests in the queue are answered first. A busy machine needs time for them.
			for window := 1; ; window++ {
				own.since()
				during(time.Second)
				good, refused, wrong = own.since()
				if len(wrong) > 0 || window == 20 {
					t.Errorf("when it was over: %d good, %d refused (%v), wrong %v", len(good), len(refused), own.why, wrong)
				}
				if len(refused) == 0 && len(good) > 0 || window == 20 {
					t.Logf("no request is refused after %d s", window)
					break
				}
			}
			control.since()
			others.since()
		})
	}
}

// TestCitusDoubtfulCommit checks that a write counts as not acknowledged if Citus acknowledged it but it is not
// visible. Citus commits such a statement in two phases, and the worker is lost between them.
func TestCitusDoubtfulCommit(t *testing.T) {
	b := breakable(t)
	const twoPhases = `INSERT INTO shelves (project_id, id, body) SELECT $1, u, $3 FROM unnest($2::text[]) u`
	write := func(p *pgdb.Pool, id string) error {
		_, err := p.Exec(context.Background(), twoPhases, b.failing[0], []string{id}, "late")
		return err
	}
	p := open(t, b.db.IngestURL, pgdb.Options{MaxConns: 1}) // one session, which loses its connection to the worker and opens it again
	distributed(t, p)
	b.proxy.RefuseAt("COMMIT PREPARED")
	// This connection ignores warnings, so it gets Citus' acknowledgement.
	conn, err := pgx.Connect(t.Context(), b.db.IngestURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), twoPhases, b.failing[0], []string{"w2"}, "late"); err != nil || !b.proxy.Refuses() {
		t.Fatalf("the commit did not fail as expected: %v, worker lost: %v", err, b.proxy.Refuses())
	}
	b.proxy.Heal()
	for begin := time.Now(); write(p, "w1") != nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			t.Fatal("nothing is written when the worker is back")
		}
	}
	b.proxy.RefuseAt("COMMIT PREPARED")
	if err := write(p, "w3"); !isUnavailable(err) {
		t.Errorf("a write that is not visible: %v", err)
	}
	if !b.proxy.Refuses() {
		t.Error("the worker was not lost")
	}
	b.proxy.Heal()
	admin, err := pgx.Connect(t.Context(), b.server.Superuser(b.db))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	if _, err := admin.Exec(t.Context(), `SELECT recover_prepared_transactions()`); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := p.QueryRow(t.Context(), []any{&n}, `SELECT count(*) FROM shelves WHERE project_id = $1 AND body = 'late'`, b.failing[0]); err != nil || n != 3 {
		t.Errorf("%d of 3 rows in the end, %v", n, err)
	}
}

// TestCitusNodesAsReaders checks that any node can serve reads. An unreachable node is left out, and used again when it
// is back. A failing worker does not make other nodes unusable.
func TestCitusNodesAsReaders(t *testing.T) {
	b := breakable(t)
	node := faulttest.NewProxy(t, hostPort(t, b.server.OnWorker(b.db.ReaderURL, 1)))
	primary := open(t, b.db.ReaderURL, pgdb.Options{MaxConns: 4})
	distributed(t, primary)
	reads, err := pgreplica.Open(t.Context(), primary, pgreplica.Options{
		Standbys:      []config.Secret{config.NewSecret(at(t, b.db.ReaderURL, node.Addr())), config.NewSecret(b.db.ReaderURL)},
		MaxLag:        10 * time.Second,
		CheckInterval: 50 * time.Millisecond,
		Pool:          pgdb.Options{MaxConns: 4, ConnectTimeout: time.Second, Attach: pgcitus.Attach},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reads.Close)
	serving := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if _, n := reads.Standbys(); n == want {
				return
			} else if time.Now().After(deadline) {
				t.Fatalf("%d nodes are read from, want %d", n, want)
			}
		}
	}
	serving(2)
	var good atomic.Int64
	all := func(projects []string) {
		t.Helper()
		for i := range 40 {
			err := reads.Query(t.Context(), func(rows pgx.Rows) error {
				for rows.Next() {
					good.Add(1)
				}
				return nil
			}, readShelf, projects[i%len(projects)], "a")
			if err != nil {
				t.Errorf("read: %v", err)
			}
		}
	}
	all(b.healthy)
	all(b.failing)
	if good.Load() != 80 {
		t.Errorf("%d of 80 rows", good.Load())
	}
	node.Refuse()
	all(b.healthy)
	serving(1)
	node.Heal()
	serving(2)
	b.proxy.Refuse()
	all(b.healthy)
	if err := reads.Query(t.Context(), func(pgx.Rows) error { return nil }, readShelf, b.failing[0], "a"); !isUnavailable(err) {
		t.Errorf("a project whose worker is down: %v", err)
	}
	if _, n := reads.Standbys(); n != 2 {
		t.Errorf("a worker that is down left %d of 2 nodes", n)
	}
}
