package pgdb

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// errDoubt is the cause of a 503 for a write that was acknowledged with a warning that a part of the
// database was lost meanwhile. Where tables are distributed (Citus), a commit has two phases; a machine
// that dies between them takes what was written out of sight until it is back and was told to go
// on. The coordinator acknowledges and warns. Such a write counts as not acknowledged: who repeats it is
// answered when it can be seen.
var errDoubt = errors.New("written, but not everywhere to be seen yet")

// noteWarning remembers a warning that the server, or a part of it, was lost.
func noteWarning(conn *pgconn.PgConn, n *pgconn.Notice) {
	if s := sessionOf(conn); s != nil && n.SeverityUnlocalized == "WARNING" && transientState(n.Code) {
		s.warned = n.Code
	}
}

// doubt gives errDoubt when a write that was acknowledged with tag came with a warning.
func doubt(conn *pgconn.PgConn, tag pgconn.CommandTag) error {
	if tag.Select() {
		return nil
	}
	if s := sessionOf(conn); s.warned != "" {
		return fmt.Errorf("%w (SQLSTATE %s)", errDoubt, s.warned)
	}
	return nil
}
