// Package databases creates the databases and roles of an installation on a Postgres server, and the Secrets with
// their URLs. It grants no rights on tables: the services' migrations do.
package databases

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/pgmigrate"
)

// Database is the database of a service, or that of the keys.
type Database struct {
	Name   string
	Secret string // the name of its Secret, after that of the release: entries-database
	Roles  []Role // the owner comes first
}

// Role is a role of a database that may log in.
type Role struct {
	Name     string
	Variable string // the setting of its URL, and the key in the Secret
}

// All returns the databases of an installation.
func All() []Database {
	var all []Database
	for _, name := range []string{"entries", "embeddables", "experiments", "region"} {
		all = append(all, Database{name, name + "-database", []Role{
			{name + "_owner", "MIGRATE_DATABASE_URL"},
			{name + "_reader", "DATABASE_URL"},
			{name + "_ingest", "INGEST_DATABASE_URL"},
			{name + "_remover", "REMOVE_DATABASE_URL"},
		}})
	}
	return append(all, Database{"auth", "auth", []Role{
		{"auth_owner", "AUTH_MIGRATE_DATABASE_URL"},
		{"auth_reader", "AUTH_DATABASE_URL"},
		{"auth_admin", "AUTH_ADMIN_DATABASE_URL"},
	}})
}

// Plan has the missing roles and databases of a server.
type Plan struct {
	// Statements are SQL, to be executed in this order by the administrator, outside a transaction. They contain
	// passwords.
	Statements []string
	// Secrets have all URLs, with the passwords that apply after the statements.
	Secrets Secrets
}

// Options selects what a plan contains.
type Options struct {
	// Release is the full name of the release, with which the names of its Secrets begin.
	Release string
	// Server is the server as pods reach it, as a URL with a host and parameters. Its user and database are ignored.
	Server config.Secret
	// Known are the Secrets of an earlier run. Their URLs stay as they are.
	Known Secrets
	// Rotate gives existing roles new passwords.
	Rotate bool
}

// UnknownPasswordsError reports roles that exist, and whose passwords the known Secrets do not have.
type UnknownPasswordsError struct{ Roles []string }

// Error names the roles.
func (e *UnknownPasswordsError) Error() string {
	return "the roles " + strings.Join(e.Roles, ", ") + " exist, and their passwords are not known"
}

// Connect connects to the server as the administrator.
func Connect(ctx context.Context, admin config.Secret) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(admin.Reveal())
	if err != nil {
		return nil, errURL
	}
	cfg.RuntimeParams["application_name"] = "lectern databases"
	return pgx.ConnectConfig(ctx, cfg)
}

// errURL omits the URL, which may contain a password.
var errURL = errors.New("the server's URL cannot be read: want postgres://user:password@host:port/database?sslmode=…")

// New compares the server with what an installation needs. It changes nothing.
func New(ctx context.Context, conn *pgx.Conn, o Options) (Plan, error) {
	server, err := url.Parse(o.Server.Reveal())
	if err != nil || server.Scheme != "postgres" && server.Scheme != "postgresql" {
		return Plan{}, errURL
	}
	there, err := look(ctx, conn)
	if err != nil {
		return Plan{}, fmt.Errorf("read the roles and databases of the server: %w", err)
	}
	p := Plan{Secrets: Secrets{}}
	var unknown []string
	for _, d := range All() {
		name := o.Release + "-" + d.Secret
		urls, changed := map[string]string{}, map[string]string{}
		for _, r := range d.Roles {
			password := passwordIn(o.Known[name][r.Variable])
			switch exists := there.roles[r.Name]; {
			case exists && o.Rotate, !exists && password == "":
				password = rand.Text()
				changed[r.Name] = password
			case password == "":
				unknown = append(unknown, r.Name)
			}
			u := url.URL{Scheme: server.Scheme, User: url.UserPassword(r.Name, password), Host: server.Host, Path: "/" + d.Name, RawQuery: server.RawQuery}
			urls[r.Variable] = u.String()
			if err := p.role(conn, r, password, there, r == d.Roles[0], o.Rotate); err != nil {
				return Plan{}, err
			}
		}
		for key, value := range o.Known[name] {
			urls[key] = withPasswords(value, changed)
		}
		p.Secrets[name] = urls
		if !there.databases[d.Name] {
			p.database(d, there.superuser)
		}
	}
	if len(unknown) > 0 {
		return Plan{}, &UnknownPasswordsError{unknown}
	}
	return p, nil
}

// passwordIn returns the password in a URL, which may have several hosts, or "".
func passwordIn(text string) string {
	first, _, _ := strings.Cut(text, ",")
	u, err := url.Parse(first)
	if err != nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}

// withPasswords returns comma-separated URLs, or a URL of several hosts, with the new passwords of some roles.
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

// role adds the statements for a role.
func (p *Plan) role(conn *pgx.Conn, r Role, password string, there existing, owner, rotate bool) error {
	exists := there.roles[r.Name]
	if exists && !rotate {
		return nil
	}
	verb := "CREATE"
	if exists {
		verb = "ALTER"
	}
	escaped, err := conn.PgConn().EscapeString(password)
	if err != nil {
		return fmt.Errorf("the password of %s: %w", r.Name, err)
	}
	p.Statements = append(p.Statements, fmt.Sprintf("%s ROLE %s LOGIN PASSWORD '%s'", verb, r.Name, escaped))
	if !exists && !owner {
		p.Statements = append(p.Statements, fmt.Sprintf("ALTER ROLE %s SET statement_timeout = '%.0fs'", r.Name, pgmigrate.RoleStatementTimeout.Seconds()))
	}
	return nil
}

// database adds the statements for a database. Only a superuser and the members of a role may create a database for it.
func (p *Plan) database(d Database, superuser bool) {
	owner := d.Roles[0].Name
	create := fmt.Sprintf("CREATE DATABASE %s OWNER %s", d.Name, owner)
	if superuser {
		p.Statements = append(p.Statements, create)
		return
	}
	p.Statements = append(p.Statements, "GRANT "+owner+" TO CURRENT_USER", create, "REVOKE "+owner+" FROM CURRENT_USER")
}

// existing has the roles and databases of a server.
type existing struct {
	roles, databases map[string]bool
	superuser        bool // the administrator is one
}

func look(ctx context.Context, conn *pgx.Conn) (existing, error) {
	var e existing
	var roles, names []string
	err := conn.QueryRow(ctx, `
		SELECT ARRAY(SELECT rolname::text FROM pg_roles), ARRAY(SELECT datname::text FROM pg_database),
		       (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)`).Scan(&roles, &names, &e.superuser)
	e.roles, e.databases = set(roles), set(names)
	return e, err
}

func set(names []string) map[string]bool {
	s := map[string]bool{}
	for _, name := range names {
		s[name] = true
	}
	return s
}

// Apply executes the statements. After an error, a new plan has what is still missing.
func (p Plan) Apply(ctx context.Context, conn *pgx.Conn) error {
	for _, s := range p.Statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			what, _, _ := strings.Cut(s, " LOGIN PASSWORD")
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}
