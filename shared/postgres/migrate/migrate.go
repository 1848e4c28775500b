// Package migrate owns the schema of a service in its database. The package runs numbered SQL migrations, and grants
// the roles that read and write the privileges that they need.
//
// A migration is never undone, and works with the code of the version before. The package must connect to the server
// itself, not through PgBouncer in transaction mode.
package migrate

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"

	"github.com/lectern-dev/lectern/shared/config"
)

// Role is a role of a service in its database, to which [Up] grants privileges. The owner, which migrates, is not a
// Role.
type Role string

// The roles of all services. A service's [Schema] grants privileges only to the roles that the service has.
const (
	Reader  Role = "reader"  // serves the public operations
	Ingest  Role = "ingest"  // stores incoming data
	Remover Role = "remover" // removes data
	Admin   Role = "admin"   // administers the keys
)

// RoleStatementTimeout is the statement_timeout that [Up] gives to login roles that have none. The time-out applies to
// connections that set no statement_timeout themselves: through poolers and by hand.
const RoleStatementTimeout = time.Minute

// lockTimeout is how long [Up] waits while another process migrates, or reads a table that a migration changes. To build an
// index on a large table takes long.
const lockTimeout = 30 * time.Minute

// While a migration waits for a table, all later queries on the table wait for the migration. A backup may hold the table
// for hours. So a migration gives up after tableWait, which is over the deadlock_timeout after which Postgres cancels an
// autovacuum. The pause before the next attempt doubles up to longestPause.
const (
	tableWait    = 2 * time.Second
	longestPause = 30 * time.Second
)

// lostAfter is how long a connection may be idle, longer than any pause of a migration.
const lostAfter = 5 * time.Minute

// lockPause is the shortest time between two attempts to get the lock. The longest time is twice lockPause.
const lockPause = 50 * time.Millisecond

// Schema describes a service's tables and the roles that may use them.
type Schema struct {
	// Name is the service's name in lower case. The names of the lock and of the table that records the migrations
	// contain Name. Several schemas may share a database.
	Name string

	// Migrations holds numbered SQL files in goose's format (0100_initial.sql), forward only. A file that was released
	// never changes: Up refuses a database to which other content of a file was applied. A file without a transaction
	// begins with SET lock_timeout = 0 and ends with RESET lock_timeout, because Up cannot repeat a part of it.
	Migrations fs.FS

	// Grants lists each role's privileges on tables, as written between GRANT and TO: "SELECT ON entries, events". A
	// privilege that is no longer listed is revoked. During an upgrade, code of the version before still runs and may
	// start again. So keep a privilege in the list for one version after its last use, and add one with a migration, if
	// only an empty one.
	Grants map[Role][]string
}

// Files returns the folder migrations of embedded, for [Schema.Migrations]. Files panics if there is no such folder.
func Files(embedded embed.FS) fs.FS {
	files, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err)
	}
	return files
}

// Table returns the name of the table that records the migrations. A database without this table was never migrated for
// s.
func (s Schema) Table() string { return s.Name + "_migrations" }

// Up runs the pending migrations of s in the database of owner and grants the roles their privileges. roles has the
// login role of each Role. A login role that is missing, empty or the owner gets no privileges. Up revokes the login
// roles' other privileges on the tables in s.Grants, unless a later version has migrated the database. Up also gives
// login roles without a statement_timeout that of [RoleStatementTimeout], if the owner may set it. Up may run at every
// start, in several processes at the same time, and while code of the version before runs. Up also waits for a backup, and
// lets other queries pass meanwhile.
func Up(ctx context.Context, owner config.ServerURL, s Schema, roles map[Role]string, log *slog.Logger) error {
	cfg, err := pgx.ParseConfig(owner.Reveal())
	if err != nil {
		return errBadURL
	}
	// The role may have a statement_timeout that is meant for requests.
	cfg.RuntimeParams["statement_timeout"] = "0"
	cfg.RuntimeParams["application_name"] = s.Name + " migrate"
	// So the locks of a process whose machine is gone are free after a while.
	cfg.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt(lostAfter.Milliseconds(), 10)
	cfg.RuntimeParams["idle_session_timeout"] = strconv.FormatInt(lostAfter.Milliseconds(), 10)
	newest, err := migrateUp(ctx, cfg, owner, s, log)
	if err != nil {
		return fmt.Errorf("migrate %s: %w", s.Name, err)
	}
	if err := grant(ctx, cfg, owner, s, roles, newest); err != nil {
		return fmt.Errorf("grant on %s: %w", s.Name, err)
	}
	return nil
}

