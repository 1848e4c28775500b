// Package databases creates the databases and roles of an installation on a Postgres server. The package also makes the
// manifests of the Kubernetes Secrets with the URLs. The package grants no rights on tables: the migrations of the
// services do.
package databases

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
)

// Database is the database of one service, or the database of the API keys.
type Database struct {
	Name   string
	Secret string // the name of its Secret, after that of the release: entries-database
	Roles  []Role // the owner comes first
}

// Role is a role of a database that may log in. Each role has its own URL in the Secret of the database.
type Role struct {
	Name     string
	Variable string // the setting of its URL, and the key in the Secret
}

// All returns the databases of an installation. The names of all databases and roles begin with prefix, which may be
// empty.
func All(prefix string) []Database {
	var all []Database
	for _, service := range []string{"entries", "embeddables", "experiments", "region"} {
		name := prefix + service
		all = append(all, Database{name, service + "-database", []Role{
			{name + "_owner", "MIGRATE_DATABASE_URL"},
			{name + "_reader", "DATABASE_URL"},
			{name + "_ingest", "INGEST_DATABASE_URL"},
			{name + "_remover", "REMOVE_DATABASE_URL"},
		}})
	}
	name := prefix + "auth"
	return append(all, Database{name, "auth", []Role{
		{name + "_owner", "AUTH_MIGRATE_DATABASE_URL"},
		{name + "_reader", "AUTH_DATABASE_URL"},
		{name + "_admin", "AUTH_ADMIN_DATABASE_URL"},
	}})
}

// prefixes matches prefixes of names that SQL accepts without quotes. The maximum length leaves room for the longest
// role name.
var prefixes = regexp.MustCompile(`^([a-z][a-z0-9_]{0,30})?$`)

// SecretNames returns the names of the Secrets of a release, one for each database of [All].
func SecretNames(release string) []string {
	var names []string
	for _, d := range All("") {
		names = append(names, release+"-"+d.Secret)
	}
	return names
}

// Plan has the missing roles and databases of a server, as SQL that the administrator executes. The SQL contains no
// passwords, only their verifiers.
type Plan struct {
	Roles     []string // statements for one transaction
	Databases []string // statements after that, outside a transaction
	// Secrets have the URLs of all roles, with the passwords that apply after the statements were executed.
	Secrets Secrets
}

// Options are the settings of [New]: the release, the server, and the passwords to keep or replace.
type Options struct {
	// Release is the full name of the release, with which the names of its Secrets begin.
	Release string
	// Server is the URL of the server as pods reach it, with a host and parameters. The user and the database in this
	// URL are ignored.
	Server config.Secret
	// Prefix is the beginning of the names of databases and roles, for a second installation on a server. Empty: none.
	Prefix string
	// Known are the Secrets of an earlier run. The URLs in these Secrets stay as they are, except for the passwords
	// that New generates.
	Known Secrets
	// Rotate gives the roles that exist on the server new passwords.
	Rotate bool
}

// ErrUnknownPasswords is in the chain of [New]'s error if roles exist on the server, but their passwords are not in the
// known Secrets.
var ErrUnknownPasswords = errors.New("their passwords are not known")

// Connect connects to the server with the administrator's URL. The error for a malformed URL does not contain the
// URL, because of its password.
func Connect(ctx context.Context, admin config.Secret) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(admin.Reveal())
	if err != nil {
		return nil, errURL
	}
	cfg.RuntimeParams["application_name"] = "lectern databases"
	return pgx.ConnectConfig(ctx, cfg)
}

// errURL is the error for a malformed URL of the server. The error omits the URL, which may contain a password.
var errURL = errors.New("the server's URL cannot be read: want postgres://user:password@host:port/database?sslmode=…")

// instead is the advice at the end of an error about the server's URL: which flag gives another URL.
const instead = "give the server as pods reach it: --server 'postgres://db.example.com:5432?sslmode=require'"

