package files

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/lectern-dev/lectern/copies/internal/copytest"
	"github.com/lectern-dev/lectern/copies/internal/since"
)

// At lets the copy be of a version with another list of revisions.
func (d *Destination) At(r since.Table) { d.since = r }

// FailAt lets the step number n that changes the storage fail, and all later ones. Every other time, the step is done
// nevertheless, as if the process were killed right after the step.
func (d *Destination) FailAt(n int) {
	f := &failing{storage: d.storage, done: n%2 == 1}
	f.left.Store(int64(n))
	d.storage = f
}

type failing struct {
	storage
	left atomic.Int64
	done bool
}

func (f *failing) step(do func() error) error {
	switch left := f.left.Add(-1); {
	case left > 0:
		return do()
	case left == 0 && f.done:
		return errors.Join(do(), copytest.ErrCut)
	}
	return copytest.ErrCut
}

func (f *failing) write(ctx context.Context, name string, data []byte) error {
	return f.step(func() error { return f.storage.write(ctx, name, data) })
}

func (f *failing) replace(ctx context.Context, name string, data []byte, version string) (now string, err error) {
	err = f.step(func() error {
		now, err = f.storage.replace(ctx, name, data, version)
		return err
	})
	return now, err
}

func (f *failing) remove(ctx context.Context, o object) error {
	return f.step(func() error { return f.storage.remove(ctx, o) })
}
