package pgdb_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func isUnavailable(err error) bool {
	return err != nil && apierr.From(err).Code() == apierr.Unavailable
}

func TestQuery(t *testing.T) {
	p := pgtest.Pool(t, pgtest.Database(t, pgtest.Notes()).IngestURL, pgdb.Options{MaxConns: 1, StatementTimeout: time.Minute})
	ctx := t.Context()
	if tag, err := p.Exec(ctx, `INSERT INTO notes SELECT n, 'b' || n FROM generate_series(1, $1::int) n`, 5); err != nil || tag.RowsAffected() != 5 {
		t.Fatalf("insert: %v, %v", tag, err)
	}
	var got []string
	read := func(rows pgx.Rows) error {
		for rows.Next() {
			got = append(got, string(rows.RawValues()[0]))
		}
		return nil
	}
	// The pool has one connection, so each query also shows that the previous one returned it.
	if err := p.Query(ctx, read, `SELECT body FROM notes WHERE id > $1 ORDER BY id`, 2); err != nil || strings.Join(got, " ") != "b3 b4 b5" {
		t.Errorf("rows %v, %v", got, err)
	}
	if err := p.Query(ctx, read, `SELECT 1 / (id - 3) FROM notes ORDER BY id`); err == nil {
		t.Error("an error after the first rows was not seen")
	}
	if err := p.Query(ctx, func(pgx.Rows) error { return errStop }, `SELECT body FROM notes`); !errors.Is(err, errStop) {
		t.Errorf("the reader's own error came back as %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = p.Query(ctx, func(pgx.Rows) error { panic("in the reader") }, `SELECT body FROM notes`)
	}()
	var body string
	if err := p.QueryRow(ctx, []any{&body}, `SELECT body FROM notes WHERE id = $1`, 4); err != nil || body != "b4" {
		t.Errorf("QueryRow: %q, %v", body, err)
	}
	if err := p.QueryRow(ctx, []any{&body}, `SELECT body FROM notes WHERE id = $1`, 40); !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("QueryRow of none: %v, want ErrNoRows", err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if err := p.Query(canceled, read, `SELECT body FROM notes`); !errors.Is(err, context.Canceled) || isUnavailable(err) {
		t.Errorf("a canceled request: %v, want Canceled", err)
	}
	if err := p.Health(ctx); err != nil {
		t.Errorf("Health: %v", err)
	}
}

var errStop = errors.New("stop")

func TestInTx(t *testing.T) {
	p := pgtest.Pool(t, pgtest.Database(t, pgtest.Notes()).IngestURL, pgdb.Options{MaxConns: 1})
	ctx := t.Context()
	insert := func(id int, then func() error) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `INSERT INTO notes VALUES ($1)`, id); err != nil {
				return err
			}
			return then()
		}
	}
	if err := p.InTx(ctx, insert(1, func() error { return nil })); err != nil {
		t.Fatal(err)
	}
	if err := p.InTx(ctx, insert(2, func() error { return errStop })); !errors.Is(err, errStop) {
		t.Errorf("InTx: %v, want the function's own error", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = p.InTx(ctx, insert(3, func() error { panic("in the transaction") }))
	}()
	var ids []int32
	if err := p.QueryRow(ctx, []any{&ids}, `SELECT array_agg(id) FROM notes`); err != nil || len(ids) != 1 || ids[0] != 1 {
		t.Errorf("stored %v, %v; want the committed row alone", ids, err)
	}
}

