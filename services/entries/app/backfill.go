package app

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// backfillPause is the time between two attempts while the database fails.
const backfillPause = 5 * time.Second

// backfill numbers rows from before the change feed. All replicas may do so at once.
type backfill struct {
	writer *store.Writer
	log    *slog.Logger
	left   atomic.Int64 // projects; -1: not known yet
}

// run numbers all rows, and then returns: every later row has a number.
func (b *backfill) run(ctx context.Context) {
	b.left.Store(-1)
	for ctx.Err() == nil {
		done, err := b.once(ctx)
		if done {
			return
		}
		if err != nil && ctx.Err() == nil {
			b.log.WarnContext(ctx, "rows from before the change feed cannot be numbered; it is tried again", slog.Any("error", err))
		}
		if err == nil {
			continue
		}
		select {
		case <-time.After(backfillPause):
		case <-ctx.Done():
		}
	}
}

// once numbers the rows of the projects that it finds, and reports whether there were none.
func (b *backfill) once(ctx context.Context) (done bool, err error) {
	projects, err := b.writer.Unnumbered(ctx)
	if err != nil {
		return false, err
	}
	b.left.Store(int64(len(projects)))
	for i, p := range projects {
		if err := b.writer.Backfill(ctx, p); err != nil {
			return false, err
		}
		b.left.Store(int64(len(projects) - i - 1))
	}
	return len(projects) == 0, nil
}
