package apikey

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
)

// failure is the kind of fault at one external effect.
type failure string

const (
	killed  failure = "killed"  // the effect took place, and the process is dead: it causes no further effects
	unheard failure = "unheard" // the effect took place, and its answer was lost
	refused failure = "refused" // the effect did not take place
)

var (
	errDead    = errors.New("the process is dead")
	errUnheard = errors.New("the answer was lost")
	errRefused = apierr.NotAvailable(errors.New("refused"))
)

// injector injects a fault at one external effect of a process: a write to the API server or to the key database. If at
// is 0, it only counts the effects.
type injector struct {
	mu      sync.Mutex
	at      int // the number of the effect, from 1 on; 0: none
	failure failure
	n       int
	dead    bool

	noDatabase bool             // every call of the database fails
	stall      func(effect int) // called before each effect, when set
}

func (f *injector) effects() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// effect executes one effect, or fails it.
func (f *injector) effect(do func() error) error {
	f.mu.Lock()
	if f.dead {
		f.mu.Unlock()
		return errDead
	}
	f.n++
	n, hit, stall := f.n, f.n == f.at, f.stall
	f.mu.Unlock()
	if stall != nil {
		stall(n)
	}
	if hit && f.failure == refused {
		return errRefused
	}
	err := do()
	if !hit || err != nil {
		return err
	}
	if f.failure == killed {
		f.mu.Lock()
		f.dead = true
		f.mu.Unlock()
		return errDead
	}
	return errUnheard
}

// look allows reads while the process lives.
func (f *injector) look(do func() error) error {
	f.mu.Lock()
	dead := f.dead
	f.mu.Unlock()
	if dead {
		return errDead
	}
	return do()
}

// over wraps the clients of a controller with f.
func (f *injector) over(o Options, inner client.WithWatch) Options {
	c := interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return f.look(func() error { return c.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return f.look(func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if len((&client.CreateOptions{}).ApplyOptions(opts).DryRun) > 0 {
				return f.look(func() error { return c.Create(ctx, obj, opts...) })
			}
			return f.effect(func() error { return c.Create(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return f.effect(func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if len((&client.ApplyOptions{}).ApplyOptions(opts).DryRun) > 0 {
				return f.look(func() error { return c.Apply(ctx, obj, opts...) })
			}
			return f.effect(func() error { return c.Apply(ctx, obj, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return f.effect(func() error { return c.SubResource(sub).Apply(ctx, obj, opts...) })
		},
	})
	o.Client, o.Reader, o.Keys = c, c, faultyKeys{o.Keys, f}
	return o
}

// faultyKeys is a key database whose effects pass through an injector.
type faultyKeys struct {
	Keys
	injector *injector
}

func (k faultyKeys) reached() error {
	k.injector.mu.Lock()
	defer k.injector.mu.Unlock()
	if k.injector.noDatabase {
		return errRefused
	}
	return nil
}

func (k faultyKeys) look(do func() error) error {
	if err := k.reached(); err != nil {
		return err
	}
	return k.injector.look(do)
}

func (k faultyKeys) effect(do func() error) error {
	if err := k.reached(); err != nil {
		return err
	}
	return k.injector.effect(do)
}

func (k faultyKeys) Owned(ctx context.Context, projectID string, o auth.Owner) (active []pgkeys.Owned, last int64, err error) {
	err = k.look(func() (err error) { active, last, err = k.Keys.Owned(ctx, projectID, o); return err })
	return active, last, err
}

func (k faultyKeys) EachOwned(ctx context.Context, realm string, do func(pgkeys.Owned) error) error {
	return k.look(func() error { return k.Keys.EachOwned(ctx, realm, do) })
}

func (k faultyKeys) MintOwned(ctx context.Context, o pgkeys.OwnedOptions) (key config.Secret, r pgkeys.Owned, err error) {
	err = k.effect(func() (err error) { key, r, err = k.Keys.MintOwned(ctx, o); return err })
	return key, r, err
}

func (k faultyKeys) Deliver(ctx context.Context, projectID, keyID string) (r pgkeys.Owned, err error) {
	err = k.effect(func() (err error) { r, err = k.Keys.Deliver(ctx, projectID, keyID); return err })
	return r, err
}

func (k faultyKeys) Amend(ctx context.Context, projectID, keyID string, t pgkeys.Terms) (r auth.Record, err error) {
	err = k.effect(func() (err error) { r, err = k.Keys.Amend(ctx, projectID, keyID, t); return err })
	return r, err
}

func (k faultyKeys) Expire(ctx context.Context, projectID, keyID string, at time.Time) (r auth.Record, err error) {
	err = k.effect(func() (err error) { r, err = k.Keys.Expire(ctx, projectID, keyID, at); return err })
	return r, err
}

func (k faultyKeys) Revoke(ctx context.Context, projectID, keyID string) (r auth.Record, err error) {
	err = k.effect(func() (err error) { r, err = k.Keys.Revoke(ctx, projectID, keyID); return err })
	return r, err
}
