package pgkeys_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// plain is [setup] where no table is distributed, so that changes are noted.
func plain(t *testing.T) *bench {
	t.Helper()
	server := pgtest.Server(t)
	b := &bench{announced: &announced{}, now: time.Now().UTC().Truncate(time.Microsecond)}
	if server.Citus() {
		b.db = server.PlainDatabase(t, pgkeys.Schema())
	} else {
		b.db = server.Database(t, pgkeys.Schema())
	}
	now := func() time.Time { return b.now }
	b.Admin = pgkeys.NewAdmin(pool(t, b.db.OwnerURL), b.announced, now, slog.New(slog.DiscardHandler))
	b.store = pgkeys.NewStore(pool(t, b.db.ReaderURL), now)
	return b
}

// feed is a feed that has begun.
func (b *bench) feed(t *testing.T) *pgkeys.Changes {
	t.Helper()
	feed := pgkeys.NewChanges(pool(t, b.db.ReaderURL))
	first, err := feed.Next(t.Context())
	if err != nil || first.Continues {
		t.Fatalf("the first call: %+v, %v", first, err)
	}
	return feed
}

// tells checks what a feed tells next.
func tells(t *testing.T, feed *pgkeys.Changes, want ...byte) {
	t.Helper()
	next, err := feed.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(next.Shards)
	slices.Sort(want)
	if diff := cmp.Diff(auth.Changes{Shards: want, Continues: true}, next); diff != "" {
		t.Fatalf("want, got: %s", diff)
	}
}

// keyIn mints keys until there is one in a shard that none of others is in.
func (b *bench) keyIn(t *testing.T, others ...byte) (auth.Record, byte) {
	t.Helper()
	for {
		key, r := b.mint(t, pgkeys.MintOptions{ProjectID: "p", ExpiresAt: b.now.Add(time.Hour)})
		if shard := auth.HashKey(key.Reveal()).Shard(); !slices.Contains(others, shard) {
			return r, shard
		}
	}
}

func exec(t *testing.T, db interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
}, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// Whoever changes a key, and however, it is told once; what changes no verdict is not.
func TestChangesAreTold(t *testing.T) {
	b := plain(t)
	owner := connect(t, b.db.OwnerURL)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, tt := range []struct {
		name string
		do   func(r auth.Record) error
		told bool
	}{
		{"revoked", func(r auth.Record) error { _, err := b.Revoke(t.Context(), "p", r.ID); return err }, true},
		{"expired", func(r auth.Record) error { _, err := b.Expire(t.Context(), "p", r.ID, b.now); return err }, true},
		{"rate changed by hand", func(r auth.Record) error {
			_, err := owner.Exec(t.Context(), `UPDATE api_keys SET rate = 7 WHERE key_id = $1`, r.ID)
			return err
		}, true},
		{"deleted by hand", func(r auth.Record) error {
			_, err := owner.Exec(t.Context(), `DELETE FROM api_keys WHERE key_id = $1`, r.ID)
			return err
		}, true},
		{"changed and not committed", func(r auth.Record) error {
			tx, err := owner.Begin(t.Context())
			if err != nil {
				return err
			}
			_, err = tx.Exec(t.Context(), `DELETE FROM api_keys WHERE key_id = $1`, r.ID)
			return errors.Join(err, tx.Rollback(t.Context()))
		}, false},
		{"used", func(r auth.Record) error {
			return b.store.WriteUses(t.Context(), []auth.Use{{ProjectID: "p", KeyID: r.ID, At: b.now}})
		}, false},
		{"named", func(r auth.Record) error {
			_, err := owner.Exec(t.Context(), `UPDATE api_keys SET name = 'another' WHERE key_id = $1`, r.ID)
			return err
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, shard := b.keyIn(t)
			feed := b.feed(t)
			tells(t, feed)
			if err := tt.do(r); err != nil {
				t.Fatal(err)
			}
			if tt.told {
				tells(t, feed, shard)
			}
			tells(t, feed)
		})
	}
	feed := b.feed(t)
	exec(t, owner, `TRUNCATE api_keys`)
	tells(t, feed, all...)
	tells(t, feed)
}

