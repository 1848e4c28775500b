package standbys_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/postgres/standbys"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var errStop = errors.New("stop")

// replicated is a primary with standbys, and a Reads that uses them.
type replicated struct {
	*standbys.Reads
	primary  *pgtest.Instance
	standbys []*pgtest.Instance
	db       pgtest.DB
	write    *pgdb.Pool
	skipped  atomic.Int64 // nanoseconds that its clock is ahead
	checks   atomic.Int64 // how often the clock was read: once a check
}

// replicate returns a primary with n standbys.
func replicate(t *testing.T, n int) *replicated {
	t.Helper()
	r := &replicated{primary: pgtest.PrivatePrimary(t)}
	r.db = r.primary.Database(t, pgtest.Notes())
	var urls []config.ServerURL
	for range n {
		s := r.primary.Standby(t)
		r.standbys = append(r.standbys, s)
		urls = append(urls, config.NewServerURL(s.Here(r.db).ReaderURL))
	}
	o := pgdb.Options{MaxConns: 4, AcquireTimeout: 10 * time.Second, StatementTimeout: 10 * time.Minute}
	r.write = pgtest.Pool(t, r.db.IngestURL, o)
	primary := pgtest.Pool(t, r.db.ReaderURL, o)
	var err error
	r.Reads, err = standbys.Open(t.Context(), primary, standbys.Options{
		Standbys: urls, Pool: o,
		Now: func() time.Time {
			r.checks.Add(1)
			return time.Now().Add(time.Duration(r.skipped.Load()))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	r.await(t, n)
	return r
}

// await waits until n standbys serve reads.
func (r *replicated) await(t *testing.T, n int) {
	t.Helper()
	eventually.True(t, fmt.Sprintf("%d standbys serve", n), func() bool {
		_, serving := r.Standbys()
		return serving == n
	})
}

// skip sets the clock forward by more than a standby may be behind, and waits until n standbys serve after a check.
func (r *replicated) skip(t *testing.T, n int) {
	t.Helper()
	r.skipped.Add(int64(time.Minute))
	checks := r.checks.Load()
	eventually.True(t, "two checks end", func() bool { return r.checks.Load() >= checks+3 })
	r.await(t, n)
}

// by queries q n times and returns the number of answers by the server's port.
func by(t *testing.T, q pgdb.Querier, n int) map[string]int {
	t.Helper()
	ports := map[string]int{}
	for range n {
		err := q.Query(t.Context(), func(rows pgx.Rows) error {
			for rows.Next() {
				ports[string(rows.RawValues()[0])]++
			}
			return nil
		}, `SELECT current_setting('port')`)
		if err != nil {
			t.Fatalf("a read: %v", err)
		}
	}
	return ports
}

func port(i *pgtest.Instance) string { return fmt.Sprint(i.Port()) }

// as runs sql as the superuser in the tests' database.
func as(t *testing.T, i *pgtest.Instance, db pgtest.DB, sql string) {
	t.Helper()
	cfg, err := pgx.ParseConfig(i.AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Database = db.Name
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (r *replicated) insert(t *testing.T, from, to int) {
	t.Helper()
	if _, err := r.write.Exec(t.Context(), `INSERT INTO notes SELECT n, 'b' || n FROM generate_series($1::int, $2) n`, from, to); err != nil {
		t.Fatal(err)
	}
}

// TestReadsGoToStandbys checks that reads are spread over the standbys. The statements of one request stay on one
// standby, and move only to the primary. On another standby, rows could be missing that the first one had.
func TestReadsGoToStandbys(t *testing.T) {
	t.Parallel()
	r := replicate(t, 2)
	got := by(t, r, 100)
	if got[port(r.standbys[0])] < 40 || got[port(r.standbys[1])] < 40 || len(got) != 2 {
		t.Errorf("answered by port: %v; the primary is %s", got, port(r.primary))
	}
	q := pgdb.Pinned(r.Reads)
	got = by(t, q, 20)
	if len(got) != 1 || got[port(r.primary)] != 0 {
		t.Fatalf("answered by port: %v; the primary is %s", got, port(r.primary))
	}
	for _, s := range r.standbys {
		if got[port(s)] > 0 {
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := by(t, q, 20); got[port(r.primary)] != 20 {
		t.Errorf("after its standby died, answered by port: %v; the primary is %s", got, port(r.primary))
	}
}

// TestLaggingStandby checks that a standby that replays nothing counts as lagging only if there is something to replay.
func TestLaggingStandby(t *testing.T) {
	t.Parallel()
	r := replicate(t, 1)
	r.skip(t, 1)
	as(t, r.standbys[0], r.db, `SELECT pg_wal_replay_pause()`)
	r.insert(t, 1, 10)
	r.skip(t, 0)
	if got := by(t, r, 10); got[port(r.primary)] != 10 {
		t.Errorf("answered by port: %v", got)
	}
	as(t, r.standbys[0], r.db, `SELECT pg_wal_replay_resume()`)
	r.await(t, 1)
	if got := by(t, r, 10); got[port(r.standbys[0])] != 10 {
		t.Errorf("answered by port: %v", got)
	}

	// The primary answers a query of a table that the standby does not have yet.
	as(t, r.standbys[0], r.db, `SELECT pg_wal_replay_pause()`)
	as(t, r.primary, r.db, `CREATE TABLE fresh AS SELECT 1 AS n; GRANT SELECT ON fresh TO notes_reader`)
	rows := 0
	err := r.Query(t.Context(), func(found pgx.Rows) error {
		for found.Next() {
			rows++
		}
		return nil
	}, `SELECT n FROM fresh`)
	if err != nil || rows != 1 {
		t.Errorf("a table that the standby does not know: %d rows, %v", rows, err)
	}
	as(t, r.standbys[0], r.db, `SELECT pg_wal_replay_resume()`)
}

// TestStandbyFaults checks that all reads succeed while a standby dies, hangs or comes back.
func TestStandbyFaults(t *testing.T) {
	t.Parallel()
	r := replicate(t, 1)
	s := r.standbys[0]
	for _, fault := range []struct {
		name       string
		begin, end func() error
	}{
		{"killed", s.Kill, func() error { return s.Restart(t.Context()) }},
		{"stopped", s.Pause, s.Resume},
	} {
		t.Run(fault.name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var reading sync.WaitGroup
			slowest := make([]time.Duration, 3)
			for i := range slowest {
				reading.Go(func() {
					for ctx.Err() == nil {
						begin := time.Now()
						rows := 0
						err := r.Query(t.Context(), func(found pgx.Rows) error {
							for found.Next() {
								rows++
							}
							return nil
						}, `SELECT n FROM generate_series(1, 3) n`)
						if err != nil || rows != 3 {
							t.Errorf("%d rows, %v", rows, err)
							return
						}
						slowest[i] = max(slowest[i], time.Since(begin))
					}
				})
			}
			if err := fault.begin(); err != nil {
				t.Fatal(err)
			}
			r.await(t, 0)
			if got := by(t, r, 10); got[port(r.primary)] != 10 {
				t.Errorf("answered by port: %v", got)
			}
			if err := fault.end(); err != nil {
				t.Fatal(err)
			}
			r.await(t, 1)
			stop()
			reading.Wait()
			t.Logf("the slowest reads took %v", slowest)
			for _, took := range slowest {
				if took > time.Minute { // the checks detect a hanging standby within 2 s of a quiet machine
					t.Errorf("a read took %v", took)
				}
			}
		})
	}
}

// TestConflictWithReplication checks that the primary answers a statement that replication cancels on the standby.
func TestConflictWithReplication(t *testing.T) {
	t.Parallel()
	r := replicate(t, 1)
	r.insert(t, 1, 1000)
	as(t, r.standbys[0], r.db, `ALTER SYSTEM SET max_standby_streaming_delay = '10ms'`)
	as(t, r.standbys[0], r.db, `SELECT pg_reload_conf()`)
	answered := make(chan error, 1)
	var recovering bool
	go func() {
		answered <- r.Query(t.Context(), func(rows pgx.Rows) error {
			for rows.Next() {
				if err := rows.Scan(&recovering, nil); err != nil {
					return err
				}
			}
			return nil
		}, `SELECT pg_is_in_recovery(), (SELECT count(*) FROM notes) + length(pg_sleep(CASE WHEN pg_is_in_recovery() THEN 300 ELSE 0 END)::text)`)
	}()
	cfg, err := pgx.ParseConfig(r.standbys[0].AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	watch, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close(context.Background())
	eventually.True(t, "the statement runs on the standby", func() bool {
		var n int
		err := watch.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`).Scan(&n)
		return err == nil && n == 1
	})
	as(t, r.primary, r.db, `DELETE FROM notes`)
	as(t, r.primary, r.db, `VACUUM notes`)
	if err := <-answered; err != nil || recovering { // by the standby only after its sleep
		t.Errorf("answered by a standby: %v, %v", recovering, err)
	}
}

func TestReadsWithoutStandbys(t *testing.T) {
	primary := pgtest.Pool(t, pgtest.Database(t, pgtest.Notes()).ReaderURL, pgdb.Options{MaxConns: 1})
	ignore := goleak.IgnoreCurrent()
	r, err := standbys.Open(t.Context(), primary, standbys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := by(t, r, 3); len(got) != 1 {
		t.Errorf("answered by port: %v", got)
	}
	if got := pgdb.Pinned(r); got != pgdb.Querier(primary) {
		t.Errorf("pinned to the only database there is: %T", got)
	}
	r.Close()
	goleak.VerifyNone(t, ignore)
	if _, err := standbys.Open(t.Context(), primary, standbys.Options{Standbys: []config.ServerURL{config.NewServerURL("no url")}}); err == nil {
		t.Error("a standby without a URL")
	}
}

// TestReadersOwnError checks that an error of the read function goes to the caller, and that no other database is
// asked.
func TestReadersOwnError(t *testing.T) {
	t.Parallel()
	r := replicate(t, 1)
	calls := 0
	err := r.Query(t.Context(), func(pgx.Rows) error { calls++; return errStop }, `SELECT 1`)
	if !errors.Is(err, errStop) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Query(gone, func(pgx.Rows) error { return nil }, `SELECT 1`); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left: %v", err)
	}
	if _, serving := r.Standbys(); serving != 1 {
		t.Error("the standby is left out for it")
	}
}
