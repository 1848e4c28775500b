package send

import (
	"github.com/lectern-dev/lectern/cli/internal/progress"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// counter shows the number of removed records on a progress bar.
type counter struct {
	bar *progress.Bar // nil for a quiet command
	n   int64
}

// newCounter returns a counter of up to total records; 0 is an unknown total. For a quiet command, the counter shows
// nothing.
func newCounter(s *shell.Session, total int64) *counter {
	if s.Quiet {
		return &counter{}
	}
	return &counter{bar: progress.Count(s.Err, total)}
}

// add adds n to the sum, and shows the sum. The first argument of format is the sum, and args follow.
func (c *counter) add(n int, format string, args ...any) {
	c.n += int64(n)
	if c.bar != nil {
		c.bar.Set(c.n, format, append([]any{c.n}, args...)...)
	}
}

// done removes the bar from the terminal. done may be called more than once.
func (c *counter) done() {
	if c.bar != nil {
		c.bar.Done()
		c.bar = nil
	}
}
