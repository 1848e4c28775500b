package pgkeys

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/pgdb"
)

// Changes reads which keys have changed as the database notes it, whoever changes them and however. It needs
// no more than the reader role.
type Changes struct {
	pool *pgdb.Pool

	notes string    // whose answered last; empty: none did, or it failed since
	at    time.Time // by the server's clock
	from  int64     // transactions before it were all told
	told  map[change]struct{}
}

var _ auth.ChangeFeed = (*Changes)(nil)

// NewChanges makes a feed of the database that pool reaches, whose caller closes it.
func NewChanges(pool *pgdb.Pool) *Changes { return &Changes{pool: pool} }

// change is one that was noted.
type change struct {
	xid   int64
	shard int16
	began time.Time
}

// longestGap is how long a feed may not have been asked, for its next answer to go on from the last: half of what
// notes are kept for.
const longestGap = 30 * time.Minute

// changes lists what was noted by transactions from $1 on (0: from those that are under way), with the one from
// which on the next list is to go, the time, how many of the three triggers note changes, and what is another as soon as
// one of them was touched, or it is another server, database or table. A transaction that is not over when a snapshot is
// taken is not before the snapshot's xmin, so none is passed over, in whatever order they end.
const changes = `
	SELECT pg_snapshot_xmin(s)::text::bigint, now(), t.many,
	       concat_ws(' ', pg_postmaster_start_time(), (SELECT oid FROM pg_database WHERE datname = current_database()), t.which),
	       coalesce(c.xid::text::bigint, 0), coalesce(c.shard, -1), coalesce(c.began, 'epoch')
	FROM pg_current_snapshot() s
	CROSS JOIN (SELECT count(*) AS many, string_agg(oid || ':' || xmin, ' ' ORDER BY oid) AS which FROM pg_trigger
	            WHERE tgrelid = 'api_keys'::regclass AND tgname IN ('changed', 'deleted', 'emptied') AND tgenabled = 'A') t
	LEFT JOIN api_key_changes c ON c.xid < pg_snapshot_xmax(s)
	      AND c.xid >= CASE $1::bigint WHEN 0 THEN pg_snapshot_xmin(s) ELSE $1::bigint::text::xid8 END`

// triggers is how many note changes.
const triggers = 3

// Next does what [auth.ChangeFeed] says.
func (c *Changes) Next(ctx context.Context) (auth.Changes, error) {
	var (
		notes string
		at    time.Time
		from  int64
		many  int
		told  map[change]struct{}
		next  auth.Changes
	)
	err := c.pool.Query(ctx, func(rows pgx.Rows) error {
		told, next = map[change]struct{}{}, auth.Changes{}
		for rows.Next() {
			var one change
			if err := rows.Scan(&from, &at, &many, &notes, &one.xid, &one.shard, &one.began); err != nil {
				return err
			}
			if one.shard < 0 {
				continue
			}
			one.began = one.began.UTC()
			told[one] = struct{}{}
			if _, ok := c.told[one]; !ok {
				next.Shards = append(next.Shards, byte(one.shard))
			}
		}
		return nil
	}, changes, c.from)
	switch pg, ok := errors.AsType[*pgconn.PgError](err); {
	case ok && (pg.Code == "42P01" || pg.Code == "42501"): // undefined_table, insufficient_privilege: not migrated yet
		err = fmt.Errorf("%w: %w", auth.ErrNoFeed, err)
	case err != nil:
		err = fmt.Errorf("read the changes of keys: %w", err)
	case many != triggers:
		err = auth.ErrNoFeed
	}
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded): // no answer in time says nothing of what is noted
		return auth.Changes{}, err
	default:
		c.notes, c.from, c.told = "", 0, nil
		return auth.Changes{}, err
	}
	next.Continues = notes == c.notes && from >= c.from && at.Sub(c.at) < longestGap
	c.notes, c.at, c.from, c.told = notes, at, from, told
	return next, nil
}
