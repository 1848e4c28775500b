package auth

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// ErrNotLoaded is the error of [ForeignKeys.Has] until the set of foreign keys is loaded. A foreign key is an imported
// key whose text does not have the form of [Mint].
var ErrNotLoaded = errors.New("the foreign keys are not loaded yet")

// ForeignSource is a store that lists its foreign keys, for [ForeignKeys].
type ForeignSource interface {
	// ForeignHashes calls add with the hash of each foreign key that was stored at since or later, or of all if since
	// is zero. ForeignHashes leaves out revoked and expired keys, and returns the time, by the store's clock, up to
	// which the result is complete.
	ForeignHashes(ctx context.Context, since time.Time, add func(Hash)) (time.Time, error)
}

const (
	// foreignEvery is how often [ForeignKeys.Run] looks for new foreign keys.
	foreignEvery = time.Second

	// foreignOverlap is how far each look goes back before the end of the previous look. A key is stored with the time
	// at which its transaction began, so a commit can add a key with an earlier time.
	foreignOverlap = 30 * time.Second

	// foreignRenew is how often [ForeignKeys.Run] loads the whole set again, which drops revoked and expired keys.
	foreignRenew = 15 * time.Minute
)

// ForeignKeys is the set of the stored foreign keys. The set holds the first 64 bits of the hash of each key. A random
// key is in the set with a chance of one in 2^64 for each stored key. A [Verifier] looks up a foreign key only if the
// set has the key, so a flood of random foreign keys reaches no store.
type ForeignKeys struct {
	source ForeignSource
	log    *slog.Logger

	mu     sync.RWMutex
	loaded bool
	set    map[uint64]struct{}
}

// NewForeignKeys returns a set that [ForeignKeys.Run] must load first. Run reads the keys from source, and logs
// failures to log.
func NewForeignKeys(source ForeignSource, log *slog.Logger) *ForeignKeys {
	return &ForeignKeys{source: source, log: log}
}

func prefix(h Hash) uint64 { return binary.BigEndian.Uint64(h[:8]) }

// Has reports whether a foreign key with the hash h may be stored. The set lacks keys that [ForeignKeys.Run] has not
// read yet. The error is [ErrNotLoaded] until the set is loaded.
func (k *ForeignKeys) Has(h Hash) (bool, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if !k.loaded {
		return false, ErrNotLoaded
	}
	_, ok := k.set[prefix(h)]
	return ok, nil
}

// Run reads new keys into the set every second until ctx ends, and loads the whole set again every 15 minutes. If a
// read fails, Run keeps the set, logs the first failure of a series, and tries again.
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

// load adds the keys that were stored at since or later to the set. If since is zero, load replaces the whole set. load
// returns the time up to which the set is now complete.
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
