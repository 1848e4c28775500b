package operate_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/databases"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	embeddables "github.com/lectern-dev/lectern/services/embeddables/app"
	entries "github.com/lectern-dev/lectern/services/entries/app"
	experiments "github.com/lectern-dev/lectern/services/experiments/app"
	region "github.com/lectern-dev/lectern/services/region/app"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/pglocal"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/golden"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// TestDatabases makes an installation's databases on a server of its own, by the printed SQL and by --apply. The
// services migrate and run with the Secrets, and each role has only its rights.
func TestDatabases(t *testing.T) {
	t.Parallel()
	server, admin := managedPostgres(t)
	t.Run("refusals", func(t *testing.T) { testRefusals(t, admin) })
	file := filepath.Join(t.TempDir(), "secrets.yaml")
	environ := map[string]string{"LECTERN_ADMIN_DATABASE_URL": admin}
	run := func(args ...string) string {
		t.Helper()
		r := clitest.Run(t, "", environ, append([]string{"databases", "--secrets", file}, args...)...)
		if r.Code != shell.ExitOK {
			t.Fatalf("%q: %+v", args, r)
		}
		return r.Out
	}

	// A chart's test compares these Secrets with what its pods read.
	run("--server", "postgres://ignored@db.databases:5432/ignored?sslmode=require")
	golden.Check(t, "../databases/testdata/secrets.yaml", regexp.MustCompile(`[A-Z2-7]{26}`).ReplaceAllString(clitest.Text(t, file), "PASSWORD"))

	// The server is another one now, so the file is too.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	printed := run()
	first := secretsOf(t, file)
	if run(); !gocmp.Equal(first, secretsOf(t, file)) {
		t.Error("a second run before the SQL was executed has other passwords")
	}
	if n, all := strings.Count(printed, "PASSWORD 'SCRAM-SHA-256$4096:"), strings.Count(printed, "PASSWORD"); n != 19 || all != 19 {
		t.Errorf("%d verifiers for %d passwords; want 19:\n%s", n, all, printed)
	}
	execute(t, admin, strings.Split(strings.TrimSpace(printed), ";\n")...)
	asKubectlPrints(t, file, first)
	if again := run("--apply"); again != "" || run() != "" || !gocmp.Equal(first, secretsOf(t, file)) {
		t.Errorf("a second run prints %q, or changes the Secrets", again)
	}
	execute(t, admin, "ALTER ROLE entries_reader RESET statement_timeout", "GRANT entries_owner TO CURRENT_USER")
	if d := gocmp.Diff("BEGIN;\nALTER ROLE entries_reader SET statement_timeout = '60s';\nCOMMIT;\nREVOKE entries_owner FROM CURRENT_USER;\n", run()); d != "" {
		t.Errorf("after an interrupted run (-want +got):\n%s", d)
	}
	if run("--apply"); run() != "" {
		t.Error("a run after an interrupted one left something")
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v", info.Mode(), err)
	}

	t.Run("entries", func(t *testing.T) {
		serveFrom(t, first, "entries", func(c *entries.Config) *service.Config { return &c.Config }, entries.Run, entries.Migrate)
	})
	t.Run("embeddables", func(t *testing.T) {
		serveFrom(t, first, "embeddables", func(c *embeddables.Config) *service.Config { return &c.Config }, embeddables.Run, embeddables.Migrate)
	})
	t.Run("experiments", func(t *testing.T) {
		serveFrom(t, first, "experiments", func(c *experiments.Config) *service.Config { return &c.Config }, experiments.Run, experiments.Migrate)
	})
	t.Run("region", func(t *testing.T) {
		serveFrom(t, first, "region", func(c *region.Config) *service.Config { return &c.Config }, region.Run, region.Migrate)
	})
	t.Run("least rights", func(t *testing.T) { testLeastRights(t, first) })
	t.Run("checks", func(t *testing.T) {
		if out := clitest.Run(t, "", nil, "check", "--pre", "--secrets", file, "--timeout", "5m").Out; !strings.Contains(out, `{"check":"postgres","outcome":"ok"`) {
			t.Errorf("not all is ok:\n%s", out)
		}
		// Each URL is checked: a server that is away fails for each.
		away, unreachable := databases.Secrets{}, filepath.Join(t.TempDir(), "away.yaml")
		for name, keys := range first {
			away[name] = maps.Clone(keys)
			for variable, text := range keys {
				u, err := url.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				u.Host = "127.0.0.1:1"
				away[name][variable] = u.String()
			}
		}
		asKubectlPrints(t, unreachable, away)
		out := clitest.Run(t, "", nil, "check", "--pre", "--secrets", unreachable).Out
		if n := strings.Count(out, `{"check":"postgres","outcome":"failed"`); n < 19 {
			t.Errorf("%d checks failed; want at least 19:\n%s", n, out)
		}
	})

	t.Run("the file is lost", func(t *testing.T) {
		r := clitest.Run(t, "", environ, "databases", "--secrets", filepath.Join(t.TempDir(), "new.yaml"), "--apply")
		if r.Code != shell.ExitFailure || !strings.Contains(r.Err, "the roles entries_owner, entries_reader, ") ||
			!strings.Contains(r.Err, "give this one a --prefix, such as staging_; if they are of this one, check --release, and get its Secrets from the cluster: (umask 077; kubectl -n NAMESPACE get secret lectern-entries-database ") || strings.Contains(r.Err, "--rotate") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a second installation", func(t *testing.T) {
		second := filepath.Join(t.TempDir(), "staging.yaml")
		if r := clitest.Run(t, "", environ, "databases", "--secrets", second, "--prefix", "staging_", "--apply"); r.Code != shell.ExitOK {
			t.Fatalf("%+v", r)
		}
		for name, keys := range secretsOf(t, second) {
			for variable, u := range keys {
				if !strings.Contains(u, "//staging_") || !strings.Contains(u, "/staging_") {
					t.Errorf("%s of %s is not of the second installation", variable, name)
				}
				execute(t, u, "SELECT 1")
				execute(t, first[name][variable], "SELECT 1")
			}
		}
		r := clitest.Run(t, "", environ, "databases", "--secrets", second, "--server", "postgres.databases", "--prefix", "staging_")
		if r.Code != shell.ExitFailure || !strings.Contains(r.Err, "--server 'postgres://db.example.com:5432") {
			t.Errorf("a server without a scheme: %+v", r)
		}
		r = clitest.Run(t, "", environ, "databases", "--secrets", second, "--prefix", "a-b")
		if r.Code != shell.ExitFailure || !strings.Contains(r.Err, `the prefix is "a-b"; allowed:`) {
			t.Errorf("a prefix that needs quotes: %+v", r)
		}
	})
	t.Run("a rotation fails", func(t *testing.T) {
		execute(t, server.AdminURL(), "ALTER ROLE auth_admin SUPERUSER")
		r := clitest.Run(t, "", environ, "databases", "--secrets", file, "--rotate", "--apply")
		if r.Code != shell.ExitFailure || !strings.Contains(r.Err, "lectern: ALTER ROLE auth_admin: ") || !strings.Contains(r.Err, "give --rotate again") {
			t.Errorf("%+v", r)
		}
		if !gocmp.Equal(first, secretsOf(t, file)) {
			t.Error("the file has other passwords")
		}
		execute(t, first["lectern-entries-database"]["DATABASE_URL"], "SELECT 1")
		execute(t, server.AdminURL(), "ALTER ROLE auth_admin NOSUPERUSER")
	})
	t.Run("a database is lost", func(t *testing.T) {
		environ["LECTERN_ADMIN_DATABASE_URL"] = server.TCPURL(pglocal.Superuser, "postgres")
		for _, statement := range []string{"DROP DATABASE region WITH (FORCE)", "DROP ROLE region_owner, region_reader, region_ingest, region_remover"} {
			execute(t, environ["LECTERN_ADMIN_DATABASE_URL"], statement)
		}
		run("--apply")
		execute(t, first["lectern-region-database"]["DATABASE_URL"], "SELECT 1")
	})
	t.Run("rotate", func(t *testing.T) {
		if r := clitest.Run(t, "", environ, "databases", "--secrets", filepath.Join(t.TempDir(), "new.yaml"), "--rotate"); r.Code != shell.ExitOK || !strings.Contains(r.Err, "new.yaml fits only these") {
			t.Errorf("%+v", r)
		}
		run("--rotate", "--apply")
		for name, keys := range secretsOf(t, file) {
			for variable, urls := range keys {
				for i, u := range strings.Split(urls, ",") {
					if _, err := pgx.Connect(t.Context(), strings.Split(first[name][variable], ",")[i]); err == nil {
						t.Errorf("%s of %s is accepted with the old password", variable, name)
					}
					execute(t, u, "SELECT 1")
				}
			}
		}
	})
}

