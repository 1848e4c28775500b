package operator

import (
	"context"
	"log/slog"
)

// calm lowers to debug what controller-runtime calls an error each time that an operator stops as it should:
// the Lease, which it gave up, is lost.
type calm struct{ slog.Handler }

// Handle logs a line.
func (c calm) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelError && r.Message == "error received after stop sequence was engaged" {
		if !c.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		r.Level = slog.LevelDebug
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that adds attributes.
func (c calm) WithAttrs(attrs []slog.Attr) slog.Handler { return calm{c.Handler.WithAttrs(attrs)} }

// WithGroup returns a handler that opens a group.
func (c calm) WithGroup(name string) slog.Handler { return calm{c.Handler.WithGroup(name)} }
