package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
)

// DB is a test's own database, with a URL for each role of its schema. The roles have only the rights that the schema
// grants, as in production.
type DB struct {
	Name       string
	OwnerURL   string
	ReaderURL  string
	IngestURL  string
	RemoverURL string
	AdminURL   string
	Owner      *pgxpool.Pool // of OwnerURL; closed when the test ends
}

// Database returns a database of t's own on this server, migrated to s. It is dropped when t ends, unless the server is a
// private one, which is removed with all its data.
//
// This is not pgtestdb, which gives a test only one role, the owner, and keeps its templates. Here five roles share
// the clone, and the grants come with the template.
func (i *Instance) Database(t testing.TB, s migrate.Schema) DB {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	template, err := i.template(ctx, s)
	if err != nil {
		t.Fatalf("pgtest: make the template of %s: %v", s.Name, err)
	}
	name := "t_" + s.Name + "_" + random()
	// Register this before the creation, which may fail after it has created the database on some nodes.
	t.Cleanup(func() {
		if i.disposable || i.Server != nil {
			return // the data is removed with the server
		}
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		if err := i.drop(ctx, name); err != nil {
			t.Errorf("pgtest: drop %s: %v", name, err)
		}
	})
	create := "CREATE DATABASE " + quote(name) + " TEMPLATE " + quote(template) + " OWNER " + quote(s.Name+"_owner")
	if i.Server != nil {
		// To copy files takes a third of the processor time that Postgres' default takes, which logs each page. On a server
		// that others write to, it waits for a checkpoint of all that they wrote.
		create += " STRATEGY FILE_COPY"
	}
	err = i.each(ctx, plainDatabase, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, create)
		return err
	})
	if err != nil {
		t.Fatalf("pgtest: clone %s: %v", template, err)
	}
	owner, err := pgxpool.New(ctx, i.roleURL(s.Name+"_owner", name)) // connects with its first statement
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(owner.Close)
	return DB{
		Owner:      owner,
		Name:       name,
		OwnerURL:   i.roleURL(s.Name+"_owner", name),
		ReaderURL:  i.roleURL(s.Name+"_reader", name),
		IngestURL:  i.roleURL(s.Name+"_ingest", name),
		RemoverURL: i.roleURL(s.Name+"_remover", name),
		AdminURL:   i.roleURL(s.Name+"_admin", name),
	}
}

func (i *Instance) drop(ctx context.Context, name string) error {
	if i.Citus() {
		// Otherwise the nodes would connect to each other again during the removal.
		if err := i.seal(ctx, name); err != nil {
			return err
		}
	}
	return i.each(ctx, plainDatabase, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)")
		return err
	})
}

// roleURL returns the admin's URL with another role and database. Roles have their name as password, which TCP
// requires. There is nothing to protect.
func (i *Instance) roleURL(role, db string) string {
	u, err := url.Parse(i.admin)
	if err != nil {
		return "" // not reached: the admin's connection uses the same URL
	}
	u.User = url.UserPassword(role, role)
	u.Path = "/" + db
	return u.String()
}

// TCPURL returns a URL of a [DB] with a TCP address. It returns "" if the server has no TCP port.
func (i *Instance) TCPURL(of string) string {
	if i.Server == nil {
		return of
	}
	u, err := url.Parse(of)
	if err != nil || i.Port() == 0 {
		return ""
	}
	u.Host = fmt.Sprintf("127.0.0.1:%d", i.Port())
	u.RawQuery = "sslmode=disable"
	return u.String()
}

// template returns the name of a database that is migrated to s and has no connections.
func (i *Instance) template(ctx context.Context, s migrate.Schema) (string, error) {
	digest, err := fingerprint(s)
	if err != nil {
		return "", err
	}
	name := i.prefix + "template_" + s.Name + "_" + digest
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.templates[name] != "" {
		return name, nil
	}
	err = i.connect(ctx, "", func(conn *pgx.Conn) error {
		// Other test binaries may use the same server, if it is not a private one.
		if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(hashtext('lectern pgtest'))`); err != nil {
			return err
		}
		err := i.each(ctx, plainDatabase, func(conn *pgx.Conn) error {
			for _, role := range []string{"owner", "reader", "ingest", "remover", "admin"} {
				if err := makeRole(ctx, conn, s.Name+"_"+role); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		var there bool
		err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND NOT datallowconn)`, name).Scan(&there)
		if err != nil || there {
			return err
		}
		if err := i.drop(ctx, name); err != nil { // removes an incomplete template
			return err
		}
		err = i.each(ctx, plainDatabase, func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "CREATE DATABASE "+quote(name)+" OWNER "+quote(s.Name+"_owner"))
			return err
		})
		if err == nil && i.Citus() {
			err = i.join(ctx, name)
		}
		if err != nil {
			return err
		}
		err = migrate.Up(ctx, config.NewServerURL(i.roleURL(s.Name+"_owner", name)), s, roles(s), slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		if i.Citus() {
			return i.seal(ctx, name)
		}
		_, err = conn.Exec(ctx, "ALTER DATABASE "+quote(name)+" ALLOW_CONNECTIONS false")
		return err
	})
	if err != nil {
		return "", err
	}
	i.templates[name] = name
	return name, nil
}

// roles returns the login role of each role of s.
func roles(s migrate.Schema) map[migrate.Role]string {
	return map[migrate.Role]string{
		migrate.Reader: s.Name + "_reader", migrate.Ingest: s.Name + "_ingest",
		migrate.Remover: s.Name + "_remover", migrate.Admin: s.Name + "_admin",
	}
}

func makeRole(ctx context.Context, conn *pgx.Conn, name string) error {
	var there bool
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`, name).Scan(&there)
	if err != nil || there {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE ROLE "+quote(name)+" LOGIN PASSWORD '"+strings.ReplaceAll(name, "'", "''")+"'")
	return err
}

// fingerprint identifies a schema by everything that [migrate.Up] does with it.
func fingerprint(s migrate.Schema) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(s.Migrations, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(s.Migrations, path)
		fmt.Fprintf(h, "%q %q\n", path, b)
		return err
	})
	for _, role := range slices.Sorted(maps.Keys(s.Grants)) {
		fmt.Fprintf(h, "%q %q\n", role, s.Grants[role])
	}
	return hex.EncodeToString(h.Sum(nil)[:6]), err
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func random() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}
