package pgdb

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Gate admits statements to a database whose tables are distributed over several servers, so that a server that
// fails takes no more than its share of the pool's connections. A pool of plain Postgres has none. Package
// pgcitus has the only implementation.
type Gate interface {
	// Enter admits a statement or transaction of a project, empty when it belongs to none. The statement runs in
	// the returned context. The caller calls leave once, also after a failure to connect.
	Enter(ctx context.Context, project string) (_ context.Context, leave Leave, err error)

	// Close stops the gate's background work.
	Close()
}

// Leave reports the outcome of an admitted statement to the gate and returns what it means. conn is nil when
// there was no connection; err is the server's or the network's.
type Leave func(conn *pgconn.PgConn, tag pgconn.CommandTag, err error) error

// ErrShard is wrapped by the errors of a [Gate] that refuses or ends a statement, because the server that has
// the project's rows is busy or does not answer. It is unavailable for clients.
var ErrShard = errors.New("the database server of this project is not available")

// SetGate attaches a gate to the pool, which closes it.
func (p *Pool) SetGate(g Gate) { p.gate.Store(&g) }

// Gate returns the pool's gate, nil on plain Postgres.
func (p *Pool) Gate() Gate {
	if gate := p.gate.Load(); gate != nil {
		return *gate
	}
	return nil
}

// Distributed reports whether tables are distributed over several servers. The pool learns it with its first
// connection. Not every statement for one server works on several.
func (p *Pool) Distributed() bool { return p.gate.Load() != nil }

// projectOf returns the project of a statement by its arguments, as [Pool.Query] says; empty for none.
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
