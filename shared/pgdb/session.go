package pgdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// parting is how long a statement may take to end whose caller has left. Then its connection is given up with it.
const parting = 500 * time.Millisecond

// soon is how long a statement is waited for whose caller has left before the server is asked to cancel it: about
// as long as that takes, which is a process of the server, and the statement prepared anew.
const soon = 4 * time.Millisecond

// session is what a pool keeps of one of its connections. It ends the statement there when its context does.
//
// A caller that leaves has its statement cancelled by the server (PostgreSQL documentation, 55.2.8), unless it is
// over soon, and the connection is as good as before: a new one costs the server a process, a log-in and its caches, and who comes
// next the wait for it. A context that ends by its deadline, or for a cause of its own, says that the server is
// too slow or hangs: nothing more is waited for, and the connection is given up at once.
//
// A request to cancel is of a process of the server, and not of a statement: one that is late would end
// the next. So a connection is used again only when the server has closed that request's own, which it does when
// the process has its signal. What a process finds that waits for a statement it drops.
type session struct {
	conn   *pgconn.PgConn
	until  time.Time // when its use ends at the latest; zero: nothing bounds it
	warned string    // SQLSTATE of a warning that came meanwhile

	over      chan struct{} // closed when the statement is that whose caller has left
	cancelled chan error    // gets the outcome of a request to cancel it; nil while nobody has left
	astray    bool          // a request to cancel may still be on its way
}

var _ ctxwatch.Handler = (*session)(nil)

// sessionKey is where a connection keeps its session.
const sessionKey = "lectern session"

// newSession makes the session of a connection.
func newSession(conn *pgconn.PgConn) ctxwatch.Handler {
	s := &session{conn: conn}
	conn.CustomData()[sessionKey] = s
	return s
}

// sessionOf gives the session of a pool's connection; nil while the connection is made.
func sessionOf(conn *pgconn.PgConn) *session {
	s, _ := conn.CustomData()[sessionKey].(*session)
	return s
}

// bound has what waits for the server end at that time; never when it is zero.
func (s *session) bound(until time.Time) {
	s.until = until
	_ = s.conn.Conn().SetDeadline(until) // fails on a dead connection, as its use will
}

// HandleCancel ends the statement under way. It is called when ctx has ended.
func (s *session) HandleCancel(ctx context.Context) {
	if context.Cause(ctx) != context.Canceled {
		_ = s.conn.Conn().SetDeadline(time.Now())
		return
	}
	until := time.Now().Add(parting)
	_ = s.conn.Conn().SetDeadline(until)
	s.over, s.cancelled = make(chan struct{}), make(chan error, 1)
	go func(over <-chan struct{}, outcome chan<- error) {
		patience := time.NewTimer(soon)
		defer patience.Stop()
		select {
		case <-over:
			outcome <- nil
			return
		case <-patience.C:
		}
		ctx, end := context.WithDeadline(context.WithoutCancel(ctx), until)
		defer end()
		err := s.conn.CancelRequest(ctx)
		if err == nil {
			err = ctx.Err() // it does not say that it waited in vain
		}
		outcome <- err
	}(s.over, s.cancelled)
}

// HandleUnwatchAfterCancel waits until nothing is on its way any more that would end another statement. It is
// called behind HandleCancel, when the statement is over.
func (s *session) HandleUnwatchAfterCancel() {
	if s.cancelled != nil {
		close(s.over)
		s.astray = <-s.cancelled != nil
		s.cancelled = nil
	}
	_ = s.conn.Conn().SetDeadline(s.until)
}

// left gives the meaning of err to a caller whose context is ctx: where it has left, the server's word that the
// statement was cancelled says just that.
func left(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "57014" {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}
