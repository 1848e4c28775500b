package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lectern-dev/lectern/shared/redisdb"

	"github.com/lectern-dev/lectern/services/entries/internal/watch"
)

// channel is the Redis channel with the ids of projects that have new changes.
const channel = "lectern:entries:changes"

const (
	// queued is how many hints wait to be published. More are dropped: then the next look finds the change.
	queued = 1024

	// publishTimeout bounds the publishing of one hint.
	publishTimeout = time.Second
)

// hints announces through Redis to all processes which projects have new changes. A lost hint delays readers by up to
// a second.
type hints struct {
	redis redis.UniversalClient // nil: nothing is sent
	queue chan string
}

// newHints returns hints. Without a client they send nothing.
func newHints(client redis.UniversalClient) *hints {
	return &hints{redis: client, queue: make(chan string, queued)}
}

// send announces a change in a project. It does not wait.
func (h *hints) send(projectID string) {
	if h.redis == nil {
		return
	}
	select {
	case h.queue <- projectID:
	default:
	}
}

// run publishes hints until ctx ends.
func (h *hints) run(ctx context.Context) {
	for {
		select {
		case projectID := <-h.queue:
			h.publish(ctx, projectID)
		case <-ctx.Done():
			return
		}
	}
}

func (h *hints) publish(ctx context.Context, projectID string) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	_ = h.redis.Publish(ctx, channel, projectID).Err() // without the hint, the next look finds the change
}

// listen passes the hints of all processes to w until ctx ends.
func (h *hints) listen(ctx context.Context, w *watch.Watch, log *slog.Logger) {
	if h.redis == nil {
		return
	}
	redisdb.Listen(ctx, h.redis, channel, redisdb.Listener{
		Received: w.Hint,
		Broken: func(err error) {
			log.WarnContext(ctx, "hints of changes are not received; requests that wait look once a second", slog.Any("error", err))
		},
		Mended: func() { log.InfoContext(ctx, "hints of changes are received again") },
	})
}
