package read

import (
	"bytes"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/copies"
)

// Where there is no terminal, the progress is a line a minute.
func TestSyncReportsOnceAMinute(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	report := newSyncReport(&shell.Session{Err: &out, Now: func() time.Time { return now }}, false)
	for range 150 {
		report.show(copies.Progress{Changes: 5, Bytes: 2048, Began: 100, Seq: 150, LastSeq: 200})
		now = now.Add(time.Second)
	}
	const want = "2026-11-01T12:01:00Z copied 5 changes, 2.0 KiB, about 50% of the way\n2026-11-01T12:02:00Z copied 5 changes, 2.0 KiB, about 50% of the way\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