// Transactions end in another order than they begin in: none is passed over, and none is told twice while an
// old one is under way.
func TestChangesAreToldInWhateverOrderTheyEnd(t *testing.T) {
	b := plain(t)
	slow, slowShard := b.keyIn(t)
	quick, quickShard := b.keyIn(t, slowShard)
	last, lastShard := b.keyIn(t, slowShard, quickShard)
	feed := b.feed(t)
	const revoke = `UPDATE api_keys SET revoked_at = now() WHERE key_id = $1`
	tx, err := connect(t, b.db.OwnerURL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) //nolint:errcheck // of a test that failed
	exec(t, tx, revoke, slow.ID)
	tells(t, feed)
	owner := connect(t, b.db.OwnerURL)
	exec(t, owner, revoke, quick.ID)
	tells(t, feed, quickShard)
	tells(t, feed)
	exec(t, owner, revoke, last.ID)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	tells(t, feed, slowShard, lastShard)
	tells(t, feed)
}

// Many feeds, each asking all the time, while keys are revoked by several at once: each feed tells every
// change that stood before it was asked.
func TestEveryFeedTellsEveryChange(t *testing.T) {
	b := plain(t)
	const writers, each = 4, 40
	records := make([][]auth.Record, writers)
	shards := map[string]byte{}
	for w := range writers {
		for range each {
			key, r := b.mint(t, pgkeys.MintOptions{ProjectID: "p"})
			records[w] = append(records[w], r)
			shards[r.ID] = auth.HashKey(key.Reveal()).Shard()
		}
	}
	var (
		mu    sync.Mutex
		stood []byte // shards of changes that are committed
		wg    sync.WaitGroup
	)
	done := make(chan struct{})
	for range 3 {
		feed := b.feed(t)
		wg.Go(func() {
			heard := map[byte]int{}
			for ended := false; !ended; {
				select {
				case <-done:
					ended = true
				default:
				}
				mu.Lock()
				before := slices.Clone(stood)
				mu.Unlock()
				next, err := feed.Next(context.Background())
				if err != nil || !next.Continues {
					t.Errorf("%+v, %v", next, err)
					return
				}
				for _, s := range next.Shards {
					heard[s]++
				}
				want := map[byte]int{}
				for _, s := range before {
					want[s]++
				}
				for s, n := range want {
					if heard[s] < n {
						t.Errorf("shard %d changed %d times before, and was told %d times", s, n, heard[s])
						return
					}
				}
			}
		})
	}
	var writing sync.WaitGroup
	for w := range writers {
		conn := connect(t, b.db.OwnerURL)
		writing.Go(func() {
			for i, r := range records[w] {
				err := pgx.BeginFunc(context.Background(), conn, func(tx pgx.Tx) error {
					if _, err := tx.Exec(context.Background(), `UPDATE api_keys SET revoked_at = now() WHERE key_id = $1`, r.ID); err != nil {
						return err
					}
					_, err := tx.Exec(context.Background(), `SELECT pg_sleep($1)`, float64(i%7)/1000) // others end before it
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				stood = append(stood, shards[r.ID])
				mu.Unlock()
			}
		})
	}
	writing.Wait()
	close(done)
	wg.Wait()
}

// Transactions that change keys of the same shards in opposite orders do not wait for each other's notes.
func TestNotesDoNotDeadlock(t *testing.T) {
	b := plain(t)
	one, shard := b.keyIn(t)
	other, _ := b.keyIn(t, shard)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	const change = `UPDATE api_keys SET rate = rate + 1 WHERE key_id = $1`
	c1, c2 := connect(t, b.db.OwnerURL), connect(t, b.db.OwnerURL)
	// The rows themselves are others; what they share is the shard.
	const beside = `INSERT INTO api_keys (project_id, key_hash, key_id, scopes)
		SELECT 'q', set_byte(sha256(key_hash), 0, get_byte(key_hash, 0)), $2, scopes FROM api_keys WHERE key_id = $1`
	exec(t, c1, beside, one.ID, "k1")
	exec(t, c1, beside, other.ID, "k2")
	tx1, err1 := c1.Begin(ctx)
	tx2, err2 := c2.Begin(ctx)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		tx pgx.Tx
		id string
	}{{tx1, one.ID}, {tx2, "k2"}, {tx1, other.ID}, {tx2, "k1"}} {
		if _, err := step.tx.Exec(ctx, change, step.id); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tx1.Commit(ctx), tx2.Commit(ctx)); err != nil {
		t.Fatal(err)
	}
}

// Notes are forgotten after an hour, by the next change.
func TestNotesAreForgotten(t *testing.T) {
	b := plain(t)
	old, oldShard := b.keyIn(t)
	recent, recentShard := b.keyIn(t, oldShard)
	owner := connect(t, b.db.OwnerURL)
	for _, r := range []auth.Record{old, recent} {
		if _, err := b.Revoke(t.Context(), "p", r.ID); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, owner, `UPDATE api_key_changes SET noted = now() - interval '62 minutes' WHERE shard = $1`, oldShard)
	exec(t, owner, `UPDATE api_key_changes SET noted = now() - interval '59 minutes' WHERE shard = $1`, recentShard)
	// Of something else, an hour ago: by then the first was over, and the second was not.
	exec(t, owner, `INSERT INTO api_key_changes (xid, shard, noted, horizon)
		SELECT xid, 0, now() - interval '61 minutes', xid FROM api_key_changes WHERE shard = $1`, recentShard)
	last, lastShard := b.keyIn(t, oldShard, recentShard)
	if _, err := b.Revoke(t.Context(), "p", last.ID); err != nil {
		t.Fatal(err)
	}
	rows, err := owner.Query(t.Context(), `SELECT shard FROM api_key_changes 
		WHERE noted NOT BETWEEN now() - interval '61.5 minutes' AND now() - interval '60.5 minutes' ORDER BY xid`)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := pgx.CollectRows(rows, pgx.RowTo[int16])
	if diff := cmp.Diff([]int16{int16(recentShard), int16(lastShard)}, kept); err != nil || diff != "" {
		t.Errorf("%v; kept: %s", err, diff)
	}
}

// Nobody relies on notes that are not made, or not from the beginning.
func TestWithoutNotesThereIsNoFeed(t *testing.T) {
	for _, tt := range []struct{ name, sql, back string }{
		{"the trigger is disabled", `ALTER TABLE api_keys DISABLE TRIGGER changed`, `ALTER TABLE api_keys ENABLE ALWAYS TRIGGER changed`},
		{"the trigger passes replicated changes by", `ALTER TABLE api_keys ENABLE TRIGGER changed`, `SELECT note_api_key_changes()`},
		{"there is no trigger", `DROP TRIGGER deleted ON api_keys`, `SELECT note_api_key_changes()`},
		{"there is no trigger for all at once", `DROP TRIGGER emptied ON api_keys`, `SELECT note_api_key_changes()`},
		{"the notes may not be read", `REVOKE ALL ON api_key_changes FROM PUBLIC, CURRENT_USER`, `GRANT ALL ON api_key_changes TO CURRENT_USER`},
		{"the notes are elsewhere", `ALTER TABLE api_key_changes RENAME TO others`, `ALTER TABLE others RENAME TO api_key_changes`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := plain(t)
			owner := connect(t, b.db.OwnerURL)
			feed := pgkeys.NewChanges(pool(t, b.db.OwnerURL))
			if _, err := feed.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			exec(t, owner, tt.sql)
			if next, err := feed.Next(t.Context()); !errors.Is(err, auth.ErrNoFeed) {
				t.Errorf("%+v, %v, want no feed", next, err)
			}
			exec(t, owner, tt.back)
			if next, err := feed.Next(t.Context()); err != nil || next.Continues {
				t.Errorf("when it is back: %+v, %v", next, err)
			}
			tells(t, feed)
		})
	}
}

