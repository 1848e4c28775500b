package shell_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// TestInterruptEndsARead: a command that waits for a line ends at the first Ctrl-C.
func TestInterruptEndsARead(t *testing.T) {
	in, typed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer typed.Close()
	defer func(stdin *os.File) { os.Stdin = stdin }(os.Stdin)
	os.Stdin = in
	ctx, interrupt := context.WithCancel(t.Context())
	s := shell.ProcessSession(ctx)
	if _, err := typed.WriteString("line\n"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 10)
	if n, err := s.In.Read(b); string(b[:n]) != "line\n" || err != nil {
		t.Errorf("read %q, %v", b[:n], err)
	}
	interrupt()
	if n, err := s.In.Read(b); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("after the interrupt: %q, %v", b[:n], err)
	}
}
