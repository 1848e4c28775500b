// Package hints tells other processes through Redis that a project may have new data, within about a millisecond. Hints
// may be lost. So a receiver also looks for new data from time to time, and a lost hint only delays the receiver.
// Nothing else in Lectern publishes or subscribes.
package hints

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lectern-dev/lectern/shared/redis/redisdb"
)

const (
	// queued is how many hints may wait to be published. Send drops further hints.
	queued = 1024

	// publishTimeout is how long the publishing of one hint may take. After that, the hint is lost.
	publishTimeout = time.Second

	// silence is how long the connection may be silent before the receiver sends a ping. After another such time
	// without an answer, the connection counts as dead.
	silence = time.Second

	// reconnect is the pause before the receiver subscribes again after the connection broke.
	reconnect = 250 * time.Millisecond
)

// Hints sends and receives hints on one channel of Redis. A hint is the id of a project that may have new data.
type Hints struct {
	redis   *redisdb.Client
	channel string
	log     *slog.Logger
	queue   chan string
}

// New returns Hints on a channel of Redis. If client is nil, nothing is sent or received. The caller closes the client.
func New(client *redisdb.Client, channel string, log *slog.Logger) *Hints {
	return &Hints{redis: client, channel: channel, log: log, queue: make(chan string, queued)}
}

// Send queues a hint about a project for Publish. Send never waits: if the queue is full, the hint is lost.
func (h *Hints) Send(projectID string) {
	select {
	case h.queue <- projectID:
	default:
	}
}

// Publish publishes the hints that Send has queued, until ctx ends. A hint that fails is lost.
func (h *Hints) Publish(ctx context.Context) {
	for {
		select {
		case projectID := <-h.queue:
			if h.redis != nil {
				ctx, cancel := context.WithTimeout(ctx, publishTimeout)
				_ = redisdb.Commands(h.redis).Publish(ctx, h.channel, projectID).Err() // the hint is lost
				cancel()
			}
		case <-ctx.Done():
			return
		}
	}
}

// Receive calls received with the project of each hint until ctx ends. Receive subscribes again after the connection
// broke, and notices a dead connection within two seconds. Without a client, Receive returns at once.
func (h *Hints) Receive(ctx context.Context, received func(projectID string)) {
	if h.redis == nil {
		return
	}
	broken := false
	for {
		err := h.receive(ctx, received, func() {
			if broken {
				broken = false
				h.log.InfoContext(ctx, "hints are received again", slog.String("channel", h.channel))
			}
		})
		if ctx.Err() != nil {
			return
		}
		if !broken {
			broken = true
			h.log.WarnContext(ctx, "hints are not received; changes are seen later", slog.String("channel", h.channel), slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(reconnect):
		}
	}
}

// receive subscribes, calls subscribed, and then calls received for each hint until the connection breaks or ctx ends.
// receive returns the error of the connection.
func (h *Hints) receive(ctx context.Context, received func(projectID string), subscribed func()) error {
	ps := redisdb.Commands(h.redis).Subscribe(ctx, h.channel)
	defer ps.Close()
	// Cancelling ctx does not end a read; closing the connection does.
	defer context.AfterFunc(ctx, func() { _ = ps.Close() })()
	tested := false
	for {
		message, err := ps.ReceiveTimeout(ctx, silence)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !tested {
			err = ps.Ping(ctx)
			tested = true
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		tested = false
		switch m := message.(type) {
		case *redis.Subscription:
			subscribed()
		case *redis.Message:
			received(m.Payload)
		}
	}
}
