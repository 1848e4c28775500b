package preflight

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/cli/internal/databases"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// patient are the options of REDIS_URL with which a busy machine is no fault.
const patient = "?dial_timeout=1m&read_timeout=1m&write_timeout=1m"

// TestChecksFail makes each check of Postgres, Redis and the bucket fail once. The other checks do not fail, and no
// message has a user or a password.
func TestChecksFail(t *testing.T) {
	server := pgtest.Private(t, nil)
	db := server.Database(t, pgkeys.Schema())
	execute := func(url string, statements ...string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		for _, statement := range statements {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	administer := func(statements ...string) { t.Helper(); execute(server.AdminURL(), statements...) }
	administer("CREATE ROLE strong SUPERUSER LOGIN PASSWORD 'strong'", "CREATE ROLE narrow LOGIN PASSWORD 'narrow' CONNECTION LIMIT 1",
		"CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0", "CREATE DATABASE open")
	execute(databaseURL(t, server.AdminURL(), "open"), "GRANT CREATE ON SCHEMA public TO PUBLIC")
	reader := server.TCPURL(db.ReaderURL)
	changed := func(change func(u *url.URL)) string {
		u, err := url.Parse(reader)
		if err != nil {
			t.Fatal(err)
		}
		change(u)
		return u.String()
	}
	redis := redistest.Start(t)
	commands := redistest.Client(redis)
	for name, rule := range map[string]string{"scriptless": "-@scripting", "mute": "-info"} {
		if err := commands.Do(t.Context(), "ACL", "SETUSER", name, "on", ">canary", "~*", "&*", "+@all", rule).Err(); err != nil {
			t.Fatal(err)
		}
	}
	as := func(user string) string { return "redis://" + user + ":canary@" + redis.Addr() + patient }
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotImplemented)
		fmt.Fprint(w, `<Error><Code>NotImplemented</Code></Error>`)
	}))
	defer store.Close()
	sound := map[string]string{
		"AUTH_DATABASE_URL": reader, "AUTH_ADMIN_DATABASE_URL": server.TCPURL(db.AdminURL), "AUTH_MIGRATE_DATABASE_URL": server.TCPURL(db.OwnerURL),
		"REDIS_URL": redis.URL.Reveal() + patient,
	}
	later := time.Now().Add(-time.Hour)

	for _, tt := range []struct {
		name   string
		change map[string]string // of the environment
		also   func(*Options)
		want   []string // CHECK OUTCOME SUBJECT: a part of the message
	}{
		{"nothing", nil, nil, nil},
		{"a Secret is missing", nil, func(o *Options) { o.Secrets = secrets(); delete(o.Secrets, "lectern-auth") },
			[]string{"secrets-file failed lectern-auth: the Secret is missing, or has no AUTH_DATABASE_URL, AUTH_ADMIN_DATABASE_URL: make it"}},
		{"a key is missing", nil, func(o *Options) { o.Secrets = secrets(); delete(o.Secrets["lectern-region-database"], "DATABASE_URL") },
			[]string{"secrets-file failed lectern-region-database: the Secret is missing, or has no DATABASE_URL: make it"}},
		{"no URL", map[string]string{"AUTH_DATABASE_URL": "postgres://auth_reader:canary@db:port/auth"}, nil,
			[]string{"postgres-url failed AUTH_DATABASE_URL: the URL cannot be read: give postgres://"}},
		{"no file of a password", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.User = url.User("auth_reader") }), "AUTH_DATABASE_PASSWORD_FILE": "/none"}, nil,
			[]string{"postgres-url failed AUTH_DATABASE_PASSWORD_FILE: AUTH_DATABASE_PASSWORD_FILE names a file that cannot be read"}},
		{"no TLS to Redis", map[string]string{"REDIS_REQUIRE_TLS": "true"}, nil,
			[]string{"redis-url failed REDIS_URL: REDIS_URL is without TLS, and REDIS_REQUIRE_TLS is set"}},
		{"a wrong host", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.Host = "lectern.invalid" })}, nil,
			[]string{"dns failed AUTH_DATABASE_URL: the look-up of lectern.invalid failed", "postgres-login failed AUTH_DATABASE_URL: no log-in: "}},
		{"a wrong port", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.Host = "127.0.0.1:1" })}, nil,
			[]string{"postgres-login failed AUTH_DATABASE_URL: no log-in: nothing listens at the address of its URL"}},
		{"a wrong password", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.User = url.UserPassword("auth_reader", "canary") })}, nil,
			[]string{"postgres-login failed AUTH_DATABASE_URL: no log-in: Postgres refuses the user or the password"}},
		{"a wrong database", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.Path = "/none" })}, nil,
			[]string{"postgres-login failed AUTH_DATABASE_URL: no log-in: Postgres has no database of the name in its URL"}},
		{"another encoding", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.Path = "/ascii" })}, nil,
			[]string{"postgres-encoding failed AUTH_DATABASE_URL: the database has the encoding SQL_ASCII: create"}},
		{"a superuser", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.User = url.UserPassword("strong", "strong") })}, nil,
			[]string{"postgres-rights failed AUTH_DATABASE_URL: the role has SUPERUSER"}},
		{"a reader that writes", map[string]string{"AUTH_DATABASE_URL": server.TCPURL(db.AdminURL)}, nil,
			[]string{"postgres-rights failed AUTH_DATABASE_URL: the role has one of UPDATE, DELETE, TRUNCATE, INSERT on the table api_keys"}},
		{"a reader that makes tables", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.Path = "/open" })}, nil,
			[]string{"postgres-rights failed AUTH_DATABASE_URL: the role may create tables: run REVOKE"}},
		{"an owner that makes none", map[string]string{"AUTH_MIGRATE_DATABASE_URL": reader}, nil,
			[]string{"postgres-rights failed AUTH_MIGRATE_DATABASE_URL: the role cannot create tables: make the role the owner"}},
		{"one connection", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.User = url.UserPassword("narrow", "narrow") })}, nil,
			[]string{"postgres-pooler failed AUTH_DATABASE_URL: a connection as services open it failed: Postgres has no connection left (max_connections)"}},
		{"another time", map[string]string{"AUTH_ADMIN_DATABASE_URL": "", "AUTH_MIGRATE_DATABASE_URL": ""}, func(o *Options) { o.Now = func() time.Time { return later } },
			[]string{"postgres-clock failed AUTH_DATABASE_URL: the clocks of the server and of this machine differ by 1h"}},
		{"no Redis", map[string]string{"REDIS_URL": "redis://127.0.0.1:1"}, nil,
			[]string{"redis-login failed REDIS_URL: no log-in: nothing listens at the address of its URL"}},
		{"a wrong password of Redis", map[string]string{"REDIS_URL": "redis://mute:other-canary@" + redis.Addr() + patient}, nil,
			[]string{"redis-login failed REDIS_URL: no log-in: Redis refuses the user, the password or a command"}},
		{"a Redis without INFO", map[string]string{"REDIS_URL": as("mute")}, nil, []string{
			"redis-version not checked REDIS_URL: the answer to INFO has no redis_version",
			"redis-memory not checked REDIS_URL: the answer to INFO has no maxmemory_policy",
		}},
		{"a Redis without scripts", map[string]string{"REDIS_URL": as("scriptless")}, nil,
			[]string{"redis-scripts failed REDIS_URL: the server refuses scripts: allow"}},
		{"a Redis that fills up", nil, func(*Options) { commands.ConfigSet(t.Context(), "maxmemory", "100mb") },
			[]string{"redis-memory failed REDIS_URL: the server has a maxmemory and refuses writes when it is full: set maxmemory-policy allkeys-lru"}},
		{"a store without conditions", map[string]string{"AWS_ENDPOINT_URL": store.URL, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "canary", "AWS_REGION": "us-east-1"},
			func(o *Options) { o.Bucket = &url.URL{Host: "lake", Path: "/copies"} },
			[]string{"bucket failed --to: bucket s3://lake/copies/ takes no conditional writes (NotImplemented): use a store that supports them"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			commands.ConfigSet(t.Context(), "maxmemory", "0")
			o := Options{Environ: maps.Clone(sound), Release: "lectern", Timeout: 2 * time.Minute, Now: time.Now}
			maps.Copy(o.Environ, tt.change)
			if tt.also != nil {
				tt.also(&o)
			}
			compare(t, Run(t.Context(), o), tt.want)
		})
	}
}

