package logtest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestErrors(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var log Buffer
	for i := range 100 {
		fmt.Fprintf(&log, `{"level":"INFO","msg":"request %d"}`+"\n", i)
	}
	said := `{"level":"ERROR","msg":"Redis is away"}` + "\npanic: a bug\n"
	fmt.Fprint(&log, said)
	lines, path, ok := strings.Cut(log.Errors(t), "the whole log: ")
	if lines != said || !ok {
		t.Errorf("printed: %s", lines)
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != log.String() {
		t.Errorf("kept: %v, %d bytes of %d", err, len(kept), len(log.String()))
	}
	for range 1000 {
		fmt.Fprint(&log, said)
	}
	if n := len(log.Errors(t)); n > 2*mostPrinted {
		t.Errorf("%d bytes are printed of many errors", n)
	}
}
