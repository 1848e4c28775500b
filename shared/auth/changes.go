package auth

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// ErrNoFeed says that the store of record does not note which keys change.
var ErrNoFeed = errors.New("changes of keys are not noted")

// ChangeFeed tells which keys have changed, out of the store of record.
type ChangeFeed interface {
	// Next returns the changes since the call before it that had no error. Each call sees every change
	// that stood before it began. An error is a fault of the store, or [ErrNoFeed]. It is called by one goroutine.
	Next(ctx context.Context) (Changes, error)
}

// Changes is what a feed tells at a time.
type Changes struct {
	// Shards are those in which a key has changed (see [Hash.Shard]), in no order.
	Shards []byte
	// Continues says that nothing was left out since the call before that had no error. It is not so at the
	// first, after most errors, and when another server answers.
	Continues bool
}

const (
	// watchEvery is how often a feed is asked: often enough that copies do not reach the age at which
	// they are asked for one by one.
	watchEvery = 300 * time.Millisecond

	// watchLimit is how long an answer may take.
	watchLimit = 2 * time.Second

	// watchAgain is how long a feed is left alone when it failed, and watchSeldom when there is none.
	watchAgain  = time.Second
	watchSeldom = 30 * time.Second

	// standFor is how long a reading may stand by what a feed tells, whatever that is, and renewAfter from
	// when on it is renewed behind the requests.
	standFor   = 10 * time.Minute
	renewAfter = 8 * time.Minute
)

// ClockSkew is how far apart the clocks of two processes may be.
const ClockSkew = time.Second

// account is up to when every change is known.
type account struct {
	since time.Time // of records that were read after it
	at    time.Time
}

// Watch asks feed for changes until ctx ends, and tells changed the shard of each, which is to see to it that
// [Verifier.Changed] is called. As long as feed answers, what was read of the store of record stands as if it were
// read again each time, however many keys that are. While it does not, keys are asked for one by one.
func (v *Verifier) Watch(ctx context.Context, feed ChangeFeed, changed func(shard byte), log *slog.Logger) {
	var failed error
	for {
		begin := v.o.Now()
		err := v.look(ctx, feed, changed)
		wait := max(watchEvery-v.o.Now().Sub(begin), watchEvery/10)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrNoFeed):
			wait = watchSeldom
			if !errors.Is(failed, ErrNoFeed) {
				log.InfoContext(ctx, "changes of keys are not noted by their database; each key in use is asked for anew", slog.Any("reason", err))
			}
		case err != nil:
			wait = watchAgain
			if failed == nil {
				log.WarnContext(ctx, "changes of keys were not read; each key in use is asked for anew until they are", slog.Any("error", err))
			}
		case failed != nil:
			log.InfoContext(ctx, "changes of keys are read again")
		}
		failed = err
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// look asks the feed once.
func (v *Verifier) look(ctx context.Context, feed ChangeFeed, changed func(shard byte)) error {
	ctx, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	at := v.o.Now()
	c, err := feed.Next(ctx)
	if err != nil {
		return err
	}
	// First: a copy that is older than its key's change must not stand for a moment longer.
	for _, shard := range c.Shards {
		changed(shard)
	}
	// An account that begins anew knows of no change before this answer. The moment of a reading may be told by
	// another machine's clock.
	since := v.o.Now().Add(ClockSkew)
	if before := v.account.Load(); before != nil && c.Continues {
		since = before.since
	}
	v.account.Store(&account{since: since, at: at})
	return nil
}

// standing is when d was last known to be what the store of record has, and until when it may be believed. told says
// that it is by the feed.
func (v *Verifier) standing(d *verdict) (known, deadline time.Time, told bool) {
	if a := v.account.Load(); a != nil && d.readAt.After(a.since) && a.at.After(d.asked) && a.at.Sub(d.readAt) < standFor {
		return a.at, a.at.Add(v.o.TTL), true
	}
	return d.asked, d.deadline, false
}

// renewable tells whether d is to be asked for again behind the requests, well before it must be, so that no
// request of a busy key waits.
func (v *Verifier) renewable(d *verdict, age time.Duration, told bool, now time.Time) bool {
	if told {
		return age > v.fresh*3/4 || now.Sub(d.readAt) > renewAfter
	}
	return age > v.fresh/2
}

// Told tells whether a feed has told of every change until a moment ago.
func (v *Verifier) Told() bool {
	a := v.account.Load()
	return a != nil && v.o.Now().Sub(a.at) < v.fresh
}
