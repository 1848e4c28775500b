package api

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

// TestRedial checks that the edge tries another replica if one refuses the connection, and gives up on any other fault.
func TestRedial(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, tt := range []struct {
		name    string
		answers []error
		dials   int
	}{
		{"it listens", []error{nil}, 1},
		{"one replica was killed", []error{refused, nil}, 2},
		{"all replicas refuse", []error{refused, refused, refused, nil}, 3},
		{"a time-out", []error{os.ErrDeadlineExceeded, nil}, 1},
	} {
		n := 0
		_, err := redial(func(context.Context, string, string) (net.Conn, error) { n++; return nil, tt.answers[n-1] })(t.Context(), "tcp", "entries:8080")
		if n != tt.dials || !errors.Is(err, tt.answers[n-1]) {
			t.Errorf("%s: %d dials, %v; want %d", tt.name, n, err, tt.dials)
		}
	}
}
