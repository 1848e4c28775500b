package operator

import (
	"context"
	"log/slog"
)

// calm lowers one log line to debug: controller-runtime logs the lost Lease as an error at each graceful shutdown.
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
