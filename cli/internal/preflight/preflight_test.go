package preflight

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
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
	"github.com/jackc/pgx/v5/pgproto3"

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
	administer("CREATE ROLE strong SUPERUSER LOGIN PASSWORD 'strong'",
		"CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0", "CREATE DATABASE open", "CREATE DATABASE old")
	execute(databaseURL(t, server.AdminURL(), "open"), "GRANT CREATE ON SCHEMA public TO PUBLIC")
	// In the schema public, a function replaces that of Postgres if search_path begins with public.
	execute(databaseURL(t, server.AdminURL(), "old"), `CREATE FUNCTION current_setting(text) RETURNS text LANGUAGE sql AS
		$$ SELECT CASE $1 WHEN 'server_version_num' THEN '140011' WHEN 'server_version' THEN '14.11' END $$`)
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
	if err := commands.Do(t.Context(), "ACL", "SETUSER", "scriptless", "on", ">canary", "~*", "&*", "+@all", "-@scripting").Err(); err != nil {
		t.Fatal(err)
	}
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotImplemented)
		fmt.Fprint(w, `<Error><Code>NotImplemented</Code></Error>`)
	}))
	defer store.Close()
	sound := map[string]string{
		"AUTH_DATABASE_URL": reader, "AUTH_ADMIN_DATABASE_URL": server.TCPURL(db.AdminURL), "AUTH_MIGRATE_DATABASE_URL": server.TCPURL(db.OwnerURL),
		"REDIS_URL": redis.URL.Reveal() + patient,
	}

	for _, tt := range []struct {
		name   string
		change map[string]string // of the environment
		also   func(*Options)
		want   []string // CHECK OUTCOME SUBJECT: a part of the message
	}{
		{"nothing", nil, nil, nil},
		{"no URL", map[string]string{"AUTH_DATABASE_URL": "postgres://auth_reader:canary@db:port/auth"}, nil,
			[]string{"postgres failed AUTH_DATABASE_URL: the URL cannot be read: give postgres://"}},
		{"no file of a password", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.User = url.User("auth_reader") }), "AUTH_DATABASE_PASSWORD_FILE": "/none"}, nil,
			[]string{"postgres failed AUTH_DATABASE_PASSWORD_FILE: AUTH_DATABASE_PASSWORD_FILE names a file that cannot be read"}},
		{"no TLS to Redis", map[string]string{"REDIS_REQUIRE_TLS": "true"}, nil,
			[]string{"redis failed REDIS_URL: REDIS_URL is without TLS, and REDIS_REQUIRE_TLS is set"}},
		{"a wrong host", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.Host = "lectern.invalid" })}, nil,
			[]string{"postgres failed AUTH_DATABASE_URL: no log-in: "}},
		{"a wrong port", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.Host = "127.0.0.1:1" })}, nil,
			[]string{"postgres failed AUTH_DATABASE_URL: no log-in: nothing listens at the address of its URL"}},
		{"a wrong password", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.User = url.UserPassword("auth_reader", "canary") })}, nil,
			[]string{"postgres failed AUTH_DATABASE_URL: no log-in: Postgres refuses the user or the password"}},
		{"a wrong database", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.Path = "/none" })}, nil,
			[]string{"postgres failed AUTH_DATABASE_URL: no log-in: Postgres has no database of the name in its URL"}},
		{"a server that is too old", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) {
			u.Path, u.RawQuery = "/old", "sslmode=disable&options="+url.QueryEscape("-csearch_path=public,pg_catalog")
		})}, nil, []string{"postgres failed AUTH_DATABASE_URL: the server is Postgres 14.11: use Postgres 15 or later"}},
		{"a pooler that refuses parameters", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.Host = pooler(t) })}, nil,
			[]string{"postgres failed AUTH_DATABASE_URL: no log-in: Postgres, or a pooler before it, refuses the parameters"}},
		{"another encoding", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.Path = "/ascii" })}, nil,
			[]string{"postgres failed AUTH_DATABASE_URL: the database has the encoding SQL_ASCII: create"}},
		{"a superuser", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.User = url.UserPassword("strong", "strong") })}, nil,
			[]string{"postgres failed AUTH_DATABASE_URL: the role has SUPERUSER"}},
		{"a reader that writes", map[string]string{"AUTH_DATABASE_URL": server.TCPURL(db.AdminURL)}, nil,
			[]string{"postgres failed AUTH_DATABASE_URL: the role has one of UPDATE, DELETE, TRUNCATE, INSERT on the table api_keys"}},
		{"a reader that makes tables", map[string]string{"AUTH_DATABASE_URL": changed(func(u *url.URL) { u.Path = "/open" })}, nil,
			[]string{"postgres failed AUTH_DATABASE_URL: the role may create tables: run REVOKE"}},
		{"an owner that makes none", map[string]string{"AUTH_MIGRATE_DATABASE_URL": reader}, nil,
			[]string{"postgres failed AUTH_MIGRATE_DATABASE_URL: the role cannot create tables: make the role the owner"}},
		{"no Redis", map[string]string{"REDIS_URL": "redis://127.0.0.1:1"}, nil,
			[]string{"redis failed REDIS_URL: no log-in: nothing listens at the address of its URL"}},
		{"a wrong password of Redis", map[string]string{"REDIS_URL": "redis://scriptless:other-canary@" + redis.Addr() + patient}, nil,
			[]string{"redis failed REDIS_URL: no log-in: Redis refuses the user, the password or a command"}},
		{"a Redis without scripts", map[string]string{"REDIS_URL": "redis://scriptless:canary@" + redis.Addr() + patient}, nil,
			[]string{"redis failed REDIS_URL: the server refuses scripts: allow"}},
		{"a store without conditions", map[string]string{"AWS_ENDPOINT_URL": store.URL, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "canary", "AWS_REGION": "us-east-1"},
			func(o *Options) { o.Bucket = &url.URL{Host: "lake", Path: "/copies"} },
			[]string{"bucket failed --to: bucket s3://lake/copies/ takes no conditional writes (NotImplemented): use a store that supports them"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{Environ: maps.Clone(sound), Release: "lectern", Timeout: 2 * time.Minute}
			maps.Copy(o.Environ, tt.change)
			if tt.also != nil {
				tt.also(&o)
			}
			compare(t, Run(t.Context(), o), tt.want)
		})
	}
}

