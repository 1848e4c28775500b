package pgdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/lectern-dev/lectern/shared/apierr"
)

func TestFault(t *testing.T) {
	state := func(code string) error {
		// The text contradicts the code on purpose.
		return fmt.Errorf("list: %w", &pgconn.PgError{Severity: "ERROR", Code: code, Message: "failure on connection"})
	}
	_, refused := pgx.Connect(t.Context(), "postgres://127.0.0.1:1/db?sslmode=disable&connect_timeout=5")
	tests := []struct {
		name string
		in   error
		want apierr.Code // the code for the client
	}{
		{"connection refused", refused, apierr.Unavailable},
		{"connection_failure", state("08006"), apierr.Unavailable},
		{"protocol_violation", state("08P01"), apierr.Unavailable},
		{"disk_full", state("53100"), apierr.Unavailable},
		{"out_of_memory", state("53200"), apierr.Unavailable},
		{"too_many_connections", state("53300"), apierr.Unavailable},
		{"admin_shutdown", state("57P01"), apierr.Unavailable},
		{"crash_shutdown", state("57P02"), apierr.Unavailable},
		{"cannot_connect_now", state("57P03"), apierr.Unavailable},
		{"database_dropped", state("57P04"), apierr.Unavailable},
		{"statement time-out", state("57014"), apierr.Unavailable},
		{"lock_not_available", state("55P03"), apierr.Unavailable},
		{"read-only after a failover", state("25006"), apierr.Unavailable},
		{"undefined_table", state("42P01"), apierr.Unavailable},
		{"serialization_failure", state("40001"), apierr.Unavailable},
		{"deadlock_detected", state("40P01"), apierr.Unavailable},
		{"internal_error", state("XX000"), apierr.Unavailable},
		{"deadline", fmt.Errorf("list: %w", context.DeadlineExceeded), apierr.Unavailable},
		{"deadline of the connection", os.ErrDeadlineExceeded, apierr.Unavailable},
		{"server gone", io.ErrUnexpectedEOF, apierr.Unavailable},
		{"socket closed", net.ErrClosed, apierr.Unavailable},
		{"reset by peer", &net.OpError{Op: "read", Err: errors.New("reset")}, apierr.Unavailable},
		{"pool full", ErrNoConnection, apierr.Unavailable},
		{"pool closed", puddle.ErrClosedPool, apierr.Unavailable},
		{"known to the client", fmt.Errorf("get: %w", apierr.NoEntry("en_1")), apierr.EntryNotFound},

		{"data_corrupted", state("XX001"), apierr.Internal},
		{"syntax_error", state("42601"), apierr.Internal},
		{"insufficient_privilege", state("42501"), apierr.Internal},
		{"unique_violation", state("23505"), apierr.Internal},
		{"no such state", state("57P"), apierr.Internal},
		{"no rows", pgx.ErrNoRows, apierr.Internal},
		{"something else", errors.New("08006"), apierr.Internal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Fault(tt.in)
			if code := apierr.From(got).Code(); code != tt.want {
				t.Errorf("Fault(%v) is %s to a client, want %s", tt.in, code, tt.want)
			}
			if !errors.Is(got, tt.in) {
				t.Errorf("Fault(%v) = %v, which does not wrap it", tt.in, got)
			}
			if tt.want == apierr.Unavailable && apierr.From(got).RetryAfter() <= 0 {
				t.Errorf("Fault(%v) does not say when to come back", tt.in)
			}
			if twice := Fault(got); twice != got {
				t.Errorf("Fault of a fault is %v, want it unchanged", twice)
			}
		})
	}
	if got := Fault(nil); got != nil {
		t.Errorf("Fault(nil) = %v", got)
	}
	canceled := fmt.Errorf("list: %w", context.Canceled)
	if got := Fault(canceled); got != canceled {
		t.Errorf("Fault(%v) = %v, want it unchanged", canceled, got)
	}
}
