package rediskeys

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lectern-dev/lectern/shared/auth"
)

// Listener receives the changes of keys.
type Listener interface {
	// Changed reports that a key has changed.
	Changed(projectID string, h auth.Hash)

	// Subscribed reports that changes are received from now on (true), or that they are not (false). Either
	// way, changes may have been missed until now.
	Subscribed(is bool)
}

const (
	// quiet is how long nothing need be received before the connection is tested.
	quiet = time.Second

	// reconnect is the pause before a broken subscription is made again.
	reconnect = 250 * time.Millisecond
)

// payload is the message for a key: its hash in hexadecimal, then the project.
func payload(projectID string, h auth.Hash) string { return h.String() + projectID }

func parsePayload(text string) (projectID string, h auth.Hash, ok bool) {
	const digits = 2 * len(h)
	if len(text) <= digits {
		return "", auth.Hash{}, false
	}
	_, err := hex.Decode(h[:], []byte(text[:digits]))
	return strings.Clone(text[digits:]), h, err == nil
}

// Listen passes every broadcast change to listener until ctx is cancelled. When the subscription breaks it makes a new
// one. A dead connection is noticed within two seconds.
func Listen(ctx context.Context, client redis.UniversalClient, listener Listener, log *slog.Logger) {
	broken := false
	for ctx.Err() == nil {
		err := listen(ctx, client, listener, func() {
			if broken {
				broken = false
				log.InfoContext(ctx, "changes of keys are received again")
			}
		})
		if ctx.Err() != nil {
			return
		}
		if !broken {
			broken = true
			log.WarnContext(ctx, "changes of keys are not received; they take effect within AUTH_CACHE_TTL", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

// listen subscribes and receives until the connection breaks.
func listen(ctx context.Context, client redis.UniversalClient, listener Listener, subscribed func()) error {
	ps := client.Subscribe(ctx)
	defer ps.Close()
	// Cancelling ctx does not end a read; closing the connection does.
	defer context.AfterFunc(ctx, func() { _ = ps.Close() })()
	if err := ps.Subscribe(ctx, channel); err != nil {
		return err
	}
	is, pinged := false, false
	defer func() {
		if is {
			listener.Subscribed(false)
		}
	}()
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
			is = true
			listener.Subscribed(true)
			subscribed()
		case *redis.Message:
			if projectID, h, ok := parsePayload(m.Payload); ok {
				listener.Changed(projectID, h)
			}
		}
	}
}
