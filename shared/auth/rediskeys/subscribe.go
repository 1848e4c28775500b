package rediskeys

import (
	"context"
	"encoding/hex"
	"log/slog"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/redisdb"
)

// Listener receives changes of keys.
type Listener interface {
	// Changed reports that a key has changed.
	Changed(projectID string, h auth.Hash)

	// Subscribed reports whether changes are received from now on. In both cases, changes may have been missed
	// before.
	Subscribed(is bool)
}

// payload returns the message for a key: its hash in hexadecimal, then the project.
func payload(projectID string, h auth.Hash) string { return h.String() + projectID }

func parsePayload(text string) (projectID string, h auth.Hash, ok bool) {
	const digits = 2 * len(h)
	if len(text) <= digits {
		return "", auth.Hash{}, false
	}
	_, err := hex.Decode(h[:], []byte(text[:digits]))
	return strings.Clone(text[digits:]), h, err == nil
}

// Listen passes every broadcast change to listener until ctx is cancelled. See [redisdb.Listen].
func Listen(ctx context.Context, client redis.UniversalClient, listener Listener, log *slog.Logger) {
	redisdb.Listen(ctx, client, channel, redisdb.Listener{
		Received: func(message string) {
			if projectID, h, ok := parsePayload(message); ok {
				listener.Changed(projectID, h)
			}
		},
		Subscribed: listener.Subscribed,
		Broken: func(err error) {
			log.WarnContext(ctx, "changes of keys are not received; they take effect within AUTH_CACHE_TTL", slog.Any("error", err))
		},
		Mended: func() { log.InfoContext(ctx, "changes of keys are received again") },
	})
}
