package auth

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// ErrNotLoaded is the error while the set of foreign keys is not read yet. A foreign key is an imported key, of any form.
var ErrNotLoaded = errors.New("the foreign keys are not loaded yet")

// ForeignSource lists the stored foreign keys.
type ForeignSource interface {
	// ForeignHashes calls add with the hash of each foreign key that was stored at since or later
	// (all of them when since is zero), but for those that are revoked or have expired. It returns the
	// moment, by the store's clock, until which that is complete.
	ForeignHashes(ctx context.Context, since time.Time, add func(Hash)) (time.Time, error)
}

const (
	// foreignEvery is how often new foreign keys are looked for.
	foreignEvery = 3 * time.Second

	// foreignOverlap is how far back of the last time: a key is stored with the time at which its
	// transaction began.
	foreignOverlap = 30 * time.Second

	// foreignRenew is how often the set is read anew, so that it forgets revoked keys.
	foreignRenew = 15 * time.Minute
)

// ForeignKeys knows which foreign keys are stored, by the first 64 bits of their hashes: 8 bytes a
// key, and a random key passes with a chance of one in 2^64 for each that is stored. It answers
// without asking anybody, so a flood of made-up keys reaches no store.
type ForeignKeys struct {
	source ForeignSource
	log    *slog.Logger
	now    func() time.Time
	wake   chan struct{}

	mu     sync.RWMutex
	loaded bool
	set    map[uint64]struct{}
}

// NewForeignKeys makes a set that knows nothing until [ForeignKeys.Run] has loaded it.
func NewForeignKeys(source ForeignSource, log *slog.Logger, now func() time.Time) *ForeignKeys {
	return &ForeignKeys{source: source, log: log, now: now, wake: make(chan struct{}, 1)}
}

func prefix(h Hash) uint64 { return binary.BigEndian.Uint64(h[:8]) }

// Has reports whether a foreign key of that hash may be stored. The error is [ErrNotLoaded] until the set is read.
func (k *ForeignKeys) Has(h Hash) (bool, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if !k.loaded {
		return false, ErrNotLoaded
	}
	_, ok := k.set[prefix(h)]
	return ok, nil
}

// Refresh has Run look for new keys now. It does not wait.
func (k *ForeignKeys) Refresh() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Run keeps the set up to date until ctx ends. A failure is logged when it is the first; what was
// known before stays.
func (k *ForeignKeys) Run(ctx context.Context) {
	ticker := time.NewTicker(foreignEvery)
	defer ticker.Stop()
	var since, renewed time.Time
	failing := false
	for {
		if k.now().Sub(renewed) >= foreignRenew {
			since = time.Time{}
		}
		upTo, err := k.load(ctx, since)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			failing = true
			k.log.WarnContext(ctx, "foreign keys were not read; it is tried again", slog.Any("error", err))
		case err == nil:
			if failing {
				failing = false
				k.log.InfoContext(ctx, "foreign keys are read again")
			}
			if since.IsZero() {
				renewed = k.now()
			}
			since = upTo.Add(-foreignOverlap)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-k.wake:
		}
	}
}

// load adds what was stored at since or later, or takes the place of all when since is zero.
func (k *ForeignKeys) load(ctx context.Context, since time.Time) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	found := map[uint64]struct{}{}
	upTo, err := k.source.ForeignHashes(ctx, since, func(h Hash) { found[prefix(h)] = struct{}{} })
	if err != nil {
		return time.Time{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if since.IsZero() {
		k.set, k.loaded = found, true
		return upTo, nil
	}
	for p := range found {
		k.set[p] = struct{}{}
	}
	return upTo, nil
}
