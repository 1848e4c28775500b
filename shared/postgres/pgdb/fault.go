package pgdb

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
)

// Fault returns the error for a client that corresponds to err, an error of this package or of pgx.
//
//   - nil stays nil, and an [apierr.Error] stays unchanged.
//   - A cancellation by the caller stays [context.Canceled].
//   - A fault that a retry may overcome becomes [apierr.Unavailable]: the database is out of reach, starting, stopping,
//     full or too slow. The database can also be read-only after a failover, have come back without its tables, or
//     report a deadlock or a serialisation failure.
//   - Any other error stays unchanged, including [pgx.ErrNoRows]. The server answers such an error as internal.
func Fault(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*apierr.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	if transient(err) {
		return apierr.NotAvailable(err)
	}
	return err
}

// transient reports whether the statement that failed with err may succeed when the caller retries it later.
func transient(err error) bool {
	// Check this before the SQLSTATE: for clients, a refused log-in means that the database is out of reach.
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*config.Fault](err); ok {
		return true // the password file cannot be read now
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return TransientState(pg.Code)
	}
	for _, target := range []error{
		context.DeadlineExceeded, os.ErrDeadlineExceeded, ErrNoConnection, puddle.ErrClosedPool,
		pgconn.ErrConnClosed, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return pgconn.Timeout(err) || pgconn.SafeToRetry(err)
}

// TimedOut reports whether a statement failed with err because it ran longer than it may. The server has a limit, its
// statement_timeout, unless STATEMENT_TIMEOUT is 0. The pool has another limit.
func TimedOut(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "57014" // query_canceled
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return !connecting && errors.Is(err, context.DeadlineExceeded)
}

// TransientState reports whether a SQLSTATE (PostgreSQL documentation, appendix A) is the code of a transient fault,
// which a retry may overcome.
func TransientState(code string) bool {
	if len(code) != 5 {
		return false
	}
	switch code {
	case "40001", // serialization_failure
		"40P01", // deadlock_detected
		"55P03", // lock_not_available
		"57014", // query_canceled: by statement_timeout; a caller's own cancellation never gets here
		"25006", // read_only_sql_transaction: the primary became a standby
		"25P03", // idle_in_transaction_session_timeout
		"25P04", // transaction_timeout
		"42P01", // undefined_table: the database came back empty, and was not migrated since
		"26000", // invalid_sql_statement_name: a pooler or failover lost the prepared statement
		"58000", // system_error
		"58030", // io_error
		// internal_error: Citus has no other code for a worker lost in the middle of a write. XX001 and XX002,
		// corrupt data, are not transient.
		"XX000":
		return true
	}
	switch code[:2] {
	case "08", // connection exceptions; also Citus' for a worker out of reach
		"53": // insufficient resources: disk, memory, connections
		return true
	}
	return code[:4] == "57P0" // shut down, crashed, starting up, dropped, idle too long
}