// pooler returns the address of a pooler that refuses statement_timeout and jit, and knows no other user than migrate's.
func pooler(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			backend := pgproto3.NewBackend(conn, conn)
			message, err := backend.ReceiveStartupMessage()
			refusal := &pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01"}
			if start, ok := message.(*pgproto3.StartupMessage); err == nil && ok && start.Parameters["statement_timeout"] != "" && start.Parameters["jit"] != "" {
				refusal.Code = "08P01"
			}
			backend.Send(refusal)
			_ = backend.Flush()
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
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
	if secret := regexp.MustCompile(`canary|auth_\w+|strong`).Find(text); err != nil || secret != nil {
		t.Errorf("the results show %s: %s", secret, text)
	}
}

// Without inputs, nothing is checked. Each row says what is missing.
func TestNothingGiven(t *testing.T) {
	for _, r := range Run(t.Context(), Options{Environ: map[string]string{}, Timeout: time.Minute}) {
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
	}}, Release: "lectern", Timeout: 2 * time.Minute}
	for _, r := range Run(t.Context(), o) {
		if (r.Check == "postgres") != (r.Outcome == OK) {
			t.Errorf("%+v", r)
		}
	}
}

// TestKubernetes runs the checks with a kubectl that answers as the test wants.
func TestKubernetes(t *testing.T) {
	const answers = `#!/bin/sh
case "$*" in
--namespace=shop\ get\ --raw\ /version) [ -z "$API" ] || { echo "$API" >&2; exit 1; } ;;
--namespace=shop\ auth\ can-i\ create\ "$REFUSED") echo no; exit 1 ;;
--namespace=shop\ auth\ can-i\ create\ *) echo yes ;;
--namespace=shop\ get\ secret\ --ignore-not-found\ *)
	for name; do case "$name" in
	"$MISSING") ;;
	lectern-keys) echo $name/INGEST_API_KEYS; [ -n "$SHORT" ] || echo $name/EDGE_KEYS ;;
	lectern-*) for key in DATABASE_URL MIGRATE_DATABASE_URL AUTH_DATABASE_URL AUTH_ADMIN_DATABASE_URL REDIS_URL; do echo $name/$key; done ;;
	esac; done ;;
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
		{"all is well", folder, "", "", "", "", nil},
		{"no kubectl", "", "", "", "", "", []string{"kubernetes-rights failed cluster: there is no program kubectl: install kubectl", "kubernetes-secrets failed cluster: there is no program kubectl: install kubectl"}},
		{"no API server", folder, "is down", "", "", "", []string{"kubernetes-rights failed cluster: kubectl says: is down"}},
		{"no right", folder, "", "roles.rbac.authorization.k8s.io", "", "",
			[]string{"kubernetes-rights failed roles.rbac.authorization.k8s.io: the user of kubectl may not create these objects: ask"}},
		{"no Secret", folder, "", "", "lectern-redis", "", []string{"kubernetes-secrets failed lectern-redis: the Secret is missing, or has no REDIS_URL: make it"}},
		{"no key", folder, "", "", "", "short", []string{"kubernetes-secrets failed lectern-keys: the Secret is missing, or has no EDGE_KEYS: make it"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range map[string]string{"PATH": tt.path, "API": tt.api, "REFUSED": tt.refused, "MISSING": tt.missing, "SHORT": tt.shorter} {
				t.Setenv(name, value)
			}
			compare(t, Run(t.Context(), Options{Environ: map[string]string{}, Release: "lectern", Namespace: "shop", Timeout: 2 * time.Minute}), tt.want)
		})
	}
}

// TestCluster checks what --cluster says of pods and objects, with a kubectl that prints files. A server answers for the
// port of a pod.
func TestCluster(t *testing.T) {
	const answers = `#!/bin/sh
case "$*" in
--namespace=shop\ get\ --output=json\ deployments.apps,pods\ --selector=app.kubernetes.io/part-of=lectern) echo "{\"items\":[$PODS]}" ;;
--namespace=shop\ get\ --output=json\ lectern\ --all-namespaces) [ -z "$NAMESPACED" ] || { echo Forbidden >&2; exit 1; }; echo "{\"items\":[$OBJECTS]}" ;;
--namespace=shop\ get\ --output=json\ lectern) echo "{\"items\":[$OBJECTS]}" ;;
--namespace=shop\ get\ --output=json\ events\ --field-selector=type=Warning,involvedObject.name=p\ *) echo "{\"items\":[$EVENTS]}" ;;
--namespace=shop\ logs\ p\ --container=migrate\ --tail=1\ --previous) echo 'MIGRATE_DATABASE_URL: no such host' ;;
--namespace=shop\ port-forward\ pod/p\ :9090) echo "Forwarding from $READYZ -> 9090"; exec sleep 600 ;;
*) echo "what is $*?" >&2; exit 2 ;;
esac
`
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "kubectl"), []byte(answers), 0o700); err != nil {
		t.Fatal(err)
	}
	const runs = `,"containerStatuses":[{"name":"entries","state":{"running":{}}}]},"spec":{"containers":[{"ports":[{"name":"internal","containerPort":9090}]}]}`
	pod := func(status string) string {
		return `{"kind":"Pod","metadata":{"name":"p"},"status":{"phase":"Running"` + status + `}`
	}
	for _, tt := range []struct {
		name                                  string
		pods, objects, events, readyz, denied string
		want                                  []string
	}{
		{name: "all is well", pods: pod(runs), objects: `{"kind":"APIKey","metadata":{"generation":2},"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":2}]}}`, readyz: `{"status":"ready","checks":{"postgres":"ok"}}`},
		{name: "a wrong password", pods: pod(runs), readyz: `{"status":"not ready","causes":{"postgres":"Postgres refuses the user or the password of its URL"}}`,
			want: []string{"pods failed pod/p: not ready: postgres: Postgres refuses the user or the password of its URL"}},
		{name: "ready without Redis", pods: pod(runs), readyz: `{"status":"ready","causes":{"redis":"no answer in time"}}`, want: []string{"pods failed pod/p: the pod is ready, although a check fails: redis: no answer in time"}},
		{name: "a migration that fails", pods: pod(`,"initContainerStatuses":[{"name":"migrate","state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 5m"}},"lastState":{"terminated":{"exitCode":1}}}]}`),
			want: []string{"pods failed pod/p: migrate: CrashLoopBackOff, exit code 1: MIGRATE_DATABASE_URL: no such host"}},
		{name: "no image", pods: pod(`,"containerStatuses":[{"name":"entries","state":{"waiting":{"reason":"ImagePullBackOff","message":"no such host"}}}]}`),
			want: []string{"pods failed pod/p: entries: ImagePullBackOff: no such host"}},
		{name: "no node", pods: pod(`,"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"Insufficient cpu"}]}`),
			want: []string{"pods failed pod/p: Unschedulable: Insufficient cpu"}},
		{name: "no volume", pods: pod(`,"containerStatuses":[{"name":"entries","state":{"waiting":{"reason":"ContainerCreating"}}}]}`), events: `{"message":"old"},{"message":"references non-existent secret key"}`,
			want: []string{"pods failed pod/p: references non-existent secret key"}},
		{name: "a quota", pods: `{"kind":"Deployment","metadata":{"name":"lectern-entries"},"status":{"conditions":[{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":"exceeded quota"}]}}`,
			want: []string{"pods failed deployment/lectern-entries: FailedCreate: exceeded quota"}},
		{name: "objects", denied: "true", objects: `{"kind":"Project","metadata":{"namespace":"a","name":"new"},"status":{}},
			{"kind":"APIKey","metadata":{"namespace":"a","name":"old","generation":3},"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":2}]}},
			{"kind":"Credential","metadata":{"namespace":"b","name":"vendor"},"status":{"conditions":[{"type":"Ready","status":"False","reason":"SecretMissing","message":"no Secret"}]}}`,
			want: []string{"objects failed Project a/new: there is no status: no operator runs", "objects failed APIKey a/old: the operator has not seen the last change", "objects failed Credential b/vendor: SecretMissing: no Secret"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(tt.readyz, `"not ready"`) {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				_, _ = io.WriteString(w, tt.readyz)
			}))
			defer server.Close()
			for name, value := range map[string]string{"PATH": folder + ":" + os.Getenv("PATH"), "PODS": tt.pods, "OBJECTS": tt.objects, "EVENTS": tt.events, "NAMESPACED": tt.denied, "READYZ": server.Listener.Addr().String()} {
				t.Setenv(name, value)
			}
			compare(t, Run(t.Context(), Options{Namespace: "shop", Cluster: true, Timeout: 2 * time.Minute}), tt.want)
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
	for _, heading := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(page), -1) {
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
