package operator

import (
	"context"
	"log/slog"
)

// quietShutdown is a log handler that lowers one message of controller-runtime from error to debug: the message about
// an error after the stop has begun. A leader logs this message at a graceful shutdown, about its lost Lease.
type quietShutdown struct{ slog.Handler }

// Handle logs r. It lowers the message about an error after the stop has begun to debug, and drops the message if debug
// is not enabled.
func (h quietShutdown) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelError && r.Message == "error received after stop sequence was engaged" {
		if !h.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		r.Level = slog.LevelDebug
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns a quietShutdown that adds attrs to each line.
func (h quietShutdown) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietShutdown{h.Handler.WithAttrs(attrs)}
}

// WithGroup returns a quietShutdown that puts all further attributes of a line into the group name.
func (h quietShutdown) WithGroup(name string) slog.Handler {
	return quietShutdown{h.Handler.WithGroup(name)}
}
