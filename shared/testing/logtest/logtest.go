// Package logtest has a buffer for logs that tests read.
//
// Production code does not import it; the linter checks this.
package logtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// Buffer is a buffer that goroutines can write and read concurrently. Its zero value is empty.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds p. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns the contents.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Tail returns at most n bytes from the end of the contents.
func (b *Buffer) Tail(n int) string {
	s := b.String()
	if len(s) > n {
		s = fmt.Sprintf("… %d bytes …%s", len(s)-n, s[len(s)-n:])
	}
	return s
}

// mostPrinted is the length in bytes of the lines that Errors returns.
const mostPrinted = 2000

// Errors returns the lines of a log that a failed test prints. These are the lines of level error, and lines that are no
// JSON, such as a panic. The last line names a file with the whole log. Nobody removes the file.
func (b *Buffer) Errors(t testing.TB) string {
	t.Helper()
	whole := b.String()
	var lines strings.Builder
	for line := range strings.Lines(whole) {
		var entry struct{ Level string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Level != "ERROR" {
			continue
		}
		if lines.Len()+len(line) > mostPrinted {
			lines.WriteString("…\n")
			break
		}
		lines.WriteString(line)
	}
	return fmt.Sprintf("%sthe whole log: %s", lines.String(), keep(t, whole))
}

// keep writes a log to a file, and returns its path or why there is no file.
func keep(t testing.TB, log string) string {
	f, err := os.CreateTemp("", "lectern-"+strings.ReplaceAll(t.Name(), "/", "-")+"-*.log")
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if _, err := f.WriteString(log); err != nil {
		return err.Error()
	}
	return f.Name()
}

// ReportErrors makes a test that fails print [Buffer.Errors] at its end. of names the process, as in "the service".
func (b *Buffer) ReportErrors(t testing.TB, of string) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of %s:\n%s", of, b.Errors(t))
		}
	})
}
