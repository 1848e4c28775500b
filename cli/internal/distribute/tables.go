package distribute

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Distribute copies every table whose primary key begins with project_id to the workers and switches over, in one
// transaction. Before the commit, Distribute compares the number of rows and a checksum of each table, and rolls back
// on a difference. Writes wait until the commit. Tables that are already distributed stay unchanged, and are not in the
// result.
func (d *Database) Distribute(ctx context.Context) ([]Table, error) {
	return d.change(ctx, false, func(ctx context.Context, tx pgx.Tx, list []table) error {
		with := "none"
		for _, t := range list {
			d.Say("Distributing %s.", t.name)
			if _, err := tx.Exec(ctx, `SELECT create_distributed_table($1::regclass, 'project_id', colocate_with => $2)`, t.name, with); err != nil {
				return fmt.Errorf("distribute %s: %w", t.name, err)
			}
			if with == "none" {
				with = t.name
			}
		}
		return nil
	})
}

// Undo moves every distributed table back to the coordinator in one transaction, including later rows. Undo compares
// the rows as [Database.Distribute] does. Writes wait for the transaction, and reads of a table wait after the table
// was moved. Then Undo removes the workers from the cluster, and the extension from the coordinator. The databases on
// the workers stay, without tables.
func (d *Database) Undo(ctx context.Context) ([]Table, error) {
	done, err := d.change(ctx, true, func(ctx context.Context, tx pgx.Tx, list []table) error {
		for _, t := range list {
			d.Say("Bringing %s back.", t.name)
			if err := bringBack(ctx, tx, t); err != nil {
				return fmt.Errorf("bring %s back: %w", t.name, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = d.connect(ctx, "", "", func(conn *pgx.Conn) error {
		f, err := look(ctx, conn)
		if err != nil || !f.citus {
			return err
		}
		if _, err := conn.Exec(ctx, `SELECT citus_remove_node(nodename, nodeport) FROM pg_dist_node WHERE groupid <> 0`); err != nil {
			return fmt.Errorf("forget the workers: %w", err)
		}
		_, err = conn.Exec(ctx, `DROP EXTENSION citus`)
		return err
	})
	return done, err
}

// Finish frees the space that the tables took on the coordinator before they were distributed. After Finish, the rows
// are only on the workers.
func (d *Database) Finish(ctx context.Context) error {
	return d.connect(ctx, "", "", func(conn *pgx.Conn) error {
		list, err := tablesOf(ctx, conn, true)
		if err != nil {
			return err
		}
		for _, t := range list {
			if _, err := conn.Exec(ctx, `SELECT truncate_local_data_after_distributing_table($1::regclass)`, t.name); err != nil {
				return fmt.Errorf("clear %s: %w", t.name, err)
			}
		}
		return nil
	})
}

// errChanged is the error for a table whose rows differ after a change. The change is rolled back.
var errChanged = errors.New("rows or their checksum are not what they were; nothing was changed")

// change runs do in a transaction, with the tables that are distributed, or with the tables that are not. change
// commits if the rows of all tables are unchanged, and returns the tables.
func (d *Database) change(ctx context.Context, distributed bool, do func(context.Context, pgx.Tx, []table) error) (done []Table, err error) {
	err = d.connect(ctx, "", "", func(conn *pgx.Conn) error {
		f, err := look(ctx, conn)
		if err != nil {
			return err
		}
		if !f.citus {
			if distributed {
				return nil
			}
			return errors.New("the database has not been prepared")
		}
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			list, err := tablesOf(ctx, tx, distributed)
			if err != nil || len(list) == 0 {
				return err
			}
			// After this lock, all earlier writes are committed, later writes wait, and reads continue.
			if _, err := tx.Exec(ctx, "LOCK TABLE "+names(list)+" IN EXCLUSIVE MODE"); err != nil {
				return err
			}
			before, err := sums(ctx, tx, list)
			if err != nil {
				return err
			}
			if err := do(ctx, tx, list); err != nil {
				return err
			}
			after, err := sums(ctx, tx, list)
			if err != nil {
				return err
			}
			done = nil
			for i, t := range list {
				if before[i] != after[i] {
					return fmt.Errorf("%s: %w", t.name, errChanged)
				}
				done = append(done, Table{t.name, before[i].rows})
				d.Say("%s: %d rows, checksum %s before and after.", t.name, before[i].rows, before[i].checksum)
			}
			return nil
		})
	})
	return done, err
}

// table is a table whose primary key begins with project_id.
type table struct {
	name    string   // in the form of regclass
	columns []string // expressions that convert each column to the same text on every machine
}

func names(list []table) string {
	all := make([]string, len(list))
	for i, t := range list {
		all[i] = t.name
	}
	return strings.Join(all, ", ")
}

// querier is a connection or a transaction of pgx, for functions that read with either.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// tablesOf lists the tables whose primary key begins with project_id. distributed selects the distributed tables or
// all others.
func tablesOf(ctx context.Context, q querier, distributed bool) ([]table, error) {
	rows, err := q.Query(ctx, `
		SELECT c.oid::regclass::text,
		       ARRAY(SELECT CASE a.atttypid
		                    WHEN 'timestamptz'::regtype THEN format('extract(epoch FROM %I)::text', a.attname)
		                    WHEN 'bytea'::regtype THEN format('encode(%I, ''hex'')', a.attname)
		                    ELSE format('%I::text', a.attname) END
		             FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)
		FROM pg_class c
		JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
		JOIN pg_attribute k ON k.attrelid = c.oid AND k.attnum = i.indkey[0] AND k.attname = 'project_id'
		LEFT JOIN pg_dist_partition d ON d.logicalrelid = c.oid
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
		  AND c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
		  AND (d.logicalrelid IS NOT NULL) = $1
		ORDER BY 1`, distributed)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t table, err error) {
		err = row.Scan(&t.name, &t.columns)
		return t, err
	})
}

// sum is the number of rows of a table, and the sum of the hashes of all rows.
type sum struct {
	rows     int64
	checksum string
}

// sums returns, for each table in list, the number of rows and the sum of the hashes of all rows. The sum does not
// depend on the order of the rows.
func sums(ctx context.Context, q querier, list []table) ([]sum, error) {
	all := make([]sum, len(list))
	for i, t := range list {
		err := q.QueryRow(ctx, `
			SELECT count(*), coalesce(sum(('x' || left(md5(ROW(`+strings.Join(t.columns, ", ")+`)::text), 15))::bit(60)::bigint), 0)::text
			FROM `+t.name).Scan(&all[i].rows, &all[i].checksum)
		if err != nil {
			return nil, fmt.Errorf("sum up %s: %w", t.name, err)
		}
	}
	return all, nil
}
