package store

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/config"
)

const (
	// reconnectAfter is the pause before a broken connection is made again.
	reconnectAfter = 2 * time.Second

	// connectTimeout bounds connecting, the LISTEN statement and closing, each.
	connectTimeout = 3 * time.Second
)

// Listen calls changed with the id of every project that was changed, until ctx ends. It holds a connection of its
// own to the database at url, and reconnects if that breaks. Changes in between are lost. All changes are lost if a
// pooler in transaction mode is between the service and Postgres. So a reader must also let its copies expire.
func Listen(ctx context.Context, url config.Secret, changed func(projectID string), log *slog.Logger) {
	for {
		err := listenOnce(ctx, url, changed, log)
		if ctx.Err() != nil {
			return
		}
		log.WarnContext(ctx, "cannot listen for changes of projects; cached regions change when they expire", slog.Any("error", err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(reconnectAfter):
		}
	}
}

// listenOnce listens until the connection breaks.
func listenOnce(ctx context.Context, url config.Secret, changed func(string), log *slog.Logger) error {
	cfg, err := pgx.ParseConfig(url.Reveal())
	if err != nil {
		return errors.New("the database URL cannot be parsed") // err may contain the password
	}
	cfg.RuntimeParams["application_name"] = "region changes"
	cfg.ConnectTimeout = connectTimeout
	cfg.DialFunc = new(net.Dialer).DialContext // its TCP keep-alives find a dead connection in minutes
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()
		_ = conn.Close(ctx) // the connection is not used again
	}()
	listening, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if _, err := conn.Exec(listening, listen); err != nil {
		return err
	}
	log.InfoContext(ctx, "listening for changes of projects")
	for {
		notification, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		changed(notification.Payload)
	}
}
