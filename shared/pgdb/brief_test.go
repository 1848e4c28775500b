package pgdb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// joined reads how many statements shared a connection.
func joined(t *testing.T, reader *sdkmetric.ManualReader) (n int64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "lectern.database.joined" {
				n = sum.DataPoints[0].Value
			}
		}
	}
	return n
}

// Whatever happens to statements that share a connection, each is answered with its own rows, or its own
// fault, and never with another's.
func TestBriefStatementsKeepApart(t *testing.T) {
	db := pgtest.Database(t, notes())
	meter := sdkmetric.NewManualReader()
	p := open(t, db.IngestURL, pgdb.Options{
		MaxConns: 2, AcquireTimeout: 20 * time.Second, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(meter)),
	})
	if _, err := p.Exec(t.Context(), `INSERT INTO notes SELECT n, 'b' || n FROM generate_series(1, 100) n`); err != nil {
		t.Fatal(err)
	}
	ask := func(kind int, id int) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []string
		read := func(rows pgx.Rows) error {
			for rows.Next() {
				got = append(got, string(rows.RawValues()[0]))
			}
			return nil
		}
		sql := `SELECT body FROM notes WHERE id BETWEEN $1 AND $1 + 2 ORDER BY id`
		want := fmt.Sprintf("[b%d b%d b%d]", id, id+1, id+2)
		switch kind {
		case 0: // fails before its first row
			sql = `SELECT 1 / (id - id) FROM notes WHERE id = $1`
		case 1: // behind it
			sql = `SELECT 1 / (id - $1 - 1) FROM notes WHERE id >= $1 ORDER BY id`
		case 2: // the caller leaves some time
			time.AfterFunc(time.Duration(rand.IntN(2000))*time.Microsecond, cancel)
		case 3: // it leaves while its rows are read
			inner := read
			read = func(rows pgx.Rows) error { cancel(); return inner(rows) }
		case 4: // it has enough of the first
			read = func(rows pgx.Rows) error {
				rows.Next()
				got = append(got, string(rows.RawValues()[0]))
				return errStop
			}
		case 5:
			read = func(rows pgx.Rows) error { panic(id) }
		case 6: // another statement, that is not prepared yet
			sql = fmt.Sprintf("SELECT body FROM notes WHERE id BETWEEN $1 AND $1 + 2 AND 0 <= %d ORDER BY id", rand.IntN(1_000_000))
		case 7: // ends its connection, and that of those it is with
			sql = `SELECT pg_terminate_backend(pg_backend_pid())::text FROM notes WHERE id = $1`
		}
		panicked, err := func() (panicked any, err error) {
			defer func() { panicked = recover() }()
			return nil, p.Query(ctx, read, sql, id, pgdb.Brief)
		}()
		pg, _ := errors.AsType[*pgconn.PgError](err)
		is := fmt.Sprint(got)
		switch {
		case kind != 5 && panicked != nil:
			return fmt.Errorf("panicked: %v", panicked)
		case kind == 0 && (pg == nil || pg.Code != "22012" || is != "[]"),
			kind == 1 && (pg == nil || pg.Code != "22012"),
			kind == 2 && !(err == nil && is == want || errors.Is(err, context.Canceled)),
			kind == 3 && !(is == want || is == "[]" || errors.Is(err, context.Canceled)),
			kind == 4 && (!errors.Is(err, errStop) || is != fmt.Sprintf("[b%d]", id)),
			kind == 5 && panicked != id,
			kind == 7 && err == nil,
			(kind == 6 || kind > 7) && (is != want || err != nil) && !isUnavailable(err): // one that ended a connection was there
			return fmt.Errorf("kind %d, id %d: %v, panic %v: %w", kind, id, is, panicked, err)
		}
		return nil
	}
	const clients, each = 24, 150
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range each {
				kind := rand.IntN(60)
				if kind == 7 && rand.IntN(4) > 0 {
					kind = 8
				}
				if err := ask(kind, 1+rand.IntN(90)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := joined(t, meter); n < clients*each/100 {
		t.Errorf("%d of %d statements shared a connection: they are not what is tested", n, clients*each)
	}
	// All connections are back, and none is a statement behind.
	for id := range 10 {
		all.Go(func() {
			if err := ask(8, id+1); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// What waits behind statements that hang is left when its caller has enough, and what hangs is ended when
// all callers have left.
func TestBriefStatementsAreLeft(t *testing.T) {
	db := pgtest.Database(t, notes())
	p := open(t, db.IngestURL, pgdb.Options{MaxConns: 1, AcquireTimeout: 30 * time.Second})
	owner := open(t, db.OwnerURL, pgdb.Options{MaxConns: 2})
	locked, unlock := make(chan struct{}), make(chan struct{})
	var holder sync.WaitGroup
	holder.Go(func() {
		err := owner.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `LOCK TABLE notes`)
			close(locked)
			<-unlock
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-locked
	defer holder.Wait()
	defer close(unlock)

	read := func(rows pgx.Rows) error {
		for rows.Next() {
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var left atomic.Int32
	var all sync.WaitGroup
	ask := func(ctx context.Context) {
		if err := p.Query(ctx, read, `SELECT body FROM notes`, pgdb.Brief); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want Canceled", err)
		}
		left.Add(1)
	}
	hangs := func() bool {
		var n int
		err := owner.QueryRow(t.Context(), []any{&n},
			`SELECT count(*) FROM pg_locks WHERE relation = 'notes'::regclass AND NOT granted`)
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	}
	until := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("never: %s", what)
			}
		}
	}
	// One goes alone and hangs; eight wait, and go together when it is given up, and hang.
	alone, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	all.Go(func() { ask(alone) })
	until("the first hangs", hangs)
	for range 7 {
		all.Go(func() { ask(ctx) })
	}
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if err := p.Query(short, read, `SELECT body FROM notes`, pgdb.Brief); !isUnavailable(err) {
		t.Errorf("one that waits: %v, want Unavailable in its own time", err)
	}
	giveUp()
	until("the first left", func() bool { return left.Load() == 1 })
	until("those behind it hang", hangs)
	cancel()
	until("all left", func() bool { return left.Load() == 8 })
	until("nothing hangs", func() bool { return !hangs() })
	all.Wait()
}

// Those that wait are answered in time when no connection is to be had.
func TestBriefStatementsWaitNoLongerThanForAConnection(t *testing.T) {
	p := open(t, pgtest.Database(t, notes()).IngestURL, pgdb.Options{MaxConns: 1, AcquireTimeout: 50 * time.Millisecond})
	// A busy machine may take longer than that to make the connection.
	for deadline := time.Now().Add(20 * time.Second); p.Ping(t.Context()) != nil; {
		if time.Now().After(deadline) {
			t.Fatal("no connection at all")
		}
	}
	taken, enough := make(chan struct{}), make(chan struct{})
	var holder, all sync.WaitGroup
	holder.Go(func() {
		hold := sync.OnceFunc(func() { close(taken) })
		defer hold()
		err := p.Query(t.Context(), func(pgx.Rows) error { hold(); <-enough; return nil }, `SELECT 1`)
		if err != nil {
			t.Error(err)
		}
	})
	<-taken
	var inTime atomic.Int32
	for range 4 {
		all.Go(func() {
			if err := p.Query(t.Context(), func(pgx.Rows) error { return nil }, `SELECT 1`, pgdb.Brief); isUnavailable(err) {
				inTime.Add(1)
			}
		})
	}
	free := time.AfterFunc(10*time.Second, func() { close(enough) }) // the test would hang
	all.Wait()
	if free.Stop() {
		close(enough)
	} else {
		t.Error("they waited until the connection was free")
	}
	if n := inTime.Load(); n != 4 {
		t.Errorf("%d of 4 were told that no connection was to be had", n)
	}
	holder.Wait()
}

// One that is taken along by a statement that hangs waits no longer either, and is not asked for again behind
// the time-out of that one, which has its own.
func TestBriefStatementsOfAPartyThatHangs(t *testing.T) {
	db := pgtest.Database(t, notes())
	p := open(t, db.IngestURL, pgdb.Options{MaxConns: 1, AcquireTimeout: 2 * time.Second, StatementTimeout: 4 * time.Second})
	owner := open(t, db.OwnerURL, pgdb.Options{})
	taken, enough := make(chan struct{}), make(chan struct{})
	var others, all sync.WaitGroup
	others.Go(func() { // has the connection until all wait for it
		err := p.Query(t.Context(), func(pgx.Rows) error { close(taken); <-enough; return nil }, `SELECT 1`)
		if err != nil {
			t.Error(err)
		}
	})
	<-taken
	err := owner.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE notes`); err != nil {
			return err
		}
		const callers = 4
		took, lead := make(chan time.Duration, callers), make(chan struct{})
		for i := range callers {
			all.Go(func() {
				if i > 0 {
					<-lead
				}
				begin := time.Now()
				time.AfterFunc(100*time.Millisecond, sync.OnceFunc(func() {
					if i == 0 {
						close(lead)
					}
				}))
				err := p.Query(t.Context(), func(pgx.Rows) error { return nil }, `SELECT body FROM notes`, pgdb.Brief)
				if !isUnavailable(err) {
					t.Errorf("%v, want Unavailable", err)
				}
				took <- time.Since(begin)
			})
		}
		<-lead
		time.AfterFunc(200*time.Millisecond, func() { close(enough) })
		all.Wait()
		close(took)
		for d := range took {
			if d > 7*time.Second {
				t.Errorf("answered after %v", d)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	others.Wait()
}
