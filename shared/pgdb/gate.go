package pgdb

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Gate admits statements to a database whose tables are distributed over several servers. A server that fails then
// takes only its share of the pool's connections. A pool of plain Postgres has no gate. Package pgcitus has the only
// implementation.
type Gate interface {
	// Enter admits a statement or transaction of a project. project is empty for a statement of no single project.
	// The statement runs in the returned context. The caller calls leave once, even after a failure to connect.
	Enter(ctx context.Context, project string) (_ context.Context, leave Leave, err error)

	// Close stops the gate's background work.
	Close()
}

// Leave reports the outcome of an admitted statement to the gate and returns the error's meaning. conn is nil if
// there was no connection. err comes from the server or the network.
type Leave func(conn *pgconn.PgConn, tag pgconn.CommandTag, err error) error

// ErrShard is wrapped by the errors of a [Gate] that refuses or ends a statement. The server that has the project's
// rows is busy or does not answer. For clients the error is unavailable.
var ErrShard = errors.New("the database server of this project is not available")

// SetGate attaches a gate to the pool. The pool closes it.
func (p *Pool) SetGate(g Gate) { p.gate.Store(&g) }

// Gate returns the pool's gate, or nil on plain Postgres.
func (p *Pool) Gate() Gate {
	if gate := p.gate.Load(); gate != nil {
		return *gate
	}
	return nil
}

// Distributed reports whether tables are distributed over several servers. The pool finds out with its first
// connection. Some statements for one server do not work on several.
func (p *Pool) Distributed() bool { return p.gate.Load() != nil }

// projectOf returns the project of a statement by its arguments, as [Pool.Query] describes, or "".
func projectOf(args []any) string {
	for _, a := range args {
		switch a := a.(type) {
		case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID:
		case string:
			return a
		default:
			return ""
		}
	}
	return ""
}
