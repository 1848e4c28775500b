package app

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// passwords are the files with the passwords of a service, one for each variable of a URL.
type passwords struct {
	folder  string
	environ map[string]string
}

// add moves the password out of the URL of the variable X_URL, and into a file.
func (p *passwords) add(t *testing.T, variable, text string) {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	u.User = url.User(u.User.Username())
	prefix := strings.TrimSuffix(variable, "_URL")
	p.environ[variable], p.environ[prefix+"_PASSWORD_FILE"] = u.String(), filepath.Join(p.folder, prefix)
	p.write(t, variable, password)
}

// write replaces the password of the variable X_URL, at once, as the kubelet does.
func (p *passwords) write(t *testing.T, variable, password string) {
	t.Helper()
	file := p.environ[strings.TrimSuffix(variable, "_URL")+"_PASSWORD_FILE"]
	if err := os.WriteFile(file+".new", []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// TestPasswordOfRoles changes the passwords of the roles in Postgres under load, and the files only after new connections
// have failed for long. No request fails: those that find no free connection wait for one. Then new connections use the new
// passwords, without a restart.
func TestPasswordOfRoles(t *testing.T) {
	t.Parallel()
	b, server := servicetest.NewBreakable(t, store.Schema())
	keys := server.Database(t, pgkeys.Schema())
	b.Keys = authtest.On(t, keys, b.Redis.URL)
	p := passwords{folder: t.TempDir(), environ: map[string]string{"RATE_LIMIT": "1000000", "MIGRATE_ON_START": "true"}}
	p.add(t, "MIGRATE_DATABASE_URL", server.TCPURL(b.DB.OwnerURL))
	p.add(t, "AUTH_MIGRATE_DATABASE_URL", server.TCPURL(keys.OwnerURL))
	p.add(t, "DATABASE_URL", server.TCPURL(b.DB.ReaderURL))
	p.add(t, "INGEST_DATABASE_URL", server.TCPURL(b.DB.IngestURL))
	p.add(t, "AUTH_DATABASE_URL", server.TCPURL(keys.ReaderURL))
	roles := map[string]string{"DATABASE_URL": "entries_reader", "INGEST_DATABASE_URL": "entries_ingest", "AUTH_DATABASE_URL": pgkeys.Schema().Name + "_reader"}
	s := startOn(t, b, p.environ)
	fill(t, s, project, 4000)
	key := b.Keys.Key(project)

	small := underLoad[:4] // large lists have bounds of their own
	// One client needs few connections, and opens those of each role.
	quiet := faulttest.Start(t, s.URL, faulttest.LoadOptions{Key: key, Paths: small, Clients: 1})
	quiet.Await(20)
	s.MustIngest(t, "entries", newEntry("pr_2", "en_1", at(1)))

	for variable, role := range roles {
		superuser(t, server, "", fmt.Sprintf("ALTER ROLE %s PASSWORD 'second of %s'", role, variable))
	}
	tried, open := attempts(t, s), queryInt(t, s, readers)
	busy := faulttest.Start(t, s.URL, faulttest.LoadOptions{Key: key, Paths: small, Clients: 12, Pause: 2 * time.Millisecond})
	eventually.True(t, "more connections are tried than the pool holds", func() bool { return attempts(t, s) > tried+20 })
	busy.Await(100)
	s.MustIngest(t, "entries", newEntry("pr_2", "en_2", at(2)))

	for variable := range roles {
		p.write(t, variable, "second of "+variable)
	}
	eventually.True(t, "new connections have the new password", func() bool { return queryInt(t, s, readers) > open })
	busy.Await(100)
	report := faulttest.Merge(quiet.Stop(), busy.Stop())
	report.Check(t, "new passwords of roles")
	if report.Refused+report.Broken > 0 {
		t.Errorf("requests failed: %v", report)
	}
	if strings.Contains(s.Log(), "second of") {
		t.Error("the log has a password")
	}
}

// attempts returns how many connections the service has tried to open as the role that reads.
func attempts(t *testing.T, s *servicetest.Service) int {
	t.Helper()
	metrics := string(s.DoInternal(t, servicetest.Request{Path: "/metrics"}).Body)
	m := newConnections.FindStringSubmatch(metrics)
	if m == nil {
		t.Fatalf("no metric of new connections:\n%s", metrics)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var newConnections = regexp.MustCompile(`(?m)^pgxpool_new_connections\w*\{[^}]*pool_name="entries"[^}]*\} (\d+)$`)

// readers counts the connections of the role that reads.
const readers = `SELECT count(*) FROM pg_stat_activity WHERE usename = 'entries_reader'`

// TestPasswordOfRedis changes the password of the service's user in Redis under load. Redis accepts both passwords of a user,
// so that it refuses none meanwhile.
func TestPasswordOfRedis(t *testing.T) {
	t.Parallel()
	b := servicetest.NewBacking(t, store.Schema())
	client := redistest.Client(b.Redis)
	acl := func(rules ...any) {
		t.Helper()
		if err := client.Do(t.Context(), append([]any{"ACL", "SETUSER", "service"}, rules...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	acl("on", ">first", "~*", "&*", "+@all")
	p := passwords{folder: t.TempDir(), environ: map[string]string{"RATE_LIMIT": "1000000"}}
	p.add(t, "REDIS_URL", "redis://service:first@"+b.Redis.Addr())
	s := startOn(t, b, p.environ)
	fill(t, s, project, 100)
	load := faulttest.Start(t, s.URL, faulttest.LoadOptions{Key: b.Keys.Key(project), Paths: []string{"/projects/" + project + "/entries"}})
	load.Await(20)
	acl(">second")
	p.write(t, "REDIS_URL", "second")
	acl("<first")
	load.Await(20)
	first := client.Do(t.Context(), "CLIENT", "LIST").String()
	if err := client.Do(t.Context(), "CLIENT", "KILL", "USER", "service").Err(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "new connections log in as the user", func() bool {
		return strings.Contains(client.Do(t.Context(), "CLIENT", "LIST").String(), "user=service")
	})
	load.Await(50)
	report := load.Stop()
	report.Check(t, "a new password of Redis")
	if report.Refused+report.Broken > 0 || !strings.Contains(first, "user=service") {
		t.Errorf("requests failed, or Redis was not used: %v\n%s", report, first)
	}
	if refused := client.Do(t.Context(), "ACL", "LOG").String(); strings.Contains(refused, "auth") {
		t.Errorf("Redis refused a password: %s", refused)
	}
	if a := s.DoInternal(t, servicetest.Request{Path: "/readyz"}); a.Status != http.StatusOK || !strings.Contains(string(a.Body), `"redis":"ok"`) {
		t.Errorf("/readyz: %d %s", a.Status, a.Body)
	}
}