// testRefusals gives the command what it must not replace, copy or take over.
func testRefusals(t *testing.T, admin string) {
	const other = "apiVersion: v1\nkind: List\nitems:\n- {kind: Secret, metadata: {name: lectern-auth}}\n- {kind: Secret, metadata: {name: lectern-keys}}\n"
	execute(t, admin, "CREATE DATABASE auth")
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	hostless := *u
	hostless.Host, hostless.RawQuery = "", "host=127.0.0.1&port="+u.Port()
	u.User, u.RawQuery = url.User("manager"), "password=it%27s"
	for _, tt := range []struct{ name, text, admin, want string }{
		{"a Secret of something else", other, "", `the Secret "lectern-keys" is none of the release's Secrets; the file would be replaced`},
		{"an object of another kind", "kind: ConfigMap\nmetadata: {name: lectern-auth}\n", "", `the ConfigMap "lectern-auth" is none`},
		{"no objects", "publicUrl: https://lectern.example.com\n", "", `the object "" is none`},
		{"a password as a parameter", "", u.String(), "has the parameter password, which would apply to all roles; give the server as pods reach it: --server"},
		{"no host", "", hostless.String(), "no host between // and /; give the server as pods reach it: --server"},
		{"a database of another owner", "", "", "the database auth exists and belongs to manager: give --prefix or another server, or"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := clitest.File(t, "secrets.yaml", tt.text)
			r := clitest.Run(t, "", map[string]string{"LECTERN_ADMIN_DATABASE_URL": cmp.Or(tt.admin, admin)}, "databases", "--secrets", file, "--apply")
			if r.Code != shell.ExitFailure || !strings.Contains(r.Err, tt.want) {
				t.Errorf("%+v", r)
			}
			if clitest.Text(t, file) != tt.text {
				t.Error("the file was changed")
			}
		})
	}
	execute(t, admin, "DROP DATABASE auth") // and no role exists, as the first run shows
}

