package distribute

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// trigger is one of a table of projects.
type trigger struct {
	table, name string   // as they stand in SQL
	statements  []string // that make it again
}

// dropTriggers drops the triggers of the tables that are not distributed yet, each by itself, so that nobody who
// reads waits for longer than [lockLimit]. After an error all are there.
func (d *Database) dropTriggers(ctx context.Context) (dropped []trigger, err error) {
	err = d.connect(ctx, "", "", func(conn *pgx.Conn) error {
		f, err := look(ctx, conn)
		if err != nil || !f.citus {
			return err // that it was not prepared is said when it is to be distributed
		}
		tables, err := tablesOf(ctx, conn, false)
		if err != nil {
			return err
		}
		for _, t := range tables {
			all, err := triggersOf(ctx, conn, t)
			if err != nil {
				return fmt.Errorf("read the triggers of %s: %w", t.name, err)
			}
			for _, g := range all {
				if err := g.drop(ctx, conn); err != nil {
					return fmt.Errorf("drop the trigger %s of %s: %w", g.name, g.table, err)
				}
				dropped = append(dropped, g)
				d.Say("The trigger %s of %s is dropped: a distributed table has none.", g.name, g.table)
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, d.makeTriggers(context.WithoutCancel(ctx), dropped))
	}
	return dropped, nil
}

// lockLimit is how long others may queue behind a trigger that is to be dropped, and lockTries how often that is
// tried again, a little later, when somebody holds the table for longer.
const (
	lockLimit = 500 * time.Millisecond
	lockPause = 2 * time.Second
	lockTries = 30
)

func (g trigger) drop(ctx context.Context, conn *pgx.Conn) error {
	for try := 1; ; try++ {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", lockLimit.Milliseconds())); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "DROP TRIGGER "+g.name+" ON "+g.table)
			return err
		})
		pg, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || pg.Code != "55P03" || try == lockTries { // lock_not_available
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPause):
		}
	}
}

// makeTriggers makes dropped triggers again.
func (d *Database) makeTriggers(ctx context.Context, dropped []trigger) error {
	if len(dropped) == 0 {
		return nil
	}
	return d.connect(ctx, "", "", func(conn *pgx.Conn) error {
		var errs []error
		for _, g := range dropped {
			errs = append(errs, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				for _, sql := range g.statements {
					if _, err := tx.Exec(ctx, sql); err != nil {
						return fmt.Errorf("make the trigger %s of %s again (%s): %w", g.name, g.table, sql, err)
					}
				}
				return nil
			}))
		}
		return errors.Join(errs...)
	})
}

func triggersOf(ctx context.Context, q querier, t table) ([]trigger, error) {
	rows, err := q.Query(ctx, `
		SELECT quote_ident(tgname), ARRAY[pg_get_triggerdef(oid), format('ALTER TABLE %s %s TRIGGER %I', tgrelid::regclass,
		       CASE tgenabled WHEN 'A' THEN 'ENABLE ALWAYS' WHEN 'R' THEN 'ENABLE REPLICA' WHEN 'D' THEN 'DISABLE' ELSE 'ENABLE' END, tgname)]
		FROM pg_trigger WHERE tgrelid = $1::regclass AND NOT tgisinternal ORDER BY tgname`, t.name)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (trigger, error) {
		g := trigger{table: t.name}
		err := row.Scan(&g.name, &g.statements)
		return g, err
	})
}
