package pgdb_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// backend gives the process of the server that has the one connection of p.
func backend(t *testing.T, p *pgdb.Pool) (pid int) {
	t.Helper()
	if err := p.QueryRow(t.Context(), []any{&pid}, `SELECT pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	return pid
}

// activity waits until a process of the server does as is, a condition over pg_stat_activity.
func activity(t *testing.T, admin string, pid int, is string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	eventually(t, "the process is as "+is, func() (yes bool) {
		err := conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND `+is+`)`, pid).Scan(&yes)
		if err != nil {
			t.Fatal(err)
		}
		return yes
	})
}

const sleeps = `wait_event = 'PgSleep'`

func drain(rows pgx.Rows) error {
	for rows.Next() {
	}
	return nil
}

// A caller that leaves has its statement ended, and who comes next has the same connection.
func TestWhoLeavesTakesNoConnection(t *testing.T) {
	db := pgtest.Database(t, notes())
	admin := pgtest.Server(t).AdminURL()
	p := open(t, db.IngestURL, pgdb.Options{MaxConns: 1, AcquireTimeout: 20 * time.Second, StatementTimeout: time.Minute})
	const long, much = `SELECT pg_sleep(50)::text WHERE $1 > 0`, `SELECT repeat('x', 100), generate_series(1, 100000000 * $1)`
	reading := func(then func(pgx.Rows) error) func(context.Context, func()) error {
		return func(ctx context.Context, leave func()) error {
			return p.Query(ctx, func(rows pgx.Rows) error {
				rows.Next()
				leave()
				return then(rows)
			}, much, 1)
		}
	}
	for _, tt := range []struct {
		name  string
		waits bool // for the first row, for long
		ask   func(ctx context.Context, leave func()) error
	}{
		{"a query", true, func(ctx context.Context, _ func()) error { return p.Query(ctx, drain, long, 1) }},
		{"a query that is brief", true, func(ctx context.Context, _ func()) error { return p.Query(ctx, drain, long, 1, pgdb.Brief) }},
		{"a query that has given rows", false, reading(drain)},
		{"a query of which it has enough", false, reading(func(pgx.Rows) error { return nil })},
		{"a query, with an error of its own", false, reading(func(pgx.Rows) error { return errStop })},
		{"a statement", true, func(ctx context.Context, _ func()) error { _, err := p.Exec(ctx, long, 1); return err }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := backend(t, p)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			left := make(chan error, 1)
			go func() { left <- tt.ask(ctx, leave) }()
			if tt.waits {
				activity(t, admin, before, sleeps)
				leave()
			}
			if err := <-left; !errors.Is(err, context.Canceled) || isUnavailable(err) {
				t.Errorf("who left is told %v", err)
			}
			if after := backend(t, p); after != before {
				t.Errorf("who comes next has the connection of process %d, before it was that of %d", after, before)
			}
		})
	}
}

// Who leaves a server that hangs is let go in bounded time, long before the statement's.
func TestWhoLeavesAServerThatHangs(t *testing.T) {
	server := pgtest.Private(t, nil)
	p := open(t, server.Database(t, notes()).ReaderURL, pgdb.Options{MaxConns: 2, StatementTimeout: time.Hour})
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	time.AfterFunc(50*time.Millisecond, leave)
	begin := time.Now()
	err := p.Query(ctx, drain, `SELECT $1::int`, 1)
	if took := time.Since(begin); !errors.Is(err, context.Canceled) || took > 10*time.Second {
		t.Errorf("%v after %v, want Canceled", err, took)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "answers again", func() bool { return p.Ping(t.Context()) == nil })
}

// gate passes connections on to a server, and a request to cancel only once it is open.
type gate struct {
	l       net.Listener
	target  string
	asked   chan struct{} // one for each request to cancel
	open    func()
	opened  chan struct{}
	through chan struct{} // closed when the server has had such a request
	serving sync.WaitGroup
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{l: l, target: target, asked: make(chan struct{}, 8), opened: make(chan struct{}), through: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	g.serving.Go(func() {
		first := sync.OnceFunc(func() { close(g.through) })
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			g.serving.Go(func() {
				defer c.Close()
				if g.serve(c) {
					first()
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); g.open(); g.serving.Wait() })
	return g
}

// serve passes a connection on, and tells whether it was a request to cancel.
func (g *gate) serve(c net.Conn) bool {
	head := make([]byte, 8)
	if _, err := io.ReadFull(c, head); err != nil {
		return false
	}
	cancels := binary.BigEndian.Uint32(head[4:]) == 80877102 // CancelRequest, PostgreSQL documentation, 55.7
	if cancels {
		g.asked <- struct{}{}
		<-g.opened
	}
	server, err := net.Dial("tcp", g.target)
	if err != nil {
		return false
	}
	defer server.Close()
	if _, err := server.Write(head); err != nil {
		return false
	}
	go func() {
		_, _ = io.Copy(server, c)
		if !cancels { // who sent the request may be gone before it comes here
			server.Close()
		}
	}()
	_, _ = io.Copy(c, server)
	return cancels
}

// A request to cancel that comes late ends no other statement: the connection is used again when the server has
// had the request, and not at all when that takes too long.
func TestLateCancel(t *testing.T) {
	server := pgtest.PrivatePrimary(t, nil)
	url := server.TCPURL(server.Database(t, notes()).ReaderURL)
	for _, late := range []bool{false, true} {
		t.Run(map[bool]string{false: "in time", true: "too late"}[late], func(t *testing.T) {
			g := newGate(t, hostPort(t, url))
			p := open(t, at(t, url, g.l.Addr().String()), pgdb.Options{MaxConns: 1, AcquireTimeout: 20 * time.Second})
			before := backend(t, p)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			left := make(chan error, 1)
			go func() { left <- p.Query(ctx, drain, `SELECT pg_sleep(0.1)::text`) }()
			activity(t, server.AdminURL(), before, sleeps)
			begin := time.Now()
			leave()
			select {
			case <-g.asked:
			case <-time.After(10 * time.Second):
				t.Fatal("the server was not asked to cancel")
			}
			if !late {
				activity(t, server.AdminURL(), before, `state = 'idle'`)
				select {
				case err := <-left:
					if took := time.Since(begin); took < 400*time.Millisecond {
						t.Errorf("left after %v with a request to cancel on its way: %v", took, err)
					}
					left <- err
				case <-time.After(50 * time.Millisecond):
				}
				g.open()
			}
			if err := <-left; err != nil && !errors.Is(err, context.Canceled) { // nil: it was faster than the request
				t.Errorf("who left is told %v", err)
			}
			after := backend(t, p)
			next := make(chan error, 1)
			go func() { next <- p.Query(t.Context(), drain, `SELECT pg_sleep(0.3)::text`) }()
			if late {
				activity(t, server.AdminURL(), after, sleeps)
				g.open()
				<-g.through
			}
			if err := <-next; err != nil {
				t.Errorf("another statement, by process %d, the one left by %d: %v", after, before, err)
			}
			if late && after == before {
				t.Error("a connection is used again while a request to cancel is on its way to it")
			}
		})
	}
}
