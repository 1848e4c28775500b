package pgdb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// backend returns the server process of the one connection of p.
func backend(t *testing.T, p *pgdb.Pool) (pid int) {
	t.Helper()
	if err := p.QueryRow(t.Context(), []any{&pid}, `SELECT pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	return pid
}

// activity waits until the condition is, over pg_stat_activity, is true for the server process pid.
func activity(t *testing.T, admin, is string, pid int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	eventually.True(t, is, func() (yes bool) {
		if err := conn.QueryRow(t.Context(), `SELECT `+is, pid).Scan(&yes); err != nil {
			t.Fatal(err)
		}
		return yes
	})
}

func drain(rows pgx.Rows) error {
	for rows.Next() {
	}
	return nil
}

// TestCancelEndsTheStatement checks that the server ends the statement of a caller that gives up, and that the next
// caller gets a connection.
func TestCancelEndsTheStatement(t *testing.T) {
	db := pgtest.Database(t, pgtest.Notes())
	admin := pgtest.Server(t).AdminURL()
	p := pgtest.Pool(t, db.IngestURL, pgdb.Options{MaxConns: 1, AcquireTimeout: 20 * time.Second, StatementTimeout: time.Minute})
	const long, much = `SELECT pg_sleep(50)::text WHERE $1 > 0`, `SELECT repeat('x', 100), generate_series(1, 100000000 * $1)`
	reading := func(then func(pgx.Rows) error) func(context.Context, func()) error {
		return func(ctx context.Context, cancel func()) error {
			return p.Query(ctx, func(rows pgx.Rows) error {
				rows.Next()
				cancel()
				return then(rows)
			}, much, 1)
		}
	}
	for _, tt := range []struct {
		name  string
		waits bool // the first row takes long
		ask   func(ctx context.Context, cancel func()) error
	}{
		{"a query", true, func(ctx context.Context, _ func()) error { return p.Query(ctx, drain, long, 1) }},
		{"a query that has returned rows", false, reading(drain)},
		{"a query whose caller has read enough", false, reading(func(pgx.Rows) error { return nil })},
		{"a query whose caller fails", false, reading(func(pgx.Rows) error { return errStop })},
		{"a statement", true, func(ctx context.Context, _ func()) error { _, err := p.Exec(ctx, long, 1); return err }},
		{"a transaction", true, func(ctx context.Context, _ func()) error {
			return p.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, long, 1); return err })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pid := backend(t, p)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			result := make(chan error, 1)
			go func() { result <- tt.ask(ctx, cancel) }()
			if tt.waits {
				activity(t, admin, `EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep')`, pid)
				cancel()
			}
			if err := <-result; !errors.Is(err, context.Canceled) || isUnavailable(err) {
				t.Errorf("the caller gets %v, want Canceled", err)
			}
			activity(t, admin, `NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND state = 'active')`, pid)
			backend(t, p) // uses the pool's only connection
		})
	}
}

// TestCancelOnAServerThatHangs checks that a caller that gives up does not wait for a hanging server.
func TestCancelOnAServerThatHangs(t *testing.T) {
	server := pgtest.Private(t, nil)
	p := pgtest.Pool(t, server.Database(t, pgtest.Notes()).ReaderURL, pgdb.Options{MaxConns: 2, StatementTimeout: time.Hour})
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(50*time.Millisecond, cancel)
	begin := time.Now()
	err := p.Query(ctx, drain, `SELECT $1::int`, 1)
	if took := time.Since(begin); !errors.Is(err, context.Canceled) || took > 5*time.Minute { // a twelfth of the statement's time-out
		t.Errorf("%v after %v, want Canceled", err, took)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "answers again", func() bool { return p.Ping(t.Context()) == nil })
}