// secrets are the Secrets of lectern databases, without URLs that can be reached.
func secrets() databases.Secrets {
	all := databases.Secrets{}
	for _, d := range databases.All("") {
		all["lectern-"+d.Secret] = map[string]string{}
		for _, role := range d.Roles {
			all["lectern-"+d.Secret][role.Variable] = ""
		}
	}
	return all
}

func databaseURL(t *testing.T, text, database string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + database
	return u.String()
}

// compare checks that results have the wanted rows, and no other row with a subject.
func compare(t *testing.T, results []Result, want []string) {
	t.Helper()
	var got []string
	for _, r := range results {
		if r.Subject != "" {
			got = append(got, r.Check+" "+r.Outcome+" "+r.Subject+": "+r.Message)
		}
		if r.Page != "docs/reference/checks.md#"+r.Check {
			t.Errorf("%s has the page %s", r.Check, r.Page)
		}
	}
	if !slices.EqualFunc(got, want, strings.Contains) {
		t.Errorf("-want +got:\n%s", cmp.Diff(want, got))
	}
	text, err := json.Marshal(results)
	if secret := regexp.MustCompile(`canary|auth_\w+|narrow|strong`).Find(text); err != nil || secret != nil {
		t.Errorf("the results show %s: %s", secret, text)
	}
}

