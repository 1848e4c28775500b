package operator

import (
	"context"
	"log/slog"
)

// quietShutdown lowers one log line to debug: controller-runtime logs the lost Lease as an error at each graceful shutdown.
type quietShutdown struct{ slog.Handler }

// Handle logs a line.
func (h quietShutdown) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelError && r.Message == "error received after stop sequence was engaged" {
		if !h.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		r.Level = slog.LevelDebug
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that adds attributes.
func (h quietShutdown) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietShutdown{h.Handler.WithAttrs(attrs)}
}

// WithGroup returns a handler that opens a group.
func (h quietShutdown) WithGroup(name string) slog.Handler {
	return quietShutdown{h.Handler.WithGroup(name)}
}