// migrateUp runs the pending migrations. newest is false if a later version has migrated the database already.
func migrateUp(ctx context.Context, cfg *pgx.ConnConfig, owner config.ServerURL, s Schema, log *slog.Logger) (newest bool, err error) {
	cfg = cfg.Copy()
	cfg.RuntimeParams["lock_timeout"] = strconv.FormatInt(tableWait.Milliseconds(), 10)
	db := stdlib.OpenDB(*cfg, stdlib.OptionBeforeConnect(passwordOf(owner)))
	defer func() { err = errors.Join(err, db.Close()) }()
	sources, err := s.sources()
	if err != nil {
		return false, err
	}
	store, err := database.NewStore(database.DialectPostgres, s.Table())
	if err != nil {
		return false, err
	}
	provider, err := goose.NewProvider(goose.DialectCustom, db, s.Migrations,
		goose.WithStore(recorder{store, sources}),
		goose.WithSessionLocker(sessionLock(lockID(s.Name+" migrations"))),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return false, err
	}
	if err := s.check(ctx, db, sources); err != nil {
		return false, err
	}
	err = upUnlessBusy(ctx, provider, s, log)
	partial, failed := errors.AsType[*goose.PartialError](err)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == duplicateTable &&
		failed && partial.Failed.Source.Version == provider.ListSources()[0].Version {
		return false, fmt.Errorf("%s, and no migration of this program is recorded: %w", pg.Message, ErrEarlierBuild)
	}
	if err != nil {
		return false, err
	}
	current, target, err := provider.GetVersions(ctx)
	return current <= target, err
}

// upUnlessBusy runs the pending migrations. While other queries hold a table that a migration changes, upUnlessBusy tries again,
// for lockTimeout at most.
func upUnlessBusy(ctx context.Context, provider *goose.Provider, s Schema, log *slog.Logger) error {
	last := time.Now().Add(lockTimeout)
	for pause := time.Second; ; pause = min(2*pause, longestPause) {
		done, err := provider.Up(ctx)
		if partial, ok := errors.AsType[*goose.PartialError](err); ok {
			done = partial.Applied
		}
		for _, r := range done {
			log.InfoContext(ctx, "migrated", slog.String("schema", s.Name),
				slog.Int64("version", r.Source.Version), slog.Duration("took", r.Duration))
		}
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != lockNotAvailable || time.Now().After(last) {
			return err
		}
		log.WarnContext(ctx, "a migration waits for a table that another query uses, such as a backup; other queries go on", slog.String("schema", s.Name))
		select {
		case <-time.After(pause + rand.N(pause)):
		case <-ctx.Done():
			return fmt.Errorf("wait for a table: %w", ctx.Err())
		}
	}
}

// passwordOf returns a function that reads the password of a new connection from its file, if there is one. A migration
// may outlast a password.
func passwordOf(owner config.ServerURL) func(context.Context, *pgx.ConnConfig) error {
	return func(_ context.Context, cfg *pgx.ConnConfig) (err error) {
		if owner.HasPasswordFile() {
			cfg.Password, err = owner.Password()
		}
		return err
	}
}

// The SQLSTATEs of the errors that a table exists already, that a table does not exist, and that lock_timeout has passed.
const (
	duplicateTable   = "42P07"
	undefinedTable   = "42P01"
	lockNotAvailable = "55P03"
)

