// Package distribute distributes the tables of a Postgres database over the machines of a Citus cluster, in place and
// while services read from the database. The package is independent of the services: every table whose primary key
// begins with project_id is distributed by that column, with the same colocation.
//
// There are four methods, one for each step of the operator:
//
//   - [Database.Prepare] registers the machines with each other. No table changes.
//   - [Database.Distribute] copies the tables, compares the copies, and switches over in one transaction. Reads
//     continue, and writes wait.
//   - [Database.Undo] moves all tables back to one machine, with the rows that were written in the meantime.
//   - [Database.Finish] frees the space that the tables took on the first machine.
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

// Database is the database of a service, on the Postgres server that becomes the coordinator of the cluster.
type Database struct {
	// URL is the connection string of a superuser. The workers are reached with the same user and password.
	URL config.Secret

	// Coordinator is the address of the coordinator as workers reach the coordinator, host:port.
	Coordinator string

	// Workers are the addresses of the workers, host:port each, as the coordinator and this program reach the
	// workers.
	Workers []string

	// Say is called with a message for the operator about each step.
	Say func(format string, args ...any)
}

// Table is a table that [Database.Distribute] or [Database.Undo] moved, with its number of rows.
type Table struct {
	Name string // qualified, and quoted if necessary
	Rows int64
}

// errNoCitus is the error for a server without Citus. The text tells the operator how to install Citus.
var errNoCitus = errors.New("the server has no Citus: install it on all machines, set shared_preload_libraries = 'citus' and wal_level = logical, and restart")

// connect runs do with a connection to the database name on the host node. If node is "", the host is that in d.URL.
// If name is "", the database is that in d.URL.
func (d *Database) connect(ctx context.Context, node, name string, do func(*pgx.Conn) error) error {
	cfg, err := pgx.ParseConfig(d.URL.Reveal())
	if err != nil {
		return errors.New("the database URL cannot be read") // err may contain the password
	}
	if node != "" {
		u, err := url.Parse(d.URL.Reveal())
		if err != nil {
			return errors.New("the database URL cannot be read")
		}
		u.Host = node
		q := u.Query()
		q.Del("host") // the folder of a socket
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

// facts holds properties of the database on the coordinator, as look reads them.
type facts struct {
	name, owner string
	citus       bool // the extension is installed
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

// Prepare creates missing roles and the database on every worker, creates the extension on all machines, and registers
// the machines with each other. The operator may repeat Prepare.
func (d *Database) Prepare(ctx context.Context) error {
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
		// Otherwise Citus would copy the roles' settings for other databases, which do not exist on the workers.
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

// role is a role of Postgres that owns an object in the database or has a grant in the database, and is not a
// superuser.
type role struct {
	name     string
	login    bool
	verifier *string // the stored verifier of its password
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

// ensure creates the role on a worker if the role is missing, with the same password as on the coordinator.
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
