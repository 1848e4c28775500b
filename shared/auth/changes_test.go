package auth_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
)

// feed is a ChangeFeed of which a test says what it answers.
type feed struct {
	takes time.Duration // each answer
	first time.Duration // the first one besides

	mu     sync.Mutex
	shards []byte
	fault  error
	gap    bool // the next answer does not go on from the one before

	begun bool
	asked int
}

func (f *feed) Next(context.Context) (auth.Changes, error) {
	time.Sleep(f.takes)
	if f.calls() == 0 {
		time.Sleep(f.first)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.fault != nil {
		f.begun = false
		return auth.Changes{}, f.fault
	}
	c := auth.Changes{Shards: f.shards, Continues: f.begun && !f.gap}
	f.shards, f.gap, f.begun = nil, false, true
	return c, nil
}

// set has the feed fail, pass changes by, or tell of some from now on.
func (f *feed) set(fault error, gap bool, shards ...byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.gap, f.shards = fault, gap, append(f.shards, shards...)
}

func (f *feed) calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// watched is a verifier that watches a feed, on synctest's clock.
type watched struct {
	*auth.Verifier
	store *store
	feed  *feed
	log   *logtest.Buffer
}

func watch(t *testing.T, f *feed) *watched {
	t.Helper()
	return watchWith(t, f, auth.VerifierOptions{})
}

func watchWith(t *testing.T, f *feed, o auth.VerifierOptions) *watched {
	t.Helper()
	o.TTL, o.Now = ttl, time.Now
	w := &watched{store: newStore(time.Now), feed: f, log: &logtest.Buffer{}}
	w.Verifier = auth.NewVerifier(w.store, o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Watch(ctx, f, w.Changed, slog.New(slog.NewTextHandler(w.log, nil)))
	}()
	t.Cleanup(func() { cancel(); <-ended; w.Close() })
	// The clocks of those who read the store may be a second off.
	time.Sleep(1100 * time.Millisecond)
	return w
}

// key stores a key and returns it with its record.
func (w *watched) key() (string, auth.Record) {
	key, _ := auth.Mint()
	r := auth.Record{ID: "key_1", ProjectID: "p", Scopes: auth.DefaultScopes}
	w.store.put(r, key.Reveal())
	return key.Reveal(), r
}

func (w *watched) verify(key string) error {
	_, err := w.Verify(context.Background(), "p", key)
	return err
}

// However many keys are in use, they are read once as long as nothing changes.
func TestAFeedStandsForAllKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &feed{})
		const n = 500
		var keys []string
		for range n {
			key, _ := w.key()
			keys = append(keys, key)
		}
		asked := w.feed.calls()
		for range 60 {
			for _, key := range keys {
				if err := w.verify(key); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
		}
		if got := w.store.asked.Load(); got != n {
			t.Errorf("%d look-ups of %d keys", got, n)
		}
		if got := w.feed.calls() - asked; got < 180 || got > 220 {
			t.Errorf("the feed was asked %d times in a minute", got)
		}
	})
}

// uses is a UseWriter that keeps the latest.
type uses struct {
	mu   sync.Mutex
	last auth.Use
}

func (u *uses) WriteUses(_ context.Context, all []auth.Use) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = all[len(all)-1]
	return nil
}

func (u *uses) latest() auth.Use {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last
}

// That a key is read once does not mean that it is used once: its last use is exact to a minute.
func TestTheLastUseOfAKeyThatIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &uses{}
		last := auth.NewLastUse(kept, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			last.Run(ctx, 30*time.Second)
		}()
		defer func() { cancel(); <-ended }()
		w := watchWith(t, &feed{}, auth.VerifierOptions{Uses: last})
		key, _ := w.key()
		for range 300 {
			if err := w.verify(key); err != nil {
				t.Fatal(err)
			}
			if used := kept.latest(); used.KeyID != "" && time.Since(used.At) > time.Minute {
				t.Fatalf("%v after a use that is noted, though it is used every second", time.Since(used.At))
			}
			time.Sleep(time.Second)
		}
		if kept.latest().KeyID == "" || w.store.asked.Load() != 1 {
			t.Errorf("noted %+v, %d look-ups", kept.latest(), w.store.asked.Load())
		}
	})
}

func TestAChangeIsSeenThroughTheFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &feed{})
		key, r := w.key()
		if err := w.verify(key); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r.RevokedAt = time.Now()
		w.store.put(r, key)
		w.feed.set(nil, false, auth.HashKey(key).Shard())
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if err := w.verify(key); !errors.Is(err, auth.ErrRevoked) {
			t.Errorf("300 ms after it was revoked: %v", err)
		}
	})
}