// grant gives the roles the privileges that s lists and, if newest, revokes all other privileges. All statements are
// one transaction, so that no session sees the time between. A lock lets one process grant at a time, because two
// concurrent grants on the same table fail.
func grant(ctx context.Context, cfg *pgx.ConnConfig, owner config.ServerURL, s Schema, roles map[Role]string, newest bool) error {
	if err := passwordOf(owner)(ctx, cfg); err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockID(s.Name+" grants")); err != nil {
			return err
		}
		logins := map[Role]string{}
		for role := range s.Grants {
			if login := roles[role]; login != "" && login != cfg.User {
				logins[role] = login
			}
		}
		if newest {
			// Two roles may have the same login, so all is revoked before anything is granted.
			for _, login := range logins {
				if _, err := tx.Exec(ctx, "REVOKE ALL ON "+strings.Join(s.tables(), ", ")+" FROM "+pgx.Identifier{login}.Sanitize()); err != nil {
					return fmt.Errorf("from the role %s: %w", login, err)
				}
			}
		}
		for _, role := range slices.Sorted(maps.Keys(logins)) {
			login := logins[role]
			for _, g := range s.Grants[role] {
				if _, err := tx.Exec(ctx, "GRANT "+g+" TO "+pgx.Identifier{login}.Sanitize()); err != nil {
					return fmt.Errorf("to the role %s: %w", login, err)
				}
			}
			if err := limitRole(ctx, tx, login); err != nil {
				return fmt.Errorf("limit the role %s: %w", login, err)
			}
		}
		return nil
	})
}

// tables returns the names of the tables on which s grants privileges, sorted.
func (s Schema) tables() []string {
	all := map[string]bool{}
	for _, grants := range s.Grants {
		for _, g := range grants {
			_, tables, _ := strings.Cut(g, " ON ")
			for table := range strings.SplitSeq(tables, ",") {
				all[strings.TrimSpace(table)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// limitRole sets the login role's statement_timeout in this database to RoleStatementTimeout. limitRole changes nothing
// if the role has a statement_timeout, or if the owner may not set it.
func limitRole(ctx context.Context, tx pgx.Tx, login string) error {
	var db string
	var limited bool
	err := tx.QueryRow(ctx, `
		SELECT current_database(), EXISTS (
			SELECT FROM pg_db_role_setting s
			CROSS JOIN unnest(s.setconfig) AS setting
			WHERE s.setrole = (SELECT oid FROM pg_roles WHERE rolname = $1)
			AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
			AND setting LIKE 'statement_timeout=%')`, login).Scan(&db, &limited)
	if err != nil || limited {
		return err
	}
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "ALTER ROLE "+pgx.Identifier{login}.Sanitize()+" IN DATABASE "+pgx.Identifier{db}.Sanitize()+
			" SET statement_timeout = "+strconv.FormatInt(RoleStatementTimeout.Milliseconds(), 10))
		return err
	})
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" { // insufficient_privilege
		return nil
	}
	return err
}

// sessionLock is the key of the advisory lock that a migration holds. goose's own locker asks for the lock at most once
// a second. So of a hundred replicas that start at the same time, the last would wait for minutes.
type sessionLock int64

var _ lock.SessionLocker = sessionLock(0)

// SessionLock waits until this process holds the lock. The error reports that lockTimeout has passed, that ctx has
// ended, or that the connection failed.
func (l sessionLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	for {
		// Poll the lock, do not block on it. CREATE INDEX CONCURRENTLY waits for every transaction. A transaction
		// that waits for this lock would wait for the index, and neither would end.
		var locked bool
		err := conn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1)`, int64(l)).Scan(&locked)
		if err != nil || locked {
			return err
		}
		pause := time.NewTimer(lockPause + rand.N(lockPause))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("wait for another migration: %w", ctx.Err())
		}
	}
}

// SessionUnlock releases the advisory lock that SessionLock got on the same connection.
func (l sessionLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, `SELECT pg_advisory_unlock($1)`, int64(l))
	return err
}

// lockID returns the key of the advisory lock with the name what: a hash of the name.
func lockID(what string) int64 {
	h := fnv.New64a()
	h.Write([]byte("lectern " + what))
	return int64(h.Sum64())
}

// UserOf returns the login role in the database URL url, or "" if url is empty or cannot be parsed.
func UserOf(url string) string {
	if url == "" {
		return ""
	}
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return ""
	}
	return cfg.User
}

// errBadURL is the error of [Up] for an owner's URL that cannot be parsed. The text has no URL, because the part that
// cannot be read may be the password.
var errBadURL = errors.New("the owner's database URL cannot be read: want postgres://user:password@host:port/database?sslmode=…")
