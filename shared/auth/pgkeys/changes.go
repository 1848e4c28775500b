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

	server string // which answered last; empty: none, or it failed since
	from   int64  // transactions before it were all told
	told   map[change]struct{}
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

// changes lists what was noted by transactions from $1 on (0: from those that are under way), with the one from
// which on the next list is to go, the server, and whether changes are noted at all. A transaction that is not
// over when a snapshot is taken is not before the snapshot's xmin, so none is passed over, in whatever order
// they end.
const changes = `
	SELECT pg_snapshot_xmin(s)::text::bigint, pg_postmaster_start_time()::text,
	       EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'api_keys'::regclass AND tgname = 'changed' AND tgenabled = 'A'),
	       coalesce(c.xid::text::bigint, 0), coalesce(c.shard, -1), coalesce(c.began, 'epoch')
	FROM pg_current_snapshot() s
	LEFT JOIN api_key_changes c ON c.xid >= CASE $1::bigint WHEN 0 THEN pg_snapshot_xmin(s) ELSE $1::bigint::text::xid8 END`

// Next does what [auth.ChangeFeed] says.
func (c *Changes) Next(ctx context.Context) (auth.Changes, error) {
	var (
		server string
		from   int64
		noted  bool
		told   map[change]struct{}
		next   auth.Changes
	)
	err := c.pool.Query(ctx, func(rows pgx.Rows) error {
		told, next = map[change]struct{}{}, auth.Changes{}
		for rows.Next() {
			var one change
			if err := rows.Scan(&from, &server, &noted, &one.xid, &one.shard, &one.began); err != nil {
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
	case !noted:
		err = auth.ErrNoFeed
	}
	if err != nil {
		c.server, c.from, c.told = "", 0, nil
		return auth.Changes{}, err
	}
	next.Continues = server == c.server
	c.server, c.from, c.told = server, from, told
	return next, nil
}