// Without answers of the feed, keys are asked for one by one, and what was read counts until its TTL from the last
// answer.
func TestAFeedThatFails(t *testing.T) {
	for _, fault := range []error{errors.New("out of reach"), auth.ErrNoFeed} {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{}
			w := watch(t, f)
			key, _ := w.key()
			if err := w.verify(key); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second)
			f.set(fault, false)
			time.Sleep(time.Second)
			before := w.store.asked.Load()
			for range 5 {
				if err := w.verify(key); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			if got := w.store.asked.Load() - before; got < 5 {
				t.Errorf("%v: %d look-ups in 5 s, want one a second at least", fault, got)
			}
			// What is asked for again stands by itself.
			w.store.set(errors.New("out of reach"), nil)
			last := time.Now()
			for time.Since(last) < 3*time.Second {
				if err := w.verify(key); err != nil {
					t.Fatalf("%v: %v after it was read last: %v", fault, time.Since(last), err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(3 * time.Second)
			if err := w.verify(key); code(err) != apierr.Unavailable {
				t.Errorf("%v: after the TTL: %v, want unavailable", fault, err)
			}

			w.store.set(nil, nil)
			f.set(nil, false)
			time.Sleep(35 * time.Second)
			if err := w.verify(key); err != nil {
				t.Error(err)
			}
			before = w.store.asked.Load()
			for range 20 {
				if err := w.verify(key); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			if got := w.store.asked.Load() - before; got > 0 {
				t.Errorf("%v: %d look-ups though the feed answers again", fault, got)
			}
			if n := strings.Count(w.log.String(), "asked for anew"); n != 1 {
				t.Errorf("logged %d times:\n%s", n, w.log)
			}
		})
	}
}

// Both out of reach at once: what was read counts until its TTL from the last answer of the feed.
func TestTheStoreOfAFeedGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		w := watch(t, f)
		key, _ := w.key()
		if err := w.verify(key); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		gone := time.Now()
		fault := errors.New("out of reach")
		f.set(fault, false)
		w.store.set(fault, nil)
		for time.Since(gone) < ttl-300*time.Millisecond {
			if err := w.verify(key); err != nil {
				t.Fatalf("%v after the store went away: %v", time.Since(gone), err)
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(300 * time.Millisecond)
		if err := w.verify(key); code(err) != apierr.Unavailable {
			t.Errorf("after the TTL: %v, want unavailable", err)
		}
	})
}

// What was read before a gap in the account is read again when its own time is over.
func TestAGapInAFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		w := watch(t, f)
		key, r := w.key()
		if err := w.verify(key); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		// It changes, and another server answers, which does not tell.
		r.RevokedAt = time.Now()
		w.store.put(r, key)
		f.set(nil, true)
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if err := w.verify(key); !errors.Is(err, auth.ErrRevoked) {
			t.Errorf("after the gap: %v", err)
		}
	})
}

// An account that begins with an answer that took long knows of nothing before it.
func TestAFeedThatBeginsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{first: 1400 * time.Millisecond}
		w := watchWith(t, f, auth.VerifierOptions{}) // 1.1 s have passed
		time.Sleep(100 * time.Millisecond)
		key, r := w.key()
		if err := w.verify(key); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		r.RevokedAt = time.Now() // which the answer under way is too late to tell, and later ones do not
		w.store.put(r, key)
		time.Sleep(ttl)
		if err := w.verify(key); !errors.Is(err, auth.ErrRevoked) {
			t.Errorf("a TTL after it was revoked: %v", err)
		}
	})
}

// Answers that take a quarter of a second are soon enough.
func TestASlowFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &feed{takes: 250 * time.Millisecond})
		time.Sleep(2 * time.Second)
		key, _ := w.key()
		for range 600 {
			if err := w.verify(key); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := w.store.asked.Load(); n != 1 {
			t.Errorf("%d look-ups", n)
		}
	})
}

// A change that nobody told of is seen in the end: no reading stands for ever.
func TestWhatTheFeedMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &feed{})
		key, r := w.key()
		if err := w.verify(key); err != nil {
			t.Fatal(err)
		}
		r.RevokedAt = time.Now()
		w.store.put(r, key)
		for time.Since(r.RevokedAt) < 10*time.Minute {
			if err := w.verify(key); errors.Is(err, auth.ErrRevoked) {
				return
			}
			time.Sleep(time.Second)
		}
		t.Error("accepted for ten minutes")
	})
}