// parseServer reads the URL of the server as pods reach it. A parameter such as user or password is an error, because
// it would apply to all roles.
func parseServer(text config.Secret) (*url.URL, error) {
	server, err := url.Parse(text.Reveal())
	if err != nil || server.Scheme != "postgres" && server.Scheme != "postgresql" {
		return nil, fmt.Errorf("%w; %s", errURL, instead)
	}
	if server.Hostname() == "" {
		return nil, errors.New("the server's URL has no host between // and /; " + instead)
	}
	for _, name := range []string{"user", "password", "dbname", "database", "passfile"} {
		if server.Query().Has(name) {
			return nil, fmt.Errorf("the server's URL has the parameter %s, which would apply to all roles; %s", name, instead)
		}
	}
	return server, nil
}

// New compares the server with the needs of an installation, and returns the plan of the missing parts. New changes
// nothing on the server. If passwords of existing roles are not known, the error has [ErrUnknownPasswords] in its chain.
func New(ctx context.Context, conn *pgx.Conn, o Options) (Plan, error) {
	server, err := parseServer(o.Server)
	if err != nil {
		return Plan{}, err
	}
	if !prefixes.MatchString(o.Prefix) {
		return Plan{}, fmt.Errorf("the prefix is %q; allowed: up to 31 lower-case letters, digits and _, a letter first, such as staging_", o.Prefix)
	}
	there, err := look(ctx, conn)
	if err != nil {
		return Plan{}, fmt.Errorf("read the roles and databases of the server: %w", err)
	}
	p := Plan{Secrets: Secrets{}}
	var unknown []string
	for _, d := range All(o.Prefix) {
		name := o.Release + "-" + d.Secret
		urls, changed := map[string]string{}, map[string]string{}
		for _, r := range d.Roles {
			password := passwordIn(o.Known[name][r.Variable])
			switch exists := slices.Contains(there.roles, r.Name); {
			case exists && o.Rotate, !exists && password == "":
				password = rand.Text()
				changed[r.Name] = password
			case password == "":
				unknown = append(unknown, r.Name)
			}
			u := url.URL{Scheme: server.Scheme, User: url.UserPassword(r.Name, password), Host: server.Host, Path: "/" + d.Name, RawQuery: server.RawQuery}
			urls[r.Variable] = u.String()
			if err := p.role(r, password, there, r == d.Roles[0], o.Rotate); err != nil {
				return Plan{}, err
			}
		}
		for key, value := range o.Known[name] {
			urls[key] = withPasswords(value, changed)
		}
		p.Secrets[name] = urls
		if err := p.database(d, there); err != nil {
			return Plan{}, err
		}
	}
	if len(unknown) > 0 {
		return Plan{}, fmt.Errorf("the roles %s exist, and %w", strings.Join(unknown, ", "), ErrUnknownPasswords)
	}
	return p, nil
}

// passwordIn returns the password in a URL of Postgres, or "" if there is none. The URL may name several hosts.
func passwordIn(text string) string {
	first, _, _ := strings.Cut(text, ",")
	u, err := url.Parse(first)
	if err != nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}

// withPasswords returns urls with new passwords for the roles in passwords. urls is a list of URLs separated by
// commas, or one URL of several hosts.
func withPasswords(urls string, passwords map[string]string) string {
	all := strings.Split(urls, ",")
	for i, text := range all {
		u, err := url.Parse(text)
		if err != nil || passwords[u.User.Username()] == "" {
			continue
		}
		u.User = url.UserPassword(u.User.Username(), passwords[u.User.Username()])
		all[i] = u.String()
	}
	return strings.Join(all, ",")
}