// managedPostgres starts a Postgres for the test. It returns the server, and the URL of an administrator that is not a
// superuser.
func managedPostgres(t *testing.T) (server *pglocal.Server, admin string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "postgres")
	server, err := pglocal.Start(t.Context(), pglocal.Options{Dir: folder, Port: needs.Port(t), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmp.Or(server.Stop(context.Background()), pglocal.Remove(folder)); err != nil {
			t.Error(err)
		}
	})
	execute(t, server.AdminURL(), "CREATE ROLE manager LOGIN CREATEROLE CREATEDB PASSWORD 'it''s'")
	u, err := url.Parse(server.TCPURL("manager", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("manager", "it's")
	return server, u.String()
}

func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	if err := tryExecute(t, url, statements...); err != nil {
		t.Fatal(err)
	}
}

func tryExecute(t *testing.T, url string, statements ...string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func secretsOf(t *testing.T, file string) databases.Secrets {
	t.Helper()
	secrets, err := databases.ReadSecrets([]byte(clitest.Text(t, file)), "lectern")
	if err != nil {
		t.Fatal(err)
	}
	if len(secrets) != 5 {
		t.Fatalf("%d Secrets; want 5", len(secrets))
	}
	return secrets
}

// asKubectlPrints writes the Secrets as kubectl get prints them. One has a key more.
func asKubectlPrints(t *testing.T, file string, secrets databases.Secrets) {
	t.Helper()
	reader := secrets["lectern-entries-database"]["DATABASE_URL"]
	secrets["lectern-entries-database"]["READ_DATABASE_URL"] = reader + "," + reader
	text := "apiVersion: v1\nkind: List\nitems:\n"
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		text += fmt.Sprintf("- apiVersion: v1\n  kind: Secret\n  metadata: {name: %s, resourceVersion: \"7\"}\n  type: Opaque\n  data:\n", name)
		for key, value := range secrets[name] {
			text += fmt.Sprintf("    %s: %s\n", key, base64.StdEncoding.EncodeToString([]byte(value)))
		}
	}
	clitest.Write(t, file, text)
}