// Without inputs, nothing is checked. Each row says what is missing.
func TestNothingGiven(t *testing.T) {
	for _, r := range Run(t.Context(), Options{Environ: map[string]string{}, Timeout: time.Minute, Now: time.Now}) {
		if r.Outcome != NotChecked || r.Message == "" {
			t.Errorf("%+v", r)
		}
	}
}

// Databases in a file of Secrets are checked like those of the environment. A key of the Secret may be the password.
func TestSecretsFile(t *testing.T) {
	server := pgtest.Private(t, nil)
	db := server.Database(t, pgkeys.Schema())
	u, err := url.Parse(server.TCPURL(db.ReaderURL))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("auth_reader")
	o := Options{Environ: map[string]string{}, Secrets: databases.Secrets{"lectern-auth": {
		"AUTH_DATABASE_URL": u.String(), "AUTH_DATABASE_PASSWORD": "auth_reader", "AUTH_ADMIN_DATABASE_URL": server.TCPURL(db.ReaderURL),
	}}, Release: "lectern", Timeout: 2 * time.Minute, Now: time.Now}
	for _, r := range Run(t.Context(), o) {
		if r.Outcome == Failed && r.Check != "secrets-file" || r.Outcome == NotChecked && strings.HasPrefix(r.Check, "postgres-") {
			t.Errorf("%+v", r)
		}
	}
}

// TestJudgements gives the functions that judge answers the answers of servers that this machine does not have.
func TestJudgements(t *testing.T) {
	pooler := func(code, message string) error {
		return poolerFault(fmt.Errorf("connect: %w", &pgconn.PgError{Code: code, Message: message}))
	}
	for _, tt := range []struct {
		name string
		got  error
		want string // "": nothing is wrong
	}{
		{"Postgres 14", postgresVersion(140011), "the server is Postgres 14.11: use Postgres 15 or later"},
		{"Postgres 15", postgresVersion(150000), ""},
		{"Redis 6", redisVersion("6.2.14"), "the server is Redis 6.2.14: use Redis 7 or later"},
		{"Redis 7", redisVersion("7.0.0"), ""},
		{"Redis 10", redisVersion("10.0.1"), ""},
		{"a pooler and statement_timeout", pooler("08P01", "unsupported startup parameter: statement_timeout"), "a pooler refuses statement_timeout or jit: set its ignore_startup_parameters"},
		{"a pooler and prepared statements", pooler("26000", "prepared statement \"a\" does not exist"), "a pooler loses prepared statements: set its max_prepared_statements"},
		{"a pooler and names", pooler("42P05", "prepared statement \"a\" already exists"), "a pooler loses prepared statements: set its max_prepared_statements"},
		{"no pooler", poolerFault(nil), ""},
	} {
		if text := fmt.Sprint(tt.got); tt.want == "" && tt.got != nil || !strings.HasPrefix(text, tt.want) && tt.want != "" {
			t.Errorf("%s: %s; want %q", tt.name, text, tt.want)
		}
	}
}

