package send

import (
	"github.com/lectern-dev/lectern/cli/internal/progress"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// counter shows the number of removed records.
type counter struct {
	bar *progress.Bar // nil for a quiet command
	n   int64
}

// newCounter returns a counter up to total; 0 is an unknown total.
func newCounter(s *shell.Session, total int64) *counter {
	if s.Quiet {
		return &counter{}
	}
	return &counter{bar: progress.Count(s.Err, total)}
}

// add adds n, and shows the sum by format.
func (c *counter) add(n int, format string, args ...any) {
	c.n += int64(n)
	if c.bar != nil {
		c.bar.Set(c.n, format, append([]any{c.n}, args...)...)
	}
}

// done removes the bar.
func (c *counter) done() {
	if c.bar != nil {
		c.bar.Done()
		c.bar = nil
	}
}
