package redisdb

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Listener handles the events of [Listen]. Its functions are called one at a time.
type Listener struct {
	// Received handles a message.
	Received func(message string)
	// Subscribed reports whether messages are received from now on. In both cases, messages may have been missed
	// before. Nil: not called.
	Subscribed func(is bool)
	// Broken gets the first error of a subscription that cannot be made. Mended is called once it is made again.
	Broken func(err error)
	Mended func()
}

const (
	// testAfter is how long the connection may be silent before it is tested.
	testAfter = time.Second

	// reconnect is the pause before a broken subscription is made again.
	reconnect = 250 * time.Millisecond
)

// Listen receives the messages of a channel until ctx is cancelled. If the subscription breaks, it makes a new one.
// It notices a dead connection within two seconds.
func Listen(ctx context.Context, client redis.UniversalClient, channel string, l Listener) {
	if l.Subscribed == nil {
		l.Subscribed = func(bool) {}
	}
	broken := false
	for ctx.Err() == nil {
		err := listen(ctx, client, channel, l, func() {
			if broken {
				broken = false
				l.Mended()
			}
		})
		if ctx.Err() != nil {
			return
		}
		if !broken {
			broken = true
			l.Broken(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

// listen subscribes and receives until the connection breaks.
func listen(ctx context.Context, client redis.UniversalClient, channel string, l Listener, subscribed func()) error {
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
			l.Subscribed(false)
		}
	}()
	for {
		message, err := ps.ReceiveTimeout(ctx, testAfter)
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
			l.Subscribed(true)
			subscribed()
		case *redis.Message:
			l.Received(m.Payload)
		}
	}
}