// TestKubernetes runs the checks with a kubectl that answers as the test wants.
func TestKubernetes(t *testing.T) {
	const answers = `#!/bin/sh
case "$*" in
--namespace=shop\ get\ --raw\ /version) exit $API ;;
--namespace=shop\ auth\ can-i\ create\ "$REFUSED") echo no; exit 1 ;;
--namespace=shop\ auth\ can-i\ create\ *) echo yes ;;
--namespace=shop\ get\ secret\ "$MISSING"\ *) echo "Error from server (NotFound): secrets \"$MISSING\" not found" >&2; exit 1 ;;
--namespace=shop\ get\ secret\ lectern-keys\ *) echo INGEST_API_KEYS; [ -z "$SHORT" ] && echo EDGE_KEYS; exit 0 ;;
--namespace=shop\ get\ secret\ *) printf 'DATABASE_URL\nMIGRATE_DATABASE_URL\nAUTH_DATABASE_URL\nAUTH_ADMIN_DATABASE_URL\nREDIS_URL\n' ;;
*) echo "what is $*?" >&2; exit 2 ;;
esac
`
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "kubectl"), []byte(answers), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path                     string
		api, refused, missing, shorter string
		want                           []string
	}{
		{"all is well", folder, "0", "", "", "", nil},
		{"no kubectl", "", "0", "", "", "", []string{"kubernetes-api failed cluster: there is no program kubectl: install kubectl"}},
		{"no API server", folder, "1", "", "", "", []string{"kubernetes-api failed cluster: kubectl says: "}},
		{"no right", folder, "0", "roles.rbac.authorization.k8s.io", "", "",
			[]string{"kubernetes-rights failed roles.rbac.authorization.k8s.io: the user of kubectl may not create these objects: ask"}},
		{"no Secret", folder, "0", "", "lectern-redis", "", []string{"kubernetes-secrets failed lectern-redis: the Secret is missing, or has no REDIS_URL: make it"}},
		{"no key", folder, "0", "", "", "short", []string{"kubernetes-secrets failed lectern-keys: the Secret is missing, or has no EDGE_KEYS: make it"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range map[string]string{"PATH": tt.path, "API": tt.api, "REFUSED": tt.refused, "MISSING": tt.missing, "SHORT": tt.shorter} {
				t.Setenv(name, value)
			}
			compare(t, Run(t.Context(), Options{Environ: map[string]string{}, Release: "lectern", Namespace: "shop", Timeout: 2 * time.Minute, Now: time.Now}), tt.want)
		})
	}
}

// The page of the documentation has a section for each check, in their order, and no others.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/checks.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, c := range checks {
		want = append(want, c.name)
	}
	for _, heading := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(string(page), -1) {
		got = append(got, heading[1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
}

// TestRequiredKeys checks that the pods of the chart read each required key.
func TestRequiredKeys(t *testing.T) {
	read, err := os.ReadFile("../../../charts/charttest/testdata/secrets.txt")
	if err != nil {
		t.Fatal(err)
	}
	for ending, keys := range requiredKeys {
		for _, key := range keys {
			if !strings.Contains(string(read), ": lectern-"+ending+"/"+key+"\n") {
				t.Errorf("no pod reads %s of lectern-%s", key, ending)
			}
		}
	}
}
