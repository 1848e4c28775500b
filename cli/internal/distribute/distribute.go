// Package distribute turns a database of one Postgres into one whose tables are distributed over the
// machines of a Citus cluster, in place, while it is read from. It knows no service: every table whose
// primary key begins with project_id is distributed by it, all of a database alike.
//
// Four steps, of which the last alone cannot be undone:
//
//   - [Database.Prepare] makes the machines known to each other. No table changes.
//   - [Database.Distribute] copies the tables out, compares, and switches over in one transaction. Reads go
//     on; writes wait.
//   - [Database.Undo] brings all of it back to one machine, what was written meanwhile with it.
//   - [Database.Finish] gives the room back that the tables took on the first machine.
package distribute

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/config"
)

// Database is a database of a service, on the Postgres that becomes the coordinator.
type Database struct {
	// URL is where a superuser reaches it. With the same credentials the workers are reached.
	URL config.Secret

	// Coordinator is where the workers reach the coordinator, host:port.
	Coordinator string

	// Workers are where the coordinator, and this program, reach them, host:port each.
	Workers []string

	// Say is told what is done, in words.
	Say func(format string, args ...any)
}

// Table is a table that was distributed, or brought back.
type Table struct {
	Name string // qualified and quoted as need be
	Rows int64
}

// errNoCitus says what to do first.
var errNoCitus = errors.New("the server has no Citus: install it on all machines, set shared_preload_libraries = 'citus' and wal_level = logical, and restart")

// connect runs do with a connection to a database of a node; node "" is the coordinator as the URL has it,
// and name "" the URL's database.
func (d *Database) connect(ctx context.Context, node, name string, do func(*pgx.Conn) error) error {
	cfg, err := pgx.ParseConfig(d.URL.Reveal())
	if err != nil {
		return errors.New("the database URL cannot be read") // err may show the password
	}
	if node != "" {
		u, err := url.Parse(d.URL.Reveal())
		if err != nil {
			return errors.New("the database URL cannot be read")
		}
		u.Host = node
		q := u.Query()
		q.Del("host") // a socket's folder
		q.Del("port")
		u.RawQuery = q.Encode()
		if cfg, err = pgx.ParseConfig(u.String()); err != nil {
			return fmt.Errorf("the worker %s is not host:port", node)
		}
	}
	if name != "" {
		cfg.Database = name
	}
	cfg.RuntimeParams["statement_timeout"] = "0"
	cfg.RuntimeParams["application_name"] = "lectern migrate-to-citus"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}

// facts are what the coordinator knows of the database.
type facts struct {
	name, owner string
	citus       bool // the extension is there
}

func look(ctx context.Context, conn *pgx.Conn) (f facts, err error) {
	var loaded bool
	err = conn.QueryRow(ctx, `
		SELECT d.datname, pg_get_userbyid(d.datdba), EXISTS (SELECT FROM pg_extension WHERE extname = 'citus'),
		       'citus' = ANY (string_to_array(replace(current_setting('shared_preload_libraries'), ' ', ''), ','))
		FROM pg_database d WHERE d.datname = current_database()`).Scan(&f.name, &f.owner, &f.citus, &loaded)
	if err == nil && !loaded {
		err = errNoCitus
	}
	return f, err
}

// Prepare makes the roles and the database on every worker, Citus in it, and the nodes known to each
// other. It may be repeated.
func (d *Database) Prepare(ctx context.Context) error {
	if len(d.Workers) == 0 {
		return errors.New("no worker is named")
	}
	return d.connect(ctx, "", "", func(conn *pgx.Conn) error {
		f, err := look(ctx, conn)
		if err != nil {
			return err
		}
		roles, err := rolesOf(ctx, conn)
		if err != nil {
			return fmt.Errorf("read the roles: %w", err)
		}
		for _, w := range d.Workers {
			if err := d.prepareWorker(ctx, w, f, roles); err != nil {
				return fmt.Errorf("prepare the worker %s: %w", w, err)
			}
			d.Say("The worker %s has the database %s and %d roles.", w, f.name, len(roles))
		}
		if _, err := conn.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS citus`); err != nil {
			return err
		}
		host, port, err := hostPort(d.Coordinator)
		if err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, `SELECT citus_set_coordinator_host($1, $2)`, host, port); err != nil {
			return fmt.Errorf("register the coordinator: %w", err)
		}
		// Or roles' settings for other databases would be set there, too, where these are not.
		if _, err := conn.Exec(ctx, `SET citus.enable_alter_role_set_propagation = off`); err != nil {
			return err
		}
		for _, w := range d.Workers {
			host, port, err := hostPort(w)
			if err != nil {
				return err
			}
			if _, err := conn.Exec(ctx, `SELECT citus_add_node($1, $2)`, host, port); err != nil {
				return fmt.Errorf("register the worker %s: %w", w, err)
			}
		}
		d.Say("The coordinator knows %d workers.", len(d.Workers))
		return nil
	})
}

func (d *Database) prepareWorker(ctx context.Context, worker string, f facts, roles []role) error {
	err := d.connect(ctx, worker, "postgres", func(conn *pgx.Conn) error {
		for _, r := range roles {
			if err := r.ensure(ctx, conn); err != nil {
				return err
			}
		}
		var there bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, f.name).Scan(&there)
		if err != nil || there {
			return err
		}
		_, err = conn.Exec(ctx, "CREATE DATABASE "+quote(f.name)+" OWNER "+quote(f.owner))
		return err
	})
	if err != nil {
		return err
	}
	return d.connect(ctx, worker, f.name, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS citus`)
		return err
	})
}

// role is one that owns something in the database or may do something there.
type role struct {
	name     string
	login    bool
	verifier *string // of its password, as the server keeps it
}

func rolesOf(ctx context.Context, conn *pgx.Conn) ([]role, error) {
	rows, err := conn.Query(ctx, `
		WITH acl AS (
			SELECT relowner AS owner, relacl AS acl FROM pg_class WHERE relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
			UNION ALL SELECT NULL, attacl FROM pg_attribute WHERE attacl IS NOT NULL AND attrelid >= 16384
			UNION ALL SELECT datdba, datacl FROM pg_database WHERE datname = current_database()
		), used AS (
			SELECT owner AS id FROM acl UNION SELECT (aclexplode(acl)).grantee FROM acl
		)
		SELECT rolname, rolcanlogin, rolpassword FROM pg_authid
		WHERE oid IN (SELECT id FROM used) AND NOT rolsuper AND rolname NOT LIKE 'pg\_%'
		ORDER BY rolname`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r role, err error) {
		err = row.Scan(&r.name, &r.login, &r.verifier)
		return r, err
	})
}

// ensure makes the role if it is not there.
func (r role) ensure(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`, r.name).Scan(&there)
	if err != nil || there {
		return err
	}
	sql := "CREATE ROLE " + quote(r.name)
	if r.login {
		sql += " LOGIN"
	}
	if r.verifier != nil {
		sql += " PASSWORD '" + strings.ReplaceAll(*r.verifier, "'", "''") + "'"
	}
	_, err = conn.Exec(ctx, sql)
	return err
}

func hostPort(addr string) (string, int, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("%s is not host:port", addr)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return "", 0, fmt.Errorf("%s is not host:port", addr)
	}
	return host, number, nil
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
