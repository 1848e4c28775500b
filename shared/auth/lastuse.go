package auth

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Use states that the key KeyID of a project was used at the time At.
type Use struct {
	ProjectID string
	KeyID     string
	At        time.Time
}

// UseWriter is a store to which [LastUse] writes when keys were last used.
type UseWriter interface {
	// WriteUses stores when each key was last used, unless a later time is stored already. A store may write one time
	// for all keys of a project. Uses are sorted by project and then key, one for each key.
	WriteUses(ctx context.Context, uses []Use) error
}

// maxUses is how many keys' uses may wait to be written. [LastUse] drops the uses of further keys.
const maxUses = 100_000

// LastUse collects when keys are used, and writes the uses to a [UseWriter] at each flush. A failed write is logged,
// and the next flush retries it. LastUse holds the uses of at most maxUses keys and drops the uses of further keys.
type LastUse struct {
	writer UseWriter
	log    *slog.Logger

	mu      sync.Mutex
	pending map[useKey]time.Time
}

type useKey struct{ project, key string }

// NewLastUse returns a LastUse that writes to w. The caller starts [LastUse.Run].
func NewLastUse(w UseWriter, log *slog.Logger) *LastUse {
	return &LastUse{writer: w, log: log, pending: map[useKey]time.Time{}}
}

func (u *LastUse) note(projectID, keyID string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	id := useKey{projectID, keyID}
	if _, ok := u.pending[id]; ok || len(u.pending) < maxUses {
		u.pending[id] = at
	}
}

// Flush writes the collected uses. If the write fails, Flush logs the error and keeps the uses for the next flush, up
// to those of maxUses keys.
func (u *LastUse) Flush(ctx context.Context) {
	u.mu.Lock()
	pending := u.pending
	u.pending = make(map[useKey]time.Time, len(pending))
	u.mu.Unlock()
	if len(pending) == 0 {
		return
	}
	uses := make([]Use, 0, len(pending))
	for id, at := range pending {
		uses = append(uses, Use{ProjectID: id.project, KeyID: id.key, At: at})
	}
	slices.SortFunc(uses, func(a, b Use) int {
		return cmp.Or(cmp.Compare(a.ProjectID, b.ProjectID), cmp.Compare(a.KeyID, b.KeyID))
	})
	if err := u.writer.WriteUses(ctx, uses); err != nil {
		u.log.WarnContext(ctx, "the last use of keys was not written; it is tried again", slog.Int("keys", len(uses)), slog.Any("error", err))
		u.mu.Lock()
		defer u.mu.Unlock()
		for id, at := range pending {
			if _, ok := u.pending[id]; !ok && len(u.pending) < maxUses {
				u.pending[id] = at
			}
		}
	}
}

// Run calls Flush every interval until ctx ends. Run does not flush at its end: the caller calls Flush at shutdown.
func (u *LastUse) Run(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			bounded, cancel := context.WithTimeout(ctx, interval)
			u.Flush(bounded)
			cancel()
		}
	}
}
