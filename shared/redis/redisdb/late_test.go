package redisdb

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

// TestLateCommand checks that a command without an answer in time does not stop all others, while Redis answers these. A
// refused connection does, and so does a time-out if nothing else was answered meanwhile.
func TestLateCommand(t *testing.T) {
	for _, tt := range []struct {
		name     string
		answered time.Duration // how long ago another command was answered
		err      error
		opens    bool
	}{
		{"late, and others are answered", 0, context.DeadlineExceeded, false},
		{"late, and nothing is answered", time.Hour, context.DeadlineExceeded, true},
		{"refused", 0, errors.New("connection refused"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &Client{log: slog.New(slog.DiscardHandler), commandTimeout: 30 * time.Minute, down: map[*breaker]bool{}}
			c.ctx, c.cancel = context.WithCancel(t.Context())
			b := newBreaker(c, "node", func(context.Context) error { return tt.err })
			if err := b.run(t.Context(), func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
			b.answered.Add(-int64(tt.answered))
			if err := b.run(t.Context(), func(context.Context) error { return tt.err }); !errors.Is(err, tt.err) {
				t.Error(err)
			}
			if b.open.Load() != tt.opens {
				t.Errorf("the breaker is open: %v; want %v", b.open.Load(), tt.opens)
			}
			c.cancel()
			c.probes.Wait()
		})
	}
}
