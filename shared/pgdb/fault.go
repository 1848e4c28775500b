package pgdb

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/lectern-dev/lectern/shared/apierr"
)

// Fault says what err, from this package or from pgx, means for a client.
//
//   - nil stays nil; an [apierr.Error] passes as it is.
//   - A cancellation by the caller stays one ([context.Canceled]).
//   - What may work when tried again (the database is out of reach, starting, stopping, full, read-only
//     after a failover, too slow; a deadlock or a serialisation failure) is [apierr.Unavailable].
//   - The rest passes as it is and is answered as internal; [pgx.ErrNoRows] among it.
func Fault(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*apierr.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) && !errors.Is(err, errHangs) { // of what hangs, the pool has cancelled it
		return err
	}
	if transient(err) {
		return apierr.NotAvailable(err)
	}
	return err
}

// transient tells whether err may pass when the same is tried again later.
func transient(err error) bool {
	// Asked before the SQLSTATE: a refused log-in is the database's being out of reach for clients.
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return transientState(pg.Code)
	}
	for _, target := range []error{
		context.DeadlineExceeded, os.ErrDeadlineExceeded, errNoConnection, errHangs, errCrowded, errDoubt, puddle.ErrClosedPool,
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

// partLost tells whether an error of a distributed database (Citus) says that it can not reach the part
// that the statement was of. What ends the connection is of the database that was asked itself.
func partLost(pg *pgconn.PgError) bool {
	return pg.SeverityUnlocalized == "ERROR" && strings.HasPrefix(pg.Code, "08")
}

// transientState judges a SQLSTATE (PostgreSQL documentation, appendix A).
func transientState(code string) bool {
	if len(code) != 5 {
		return false
	}
	switch code {
	case "40001", // serialization_failure
		"40P01", // deadlock_detected
		"55P03", // lock_not_available
		"57014", // query_canceled: by statement_timeout, as the caller's own cancellation was seen before
		"25006", // read_only_sql_transaction: the primary became a standby
		"25P03", // idle_in_transaction_session_timeout
		"25P04", // transaction_timeout
		"26000", // invalid_sql_statement_name: a pooler or failover lost the prepared statement
		"58000", // system_error
		"58030", // io_error
		// internal_error: Citus has no other for a worker lost in the middle of a write. XX001 and
		// XX002, corrupt data, are not among it.
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
