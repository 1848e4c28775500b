package rediskeys

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Listener hears of changes.
type Listener interface {
	// Changed says that a key of the shard has changed.
	Changed(shard byte)

	// Doubt says that changes may have been missed until now.
	Doubt()
}

const (
	// quiet is how long nothing need be heard before the connection is tried.
	quiet = time.Second

	// reconnect is how long Redis is left alone when the subscription broke.
	reconnect = 250 * time.Millisecond
)

// Listen tells listener of every change that is announced, until ctx ends. When the subscription
// breaks it is made again, and what came in between is in doubt. That a connection is dead is noticed
// within two seconds; until then, what the store of record tells of changes bounds what is missed, or that copies are
// asked for anew every 900 ms.
func Listen(ctx context.Context, client redis.UniversalClient, listener Listener, log *slog.Logger) {
	broken := false
	for ctx.Err() == nil {
		err := listen(ctx, client, func() {
			listener.Doubt()
			if broken {
				broken = false
				log.InfoContext(ctx, "changes of keys are heard again")
			}
		}, listener.Changed)
		if ctx.Err() != nil {
			return
		}
		if !broken {
			broken = true
			log.WarnContext(ctx, "changes of keys are not heard; they take effect when copies are asked for anew", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

// listen subscribes and reads until the connection breaks.
func listen(ctx context.Context, client redis.UniversalClient, subscribed func(), changed func(byte)) error {
	ps := client.Subscribe(ctx)
	defer ps.Close()
	// A read that is under way does not end with ctx; closing the connection ends it.
	defer context.AfterFunc(ctx, func() { _ = ps.Close() })()
	if err := ps.Subscribe(ctx, channel); err != nil {
		return err
	}
	pinged := false
	for {
		message, err := ps.ReceiveTimeout(ctx, quiet)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !pinged {
			if err := ps.Ping(ctx); err != nil {
				return err
			}
			pinged = true
			continue
		}
		if err != nil {
			return err
		}
		pinged = false
		switch m := message.(type) {
		case *redis.Subscription:
			subscribed()
		case *redis.Message:
			if shard, err := strconv.ParseUint(m.Payload, 16, 8); err == nil {
				changed(byte(shard))
			}
		}
	}
}
