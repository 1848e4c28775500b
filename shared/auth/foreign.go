package auth

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// ErrNotLoaded is the error while the set of foreign keys is not loaded yet. A foreign key is an imported key, of any
// form.
var ErrNotLoaded = errors.New("the foreign keys are not loaded yet")

// ForeignSource lists the stored foreign keys.
type ForeignSource interface {
	// ForeignHashes calls add with the hash of each foreign key that was stored at since or later, or of all if since
	// is zero. It leaves out revoked and expired keys. It returns the time, by the store's clock, up to which the
	// result is complete.
	ForeignHashes(ctx context.Context, since time.Time, add func(Hash)) (time.Time, error)
}

const (
	// foreignEvery is the interval of looking for new foreign keys.
	foreignEvery = time.Second

	// foreignOverlap is how far each look goes back before the last one: a key is stored with the time at which its
	// transaction began.
	foreignOverlap = 30 * time.Second

	// foreignRenew is the interval at which the whole set is loaded again, so that it forgets revoked keys.
	foreignRenew = 15 * time.Minute
)

// ForeignKeys knows which foreign keys are stored, by the first 64 bits of their hashes. It takes 8 bytes a key. A
// random key passes with a chance of one in 2^64 for each stored key. It answers without a request, so a flood of
// random keys reaches no store.
type ForeignKeys struct {
	source ForeignSource
	log    *slog.Logger

	mu     sync.RWMutex
	loaded bool
	set    map[uint64]struct{}
}

// NewForeignKeys returns a set that is empty until [ForeignKeys.Run] has loaded it.
func NewForeignKeys(source ForeignSource, log *slog.Logger) *ForeignKeys {
	return &ForeignKeys{source: source, log: log}
}

func prefix(h Hash) uint64 { return binary.BigEndian.Uint64(h[:8]) }

// Has reports whether a foreign key of that hash may be stored. The error is [ErrNotLoaded] until the set is loaded.
func (k *ForeignKeys) Has(h Hash) (bool, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if !k.loaded {
		return false, ErrNotLoaded
	}
	_, ok := k.set[prefix(h)]
	return ok, nil
}

// Run keeps the set up to date until ctx ends. It logs the first failure of a series. A failure leaves the set as it
// is.
func (k *ForeignKeys) Run(ctx context.Context) {
	ticker := time.NewTicker(foreignEvery)
	defer ticker.Stop()
	var since, renewed time.Time
	failing := false
	for {
		if time.Since(renewed) >= foreignRenew {
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
				renewed = time.Now()
			}
			since = upTo.Add(-foreignOverlap)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// load adds the keys that were stored at since or later. If since is zero, it replaces the whole set.
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