// After an error, what happened since the last answer is not vouched for.
func TestAFeedBeginsAnewAfterAnError(t *testing.T) {
	b := plain(t)
	feed := b.feed(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := feed.Next(gone); err == nil {
		t.Fatal("no error of a call whose caller is gone")
	}
	if next, err := feed.Next(t.Context()); err != nil || next.Continues {
		t.Errorf("%+v, %v", next, err)
	}
	tells(t, feed)
}

// An answer that did not come in time is told later.
func TestAFeedGoesOnAfterAnAnswerThatDidNotCome(t *testing.T) {
	b := plain(t)
	r, shard := b.keyIn(t)
	feed := b.feed(t)
	if _, err := b.Revoke(t.Context(), "p", r.ID); err != nil {
		t.Fatal(err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if _, err := feed.Next(late); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	tells(t, feed, shard)
}

// What might have been missed between two answers is not vouched for, however soon the second comes.
func TestAFeedThatIsAnother(t *testing.T) {
	for _, tt := range []struct{ name, sql string }{
		{"a trigger was off", `ALTER TABLE api_keys DISABLE TRIGGER changed; DELETE FROM api_keys; ALTER TABLE api_keys ENABLE ALWAYS TRIGGER changed`},
		{"a trigger was away", `DROP TRIGGER deleted ON api_keys; DELETE FROM api_keys; SELECT note_api_key_changes()`},
		{"another table", `BEGIN; CREATE TABLE others (LIKE api_keys INCLUDING ALL); DROP TABLE api_keys;
			ALTER TABLE others RENAME TO api_keys; SELECT note_api_key_changes(); COMMIT`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := plain(t)
			b.keyIn(t)
			feed := pgkeys.NewChanges(pool(t, b.db.OwnerURL))
			if _, err := feed.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			exec(t, connect(t, b.db.OwnerURL), tt.sql)
			if next, err := feed.Next(t.Context()); err != nil || next.Continues {
				t.Errorf("%+v, %v", next, err)
			}
			tells(t, feed)
		})
	}
}

// Notes that were written long ago and could be seen a moment ago are kept.
func TestNotesOfALongTransactionAreKept(t *testing.T) {
	b := plain(t)
	early, earlyShard := b.keyIn(t)
	late, lateShard := b.keyIn(t, earlyShard)
	other, otherShard := b.keyIn(t, earlyShard, lateShard)
	feed := b.feed(t)
	tx, err := connect(t, b.db.OwnerURL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) //nolint:errcheck // of a test that failed
	const revoke = `UPDATE api_keys SET revoked_at = now() WHERE key_id = $1`
	exec(t, tx, revoke, early.ID)
	exec(t, tx, `UPDATE api_key_changes SET noted = now() - interval '2 hours'`)
	exec(t, tx, revoke, late.ID)
	owner := connect(t, b.db.OwnerURL)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, owner, revoke, other.ID)
	tells(t, feed, earlyShard, lateShard, otherShard)
}

// Who may read keys can not note changes, nor make keys, by way of the functions that do; and a table of a session's
// own does not take the notes.
func TestNotesAreTheOwnersAlone(t *testing.T) {
	b := plain(t)
	r, shard := b.keyIn(t)
	feed := b.feed(t)
	const trap = `
		CREATE TEMP TABLE api_key_changes (xid xid8, shard int, began timestamptz, noted timestamptz, horizon xid8);
		CREATE TEMP TABLE mine (key_hash bytea);
		INSERT INTO mine VALUES ('\x00');
		CREATE TRIGGER mine AFTER UPDATE ON mine FOR EACH ROW EXECUTE FUNCTION note_api_key_change()`
	reader := connect(t, b.db.ReaderURL)
	exec(t, reader, trap)
	if _, err := reader.Exec(t.Context(), `UPDATE mine SET key_hash = '\x01'`); err == nil {
		t.Error("who may read keys notes a change")
	}
	owner := connect(t, b.db.OwnerURL)
	exec(t, owner, trap)
	exec(t, owner, `UPDATE api_keys SET revoked_at = now() WHERE key_id = $1`, r.ID)
	tells(t, feed, shard)
}

// Distributed tables note nothing.
func TestNoFeedWhereTablesAreDistributed(t *testing.T) {
	pgtest.NeedCitus(t)
	b := setup(t)
	feed := pgkeys.NewChanges(pool(t, b.db.ReaderURL))
	if next, err := feed.Next(t.Context()); !errors.Is(err, auth.ErrNoFeed) {
		t.Errorf("%+v, %v, want no feed", next, err)
	}
}