// role adds the statement that creates a missing role, or that gives an existing role a new password if rotate is set.
// A role other than the owner also gets a statement timeout, unless the role has one.
func (p *Plan) role(r Role, password string, there existing, owner, rotate bool) error {
	verb := "CREATE"
	exists := slices.Contains(there.roles, r.Name)
	if exists {
		verb = "ALTER"
	}
	if !exists || rotate {
		verifier, err := scramVerifier(password)
		if err != nil {
			return err
		}
		p.Roles = append(p.Roles, fmt.Sprintf("%s ROLE %s LOGIN PASSWORD '%s'", verb, r.Name, verifier))
	}
	if !owner && !slices.Contains(there.limited, r.Name) {
		p.Roles = append(p.Roles, fmt.Sprintf("ALTER ROLE %s SET statement_timeout = '%.0fs'", r.Name, migrate.RoleStatementTimeout.Seconds()))
	}
	return nil
}

// database adds the statements that create a missing database. Only a superuser or a member of the owner role may create a
// database for the owner. So any other administrator becomes a member until the database exists. An existing database of
// another role is an error.
func (p *Plan) database(d Database, there existing) error {
	owner := d.Roles[0].Name
	actual, exists := there.owners[d.Name]
	if exists && actual != owner {
		return fmt.Errorf("the database %s exists and belongs to %s: give --prefix or another server, or, if the database is Lectern's, ALTER DATABASE %[1]s OWNER TO %[3]s", d.Name, actual, owner)
	}
	if !exists {
		p.Databases = append(p.Databases, fmt.Sprintf("CREATE DATABASE %s OWNER %s", d.Name, owner))
	}
	if !exists && !there.superuser {
		p.Roles = append(p.Roles, "GRANT "+owner+" TO CURRENT_USER")
	}
	if !exists && !there.superuser || slices.Contains(there.memberships, owner) {
		p.Databases = append(p.Databases, "REVOKE "+owner+" FROM CURRENT_USER")
	}
	return nil
}

// existing has the roles and databases that a server has before the plan.
type existing struct {
	roles       []string
	limited     []string          // roles with a statement_timeout
	memberships []string          // roles that the administrator granted to itself
	owners      map[string]string // by database
	superuser   bool              // the administrator is one
}

func look(ctx context.Context, conn *pgx.Conn) (existing, error) {
	var e existing
	err := conn.QueryRow(ctx, `
		SELECT ARRAY(SELECT rolname::text FROM pg_roles),
		       ARRAY(SELECT rolname::text FROM pg_roles, unnest(rolconfig) AS setting WHERE setting LIKE 'statement\_timeout=%'),
		       ARRAY(SELECT pg_get_userbyid(roleid)::text FROM pg_auth_members WHERE member = me.oid AND grantor = me.oid),
		       (SELECT jsonb_object_agg(datname, pg_get_userbyid(datdba)) FROM pg_database),
		       me.rolsuper
		FROM pg_roles AS me WHERE rolname = current_user`).Scan(&e.roles, &e.limited, &e.memberships, &e.owners, &e.superuser)
	return e, err
}

// SQL returns all statements of the plan in their order, for a client such as psql.
func (p Plan) SQL() []string {
	if len(p.Roles) == 0 {
		return p.Databases
	}
	return slices.Concat([]string{"BEGIN"}, p.Roles, []string{"COMMIT"}, p.Databases)
}

// Apply executes the statements of the plan. Apply calls save before the roles are committed, and changes nothing if
// save fails. After an error, the administrator makes a new plan, which has the parts that are still missing.
func (p Plan) Apply(ctx context.Context, conn *pgx.Conn, save func() error) error {
	err := pgx.BeginFunc(ctx, conn, func(pgx.Tx) error {
		if err := execute(ctx, conn, p.Roles); err != nil {
			return err
		}
		return save()
	})
	if err != nil {
		return err
	}
	return execute(ctx, conn, p.Databases)
}

func execute(ctx context.Context, conn *pgx.Conn, statements []string) error {
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			what, _, _ := strings.Cut(s, " LOGIN PASSWORD")
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}