// serveFrom migrates and runs a service with the URLs of the Secrets, until it is ready. It then needs its own tables and
// those of the keys.
func serveFrom[C any](t *testing.T, secrets databases.Secrets, name string, common func(*C) *service.Config, run, migrate func(context.Context, C) error) {
	t.Helper()
	environ := map[string]string{"LISTEN_PUBLIC": "127.0.0.1:0", "LISTEN_INTERNAL": "127.0.0.1:0", "DRAIN_DELAY": "0s", "INGEST_API_KEYS": strings.Repeat("k", 20)}
	maps.Copy(environ, secrets["lectern-"+name+"-database"])
	delete(environ, "READ_DATABASE_URL")
	maps.Copy(environ, secrets["lectern-auth"])
	var cfg C
	if err := config.Load(&cfg, environ); err != nil {
		t.Fatal(err)
	}
	c := common(&cfg)
	c.LogOutput = io.Discard
	listening := make(chan string, 1)
	c.HTTP.Ready = func(_, internal net.Addr) { listening <- internal.String() }
	if err := migrate(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, cfg) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	address := eventually.Receive(t, "its address", listening)
	eventually.True(t, name+" is ready", func() bool {
		resp, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		return cmp.Or(resp.Body.Close(), nil) == nil && resp.StatusCode == http.StatusOK
	})
}

// testLeastRights checks after the migrations that roles cannot do what others are for.
func testLeastRights(t *testing.T, secrets databases.Secrets) {
	data, keys := secrets["lectern-entries-database"], secrets["lectern-auth"]
	for _, tt := range []struct{ url, may, mayNot string }{
		{data["DATABASE_URL"], "SELECT FROM entries", "DELETE FROM entries"},
		{data["DATABASE_URL"], "SELECT FROM entries", "CREATE TABLE public.mine ()"},
		{data["INGEST_DATABASE_URL"], "UPDATE entries SET entry_data = entry_data", "DELETE FROM entries"},
		{data["REMOVE_DATABASE_URL"], "DELETE FROM entries", "UPDATE entries SET entry_data = entry_data"},
		{data["MIGRATE_DATABASE_URL"], "DROP TABLE IF EXISTS none", "CREATE ROLE mine"},
		{keys["AUTH_DATABASE_URL"], "SELECT FROM api_keys", "DELETE FROM api_keys"},
		{keys["AUTH_ADMIN_DATABASE_URL"], "SELECT FROM api_keys", "DELETE FROM api_keys"},
	} {
		execute(t, tt.url, tt.may)
		pg, ok := errors.AsType[*pgconn.PgError](tryExecute(t, tt.url, tt.mayNot))
		if u, _ := url.Parse(tt.url); !ok || pg.Code != "42501" { // insufficient_privilege
			t.Errorf("%s as %s: %v; want a refusal", tt.mayNot, u.User.Username(), pg)
		}
	}
}
