package store

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/config"
)

// Listener hears of changes.
type Listener interface {
	// Changed says that a project has changed.
	Changed(projectID string)

	// Doubt says that changes may have been missed until now.
	Doubt()
}

const (
	// quiet is how long nothing need be heard before the connection is tried.
	quiet = 5 * time.Second

	// reconnect is how long Postgres is left alone when the connection broke.
	reconnect = 500 * time.Millisecond

	// connectTimeout bounds each step of making the connection, and of trying it.
	connectTimeout = 3 * time.Second
)

// Listen tells listener of every change of a project, on a connection of its own to the database at
// url, until ctx ends. When the connection breaks it is made again, and what came in between is in
// doubt. Through a pooler that hands a connection from client to client nothing is heard, nor on a
// standby: copies must be asked for anew after a while, whatever is heard.
func Listen(ctx context.Context, url config.Secret, listener Listener, log *slog.Logger) {
	broken := false
	for ctx.Err() == nil {
		err := listenOnce(ctx, url, func() {
			listener.Doubt()
			broken = false
			log.InfoContext(ctx, "changes of projects are heard")
		}, listener.Changed)
		if ctx.Err() != nil {
			return
		}
		if !broken {
			broken = true
			log.WarnContext(ctx, "changes of projects are not heard; they take effect when regions are asked for anew",
				slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

// listenOnce listens until the connection breaks.
func listenOnce(ctx context.Context, url config.Secret, listening func(), changed func(string)) error {
	cfg, err := pgx.ParseConfig(url.Reveal())
	if err != nil {
		return errors.New("the database URL can not be read") // err may show the password
	}
	cfg.RuntimeParams["application_name"] = "region changes"
	cfg.ConnectTimeout = connectTimeout
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()
		_ = conn.Close(ctx) // nothing is lost with it
	}()
	if err := execWithin(ctx, conn, listen); err != nil {
		return err
	}
	listening()
	for {
		wait, cancel := context.WithTimeout(ctx, quiet)
		notification, err := conn.WaitForNotification(wait)
		cancel()
		switch {
		case err == nil:
			changed(notification.Payload)
		case ctx.Err() != nil:
			return ctx.Err()
		case wait.Err() == nil || conn.IsClosed():
			return err
		default:
			if err := execWithin(ctx, conn, "-- ping"); err != nil {
				return err
			}
		}
	}
}

// execWithin runs a statement without rows.
func execWithin(ctx context.Context, conn *pgx.Conn, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	_, err := conn.Exec(ctx, sql)
	return err
}