// TestALostTransactionGivesItsLocksBack checks that a transaction of a process that does nothing more, as on a lost machine,
// does not hold up another one.
func TestALostTransactionGivesItsLocksBack(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t, pgtest.Notes())
	lost := pgtest.Pool(t, db.OwnerURL, pgdb.Options{StatementTimeout: time.Second})
	other := pgtest.Connect(t, db.OwnerURL)
	err := lost.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE notes`); err != nil {
			return err
		}
		if _, err := other.Exec(t.Context(), `SELECT FROM notes`); err != nil {
			t.Error(err)
		}
		return nil
	})
	if apierr.From(err).Code() != apierr.Unavailable {
		t.Errorf("the lost transaction ends with %v", err)
	}
}

func TestAFullPoolAnswersInTime(t *testing.T) {
	p := pgtest.Pool(t, pgtest.Database(t, pgtest.Notes()).ReaderURL, pgdb.Options{MaxConns: 1, AcquireTimeout: time.Second})
	taken, free := make(chan struct{}), make(chan struct{})
	held := make(chan error, 1)
	go func() {
		for { // on a busy machine the first connection may take longer than a request waits for it
			err := p.Query(context.Background(), func(pgx.Rows) error { close(taken); <-free; return nil }, `SELECT 1`)
			if !isUnavailable(err) {
				held <- err
				return
			}
		}
	}()
	<-taken
	begin := time.Now()
	err := p.Ping(t.Context())
	if took := time.Since(begin); !isUnavailable(err) || took > time.Minute {
		t.Errorf("a full pool: %v after %v, want unavailable", err, took)
	}
	if err := p.Health(t.Context()); !isUnavailable(err) {
		t.Errorf("Health of a pool that is stuck: %v", err)
	}
	close(free)
	if err := <-held; err != nil {
		t.Error(err)
	}
	if err := p.Ping(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestStatementTimeout(t *testing.T) {
	url := pgtest.Database(t, pgtest.Notes()).ReaderURL
	p := pgtest.Pool(t, url, pgdb.Options{StatementTimeout: 50 * time.Millisecond})
	if _, err := p.Exec(t.Context(), `SELECT pg_sleep(60)`); !isUnavailable(err) || !pgdb.TimedOut(err) {
		t.Errorf("a slow statement: %v, want unavailable, by its time-out", err)
	}
	var jit string
	if err := p.QueryRow(t.Context(), []any{&jit}, `SHOW jit`); err != nil || jit != "off" {
		t.Errorf("jit is %q, %v; want off", jit, err)
	}
}

// TestOwnTimeout checks that without STATEMENT_TIMEOUT the service ends a statement, and that its connection sets no parameter
// that a pooler may refuse.
func TestOwnTimeout(t *testing.T) {
	db := pgtest.Database(t, pgtest.Notes())
	admin := pgtest.Server(t).AdminURL()
	var set []string
	usual := pgtest.Pool(t, db.IngestURL, pgdb.Options{})
	err := usual.QueryRow(t.Context(), []any{&set}, `SELECT coalesce(array_agg(name ORDER BY name COLLATE "C"), '{}') FROM pg_settings WHERE source = 'client'`)
	if want := []string{"TimeZone", "application_name"}; err != nil || !slices.Equal(set, want) {
		t.Errorf("the connection sets %q, %v; want %q, which poolers know", set, err, want)
	}
	err = usual.InTx(t.Context(), func(ctx context.Context, _ pgx.Tx) error {
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > 30*time.Second || time.Until(end) < 20*time.Second {
			t.Errorf("a transaction ends at %v, in %v; want 30 s", end, time.Until(end))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}

	// Each session turns the server's time-out off, so that the pool has to end the statement.
	const long = `SELECT pg_sleep(600)`
	for name, run := range map[string]func(*pgdb.Pool) error{
		"a query":     func(p *pgdb.Pool) error { return p.Query(context.Background(), drain, long) },
		"a statement": func(p *pgdb.Pool) error { _, err := p.Exec(context.Background(), long); return err },
		"a transaction": func(p *pgdb.Pool) error {
			return p.InTx(context.Background(), func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, long); return err })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pgtest.Pool(t, db.IngestURL, pgdb.Options{MaxConns: 1, StatementTimeout: 500 * time.Millisecond})
			var pid int
			eventually.Succeeds(t, "the session has no time-out", func() error {
				return p.QueryRow(t.Context(), []any{&pid, new(string)}, `SELECT pg_backend_pid(), set_config('statement_timeout', '0', false)`)
			})
			if err := run(p); !isUnavailable(err) || !pgdb.TimedOut(err) {
				t.Errorf("%v, want unavailable, by its time-out", err)
			}
			activity(t, admin, `NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND state = 'active')`, pid)
			eventually.Succeeds(t, "the next caller gets a connection", func() error { return p.Ping(t.Context()) })
		})
	}
}

func TestPreparedStatementsGone(t *testing.T) {
	db := pgtest.Database(t, pgtest.Notes())
	p := pgtest.Pool(t, db.OwnerURL, pgdb.Options{MaxConns: 1})
	get := func() error {
		var n int
		return p.QueryRow(t.Context(), []any{&n}, `SELECT count(*) FROM notes WHERE id > $1`, 0)
	}
	all := func() error {
		return p.Query(t.Context(), func(rows pgx.Rows) error { rows.Next(); return nil }, `SELECT * FROM notes WHERE id > $1`, 0)
	}
	if err := errors.Join(get(), all()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Exec(t.Context(), `DEALLOCATE ALL`); err != nil {
		t.Fatal(err)
	}
	if err := get(); err != nil {
		t.Errorf("after DEALLOCATE: %v", err)
	}
	if err := all(); err != nil {
		t.Errorf("after DEALLOCATE: %v", err)
	}
	if _, err := p.Exec(t.Context(), `ALTER TABLE notes ADD COLUMN more int`); err != nil {
		t.Fatal(err)
	}
	if err := all(); err != nil {
		t.Errorf("after a column was added: %v", err)
	}
}

func TestOpenDoesNotNeedTheServer(t *testing.T) {
	p := pgtest.Pool(t, "postgres://u:secret@"+needs.Address(t)+"/db?sslmode=disable", pgdb.Options{})
	if err := p.Ping(t.Context()); !isUnavailable(err) {
		t.Errorf("no server: %v, want unavailable", err)
	}
	if err := p.Health(t.Context()); !isUnavailable(err) {
		t.Errorf("no server: Health is %v", err)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	tests := []struct {
		name, url string
		in        pgdb.Options
		want      []string
	}{
		{"no URL", "", pgdb.Options{}, []string{"no URL"}},
		{"not a URL", "postgres://u:secret@h:not-a-port/db", pgdb.Options{}, []string{"cannot be read"}},
		{"options", "postgres://h/db", pgdb.Options{MaxConns: -1, AcquireTimeout: -1},
			[]string{"DATABASE_MAX_CONNS", "DATABASE_ACQUIRE_TIMEOUT"}},
		{"mode", "postgres://u:secret@h/db?default_query_exec_mode=describe_exec", pgdb.Options{}, []string{"describe_exec"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := pgdb.Open(t.Context(), config.NewServerURL(tt.url), tt.in)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%v contains the password", err)
			}
		})
	}
}

// TestPasswordFile checks that each new connection reads the file: a password is not kept, and a file may come back.
func TestPasswordFile(t *testing.T) {
	t.Parallel()
	server := pgtest.Private(t, nil)
	reader, err := url.Parse(server.TCPURL(server.Database(t, pgtest.Notes()).ReaderURL))
	if err != nil {
		t.Fatal(err)
	}
	user := reader.User.Username()
	reader.User = url.User(user)
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("wrong-password")
	var cfg struct {
		URL config.ServerURL `env:"DATABASE_URL"`
	}
	if err := config.Load(&cfg, map[string]string{"DATABASE_URL": pgtest.Patient(reader.String()), "DATABASE_PASSWORD_FILE": file}); err != nil {
		t.Fatal(err)
	}
	p, err := pgdb.Open(t.Context(), cfg.URL, pgdb.Options{AcquireTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	fails := func(want string) {
		t.Helper()
		eventually.Succeeds(t, "the pool says why it cannot connect", func() error {
			err := p.Ping(t.Context())
			if !isUnavailable(err) || strings.Contains(err.Error(), "wrong-password") {
				t.Fatalf("%v, want unavailable, without the password", err)
			}
			if !strings.Contains(err.Error(), want) { // a busy machine connects in no time-out
				return fmt.Errorf("%w, want %q", err, want)
			}
			return nil
		})
	}
	works := func() {
		t.Helper()
		eventually.Succeeds(t, "the pool connects", func() error { return p.Ping(t.Context()) })
	}
	fails("28P01")
	write(user) // pgtest's passwords
	works()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.Reset()
	fails("DATABASE_PASSWORD_FILE names a file that cannot be read: open " + file)
	write(user)
	works()
}

func TestTelemetryHasNoStatementText(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	figures := sdkmetric.NewManualReader()
	p := pgtest.Pool(t, pgtest.Database(t, pgtest.Notes()).ReaderURL, pgdb.Options{
		Name: "notes", TracerProvider: tracer, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(figures)),
	})
	ctx, request := tracer.Tracer("test").Start(t.Context(), "request")
	defer request.End()
	var got string
	if err := p.QueryRow(ctx, []any{&got}, `SELECT 'canary' || $1::text`, "argument"); err != nil {
		t.Fatal(err)
	}
	named := false
	for _, s := range spans.GetSpans() {
		named = named || s.Name == "SELECT"
		for _, a := range s.Attributes {
			if v := a.Value.String(); strings.Contains(v, "canary") || strings.Contains(v, "argument") {
				t.Errorf("span %s has %s = %s", s.Name, a.Key, v)
			}
		}
	}
	if !named {
		t.Errorf("no span SELECT among %v", spans.GetSpans())
	}
	var rm metricdata.ResourceMetrics
	if err := figures.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	if len(rm.ScopeMetrics) == 0 {
		t.Error("no figures of the pool")
	}
}

// A pooler that refuses a parameter is named with the cure.
func TestAPoolerRefusesAParameter(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			backend := pgproto3.NewBackend(conn, conn)
			if _, err := backend.ReceiveStartupMessage(); err == nil {
				backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: jit"})
				_ = backend.Flush()
			}
			_ = conn.Close()
		}
	}()
	p := pgtest.Pool(t, "postgres://me@"+listener.Addr().String()+"/db?sslmode=disable", pgdb.Options{StatementTimeout: time.Minute, AcquireTimeout: time.Minute})
	if err := p.Ping(t.Context()); !isUnavailable(err) || !strings.Contains(fmt.Sprint(errors.Unwrap(err)), "set STATEMENT_TIMEOUT=0") {
		t.Errorf("%v: %v", err, errors.Unwrap(err))
	}
}
