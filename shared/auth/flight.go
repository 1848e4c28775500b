package auth

import (
	"context"
	"errors"
	"sync"
	"time"
)

// flight is one look-up that any number of requests wait for. What it brought may be read when done
// is closed: a verdict, or why the key is refused, or a fault.
type flight struct {
	done  chan struct{}
	found *verdict
	why   Refusal
	fault error
}

// flights are the look-ups under way.
type flights struct {
	mu     sync.Mutex
	byKey  map[subject]*flight
	closed bool
}

var errClosed = errors.New("key verification is shut down")

func (fs *flights) close() {
	fs.mu.Lock()
	fs.closed = true
	fs.mu.Unlock()
}

// join returns the flight about a key, a new one when there is none. It goes on when the request that
// began it ends: others may wait for it.
func (v *Verifier) join(ctx context.Context, about subject) *flight {
	fs := &v.flights
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f, ok := fs.byKey[about]; ok {
		return f
	}
	f := &flight{done: make(chan struct{})}
	if fs.closed {
		f.fault = errClosed
		close(f.done)
		return f
	}
	about = about.keep()
	if fs.byKey == nil {
		fs.byKey = map[subject]*flight{}
	}
	fs.byKey[about] = f
	v.loads.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.o.LoadLimit)
		defer cancel()
		defer context.AfterFunc(v.ctx, cancel)()
		v.load(ctx, about, f)
		fs.mu.Lock()
		delete(fs.byKey, about)
		fs.mu.Unlock()
		close(f.done)
	})
	return f
}

// load asks the store and keeps what it says. When the key's shard changes meanwhile, it asks again:
// who waits may have come after the change.
func (v *Verifier) load(ctx context.Context, about subject, f *flight) {
	const attempts = 4
	for range attempts {
		generation := v.changes.current(about.hash.Shard())
		asked := v.o.Now()
		rec, err := v.store.Lookup(ctx, about.project, about.hash)
		changed := v.changes.current(about.hash.Shard()) != generation
		if changed && ctx.Err() == nil {
			continue
		}
		v.settle(about, f, rec, err, generation, asked)
		return
	}
	// The shard changes faster than it can be read. Only a fault tells the truth.
	f.fault = errors.New("keys change faster than they can be read")
}

// settle judges a store's answer and keeps it.
func (v *Verifier) settle(about subject, f *flight, rec Record, err error, generation uint64, asked time.Time) {
	switch why, isRefusal := errors.AsType[Refusal](err); {
	case isRefusal:
		f.why = why
	case err != nil:
		f.fault = err
		if held, ok := v.known.GetIfPresent(about); ok {
			held.fail(v.o.Now())
			if errors.Is(err, ErrChanged) {
				v.known.Invalidate(about)
			}
		}
		return
	case rec.ProjectID != about.project:
		f.why = ErrUnknown
	case !rec.RevokedAt.IsZero():
		f.why = ErrRevoked
	}
	if f.why != "" {
		v.unknown.Set(about, refused{f.why, generation, asked})
		v.known.Invalidate(about)
		return
	}
	// The age is counted by this machine's clock from here on, and a moment of reading that lies ahead
	// (clocks differ) does not make the copy live longer.
	age := max(0, asked.Sub(rec.ReadAt))
	f.found = &verdict{
		principal:  Principal{KeyID: rec.ID, ProjectID: about.project, Scopes: rec.Scopes, Rate: rec.Rate},
		expires:    rec.ExpiresAt,
		generation: generation,
		asked:      asked,
		readAt:     asked.Add(-age),
		deadline:   asked.Add(v.o.TTL - age),
	}
	v.known.Set(about, f.found)
}