// That asking failed once does not count when the feed has told since.
func TestAFailureOfLongAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		w := watch(t, f)
		key, r := w.key()
		if err := w.verify(key); err != nil {
			t.Fatal(err)
		}
		f.set(errors.New("out of reach"), false)
		w.store.set(errors.New("out of reach"), nil)
		for range 10 {
			time.Sleep(200 * time.Millisecond)
			if err := w.verify(key); err != nil {
				t.Fatal(err)
			}
		}
		w.store.set(nil, nil)
		f.mu.Lock()
		f.fault, f.begun = nil, true // as if nothing was missed
		f.mu.Unlock()
		time.Sleep(time.Minute)
		f.set(errors.New("out of reach"), false)
		time.Sleep(time.Second)
		r.RevokedAt = time.Now()
		w.store.put(r, key)
		if err := w.verify(key); !errors.Is(err, auth.ErrRevoked) {
			t.Errorf("a key that was revoked, when the feed fails: %v", err)
		}
	})
}

// A copy that is put back, of what was read before the account began, does not live longer for it.
func TestAnOldCopyDoesNotStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &feed{})
		key, _ := w.key()
		read := time.Now().Add(-4 * time.Second)
		w.store.now = func() time.Time { return read }
		if err := w.verify(key); err != nil {
			t.Fatal(err)
		}
		w.store.set(errors.New("out of reach"), nil)
		time.Sleep(time.Until(read.Add(ttl)))
		if err := w.verify(key); code(err) != apierr.Unavailable {
			t.Errorf("after the TTL: %v, want unavailable", err)
		}
	})
}

// copies is a store over another one that answers now and then with what it read before, as Redis may do that
// lost what it was told, and takes its time.
type copies struct {
	*store
	random *rand.Rand

	mu    sync.Mutex
	held  map[auth.Hash]auth.Record
	heard map[byte]time.Time
}

func (c *copies) changed(shard byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard[shard] = time.Now()
}

// copy returns what was read before, now and then, and how long a look-up is to take.
func (c *copies) copy(h auth.Hash) (r auth.Record, ok bool, takes time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok = c.held[h]
	ok = ok && c.random.IntN(2) == 0 && time.Since(r.ReadAt) < ttl && r.ReadAt.After(c.heard[h.Shard()].Add(time.Second))
	return r, ok, time.Duration(c.random.IntN(400)) * time.Millisecond
}

func (c *copies) Lookup(ctx context.Context, projectID string, h auth.Hash) (auth.Record, error) {
	r, ok, takes := c.copy(h)
	if ok {
		return r, nil
	}
	r, err := c.store.Lookup(ctx, projectID, h)
	time.Sleep(takes)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held[h] = r
	}
	return r, err
}

// Whatever the feed and the store do, a revoked key is accepted for no longer than the TTL, and for no longer
// than a second as long as the feed answers.
func TestRevocationsThroughAnyFeed(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				f := &feed{}
				c := &copies{store: newStore(time.Now), random: rand.New(rand.NewPCG(seed, 2)), held: map[auth.Hash]auth.Record{}, heard: map[byte]time.Time{}}
				v := auth.NewVerifier(c, auth.VerifierOptions{TTL: ttl, Now: time.Now})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					v.Watch(ctx, f, func(shard byte) {
						c.changed(shard)
						v.Changed(shard)
					}, slog.New(slog.DiscardHandler))
				}()
				defer func() { cancel(); <-ended; v.Close() }()

				for range 20 {
					key, _ := auth.Mint()
					h := auth.HashKey(key.Reveal())
					r := auth.Record{ID: "key_1", ProjectID: "p"}
					c.put(r, key.Reveal())
					use := func(until time.Time) (last time.Time) {
						for time.Now().Before(until) {
							if _, err := v.Verify(ctx, "p", key.Reveal()); err == nil {
								last = time.Now()
							}
							time.Sleep(time.Duration(10+random.IntN(200)) * time.Millisecond)
						}
						return last
					}
					use(time.Now().Add(time.Duration(random.IntN(8000)) * time.Millisecond))
					healthy := true
					switch random.IntN(4) {
					case 0:
						healthy = false
						f.set(errors.New("out of reach"), false)
						use(time.Now().Add(time.Duration(random.IntN(3000)) * time.Millisecond))
					case 1:
						healthy = false
						f.set(nil, true)
					}
					r.RevokedAt = time.Now()
					c.put(r, key.Reveal())
					if healthy {
						f.set(nil, false, h.Shard())
					}
					revoked := time.Now()
					if last := use(revoked.Add(2 * ttl)); last.Sub(revoked) > ttl+400*time.Millisecond {
						t.Fatalf("accepted %v after it was revoked", last.Sub(revoked))
					} else if healthy && last.Sub(revoked) > time.Second {
						t.Fatalf("accepted %v after it was revoked, though the feed told", last.Sub(revoked))
					}
					f.set(nil, false)
				}
			})
		})
	}
}
