package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// database is a database by the URL of one role.
type database struct {
	subject  string // where the URL is: DATABASE_URL, or SECRET/DATABASE_URL
	variable string // the setting of the URL, which says what the role is for
	config   *pgx.ConnConfig
	conn     *pgx.Conn // nil unless the database was reached
}

// checkLogin connects to all databases, for the checks that follow.
func (in *inputs) checkLogin(ctx context.Context) []finding {
	var subjects []string
	for _, d := range in.databases {
		subjects = append(subjects, d.subject)
	}
	return atOnce(subjects, func(i int) (err error) {
		d := in.databases[i]
		if d.conn, err = pgx.ConnectConfig(ctx, d.config.Copy()); err != nil {
			return fmt.Errorf("no log-in: %s; correct the URL, the role, or the network", why(err))
		}
		return nil
	})
}

// onEach returns a check of each database that was reached, one after another.
func onEach(do func(context.Context, *inputs, *database) error) func(*inputs, context.Context) []finding {
	return func(in *inputs, ctx context.Context) (findings []finding) {
		for _, d := range in.databases {
			if d.conn != nil && !d.conn.IsClosed() {
				findings = append(findings, finding{d.subject, do(ctx, in, d)})
			}
		}
		return findings
	}
}

// query scans the only row of sql into dest.
func (d *database) query(ctx context.Context, sql string, dest ...any) error {
	if err := d.conn.QueryRow(ctx, sql).Scan(dest...); err != nil {
		return fmt.Errorf("the server does not answer: %s; run the check again", why(err))
	}
	return nil
}

func checkVersion(ctx context.Context, _ *inputs, d *database) error {
	var number int
	if err := d.query(ctx, "SELECT current_setting('server_version_num')::int", &number); err != nil {
		return err
	}
	return postgresVersion(number)
}

// postgresVersion returns an error if the version, given as server_version_num, is too old.
func postgresVersion(number int) error {
	if number < 150_000 {
		return fmt.Errorf("the server is Postgres %d.%d: use Postgres 15 or later", number/10_000, number%10_000)
	}
	return nil
}

func checkEncoding(ctx context.Context, _ *inputs, d *database) error {
	var encoding string
	if err := d.query(ctx, "SELECT current_setting('server_encoding')", &encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database has the encoding %s: create the database anew with ENCODING 'UTF8'", encoding)
	}
	return nil
}

// forbidden are the rights that a role must not have, by the variable of its URL. Owners may do everything. The table
// projects is left out, because the role of ingest removes projects from it.
var forbidden = map[string]struct{ onTable, onColumn string }{
	"DATABASE_URL":            {"DELETE, TRUNCATE", "INSERT, UPDATE"},
	"READ_DATABASE_URL":       {"DELETE, TRUNCATE", "INSERT, UPDATE"},
	"INGEST_DATABASE_URL":     {"DELETE, TRUNCATE", ""},
	"REMOVE_DATABASE_URL":     {"TRUNCATE", ""},
	"AUTH_DATABASE_URL":       {"UPDATE, DELETE, TRUNCATE", "INSERT"}, // it may update one column
	"AUTH_ADMIN_DATABASE_URL": {"DELETE, TRUNCATE", ""},
}

// checkRights checks that the owner can create tables, and that another role can do no more than its service needs.
// Before the first migration, there are no tables.
func checkRights(ctx context.Context, _ *inputs, d *database) error {
	var powerful, creates bool
	var table string
	rights, limited := forbidden[d.variable]
	has := "false"
	if limited {
		has = "has_table_privilege(oid, '" + rights.onTable + "')"
	}
	if rights.onColumn != "" {
		has += " OR has_any_column_privilege(oid, '" + rights.onColumn + "')"
	}
	err := d.query(ctx, `SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls,
		coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),
		coalesce((SELECT min(relname::text) FROM pg_class WHERE relnamespace = current_schema()::regnamespace
			AND relkind IN ('r', 'p') AND relname <> 'projects' AND (`+has+`)), '')
		FROM pg_roles WHERE rolname = current_user`, &powerful, &creates, &table)
	switch {
	case err != nil:
		return err
	case !limited && !creates:
		return errors.New("the role cannot create tables: make the role the owner of the database, as lectern databases does")
	case limited && powerful:
		return errors.New("the role has SUPERUSER, CREATEROLE, CREATEDB, REPLICATION or BYPASSRLS: use a role as lectern databases makes")
	case limited && table != "":
		return fmt.Errorf("the role has one of %s on the table %s: use the role that the URL is for, or run migrate",
			strings.TrimSuffix(rights.onTable+", "+rights.onColumn, ", "), table)
	case limited && creates:
		return errors.New("the role may create tables: run REVOKE CREATE ON SCHEMA public FROM PUBLIC")
	}
	return nil
}

// checkPooler checks what a pooler may refuse: the parameter statement_timeout, and statements that stay prepared after a
// transaction. migrate needs neither.
func checkPooler(ctx context.Context, in *inputs, d *database) error {
	if _, limited := forbidden[d.variable]; !limited {
		return nil
	}
	cfg := d.config.Copy()
	if in.statementTimeout > 0 {
		cfg.RuntimeParams["statement_timeout"] = fmt.Sprint(in.statementTimeout.Milliseconds())
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return poolerFault(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	const statement = "SELECT $1::int" // prepared by its first use, unless the URL sets another mode
	var got int
	if err := conn.QueryRow(ctx, statement, 1).Scan(&got); err != nil {
		return poolerFault(err)
	}
	// The transaction takes the connection of the pooler on which the statement was prepared.
	return poolerFault(pgx.BeginFunc(ctx, d.conn, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT 1").Scan(&got); err != nil {
			return err
		}
		return conn.QueryRow(ctx, statement, 1).Scan(&got)
	}))
}

// poolerFault returns the error of checkPooler for the error of a connection or statement, or nil.
func poolerFault(err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil:
		return nil
	case ok && strings.Contains(pg.Message, "startup parameter"):
		return errors.New("a pooler refuses statement_timeout or jit: set its ignore_startup_parameters = statement_timeout,jit, or STATEMENT_TIMEOUT=0")
	case ok && (pg.Code == "26000" || pg.Code == "42P05"): // the name of a prepared statement is unknown, or taken
		return errors.New("a pooler loses prepared statements: set its max_prepared_statements, or default_query_exec_mode=cache_describe in the URL")
	}
	return fmt.Errorf("a connection as services open it failed: %s; check max_connections, and the settings of a pooler", why(err))
}

// checkClock checks that the server's time is at most five seconds before or after this machine's.
func checkClock(ctx context.Context, in *inputs, d *database) error {
	var server time.Time
	before := in.Now()
	if err := d.query(ctx, "SELECT clock_timestamp()", &server); err != nil {
		return err
	}
	if apart := max(before.Sub(server), server.Sub(in.Now())); apart > 5*time.Second {
		return fmt.Errorf("the clocks of the server and of this machine differ by %v: synchronize both by NTP", apart.Round(time.Second))
	}
	return nil
}
