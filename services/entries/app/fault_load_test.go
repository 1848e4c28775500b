package app

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// underLoad are the paths that clients read during a fault: every operation, and a list of several chunks.
var underLoad = []string{
	"/projects/pr_1/entries",
	"/projects/pr_1/entries/en_0000007",
	"/projects/pr_1/entries/en_0000007/events",
	"/projects/pr_1/entries-page-views",
	"/projects/pr_1/entries?limit=3000&direction=ASC",
	"/projects/pr_1/entries-page-views?limit=1500&include_urls=true",
}

// shortTimeouts adds short time-outs to environ, so that tests of faults are fast.
func shortTimeouts(environ map[string]string) map[string]string {
	all := map[string]string{
		"DATABASE_ACQUIRE_TIMEOUT": "300ms", "STATEMENT_TIMEOUT": "1s",
		"INGEST_RETRY_TIME": "500ms", "RATE_LIMIT": "1000000",
	}
	for name, value := range environ {
		all[name] = value
	}
	return all
}

// breakable is a service that reaches Postgres and Redis through proxies. A test may break the proxies and the servers.
type breakable struct {
	*servicetest.Service
	server   *pgtest.Instance
	postgres *faulttest.Proxy
	redis    *faulttest.Proxy
	key      string
}

// startBreakable runs a breakable service with 4,000 entries.
func startBreakable(t *testing.T, environ map[string]string) *breakable {
	t.Helper()
	b, server := servicetest.NewBreakable(t, store.Schema())
	f := &breakable{server: server}
	f.redis = faulttest.NewProxy(t, b.Redis.Addr())
	through := map[string]string{"REDIS_URL": "redis://" + f.redis.Addr()}
	f.postgres, through["DATABASE_URL"] = proxied(t, server, b.DB.ReaderURL)
	through["INGEST_DATABASE_URL"] = strings.Replace(server.TCPURL(b.DB.IngestURL), hostOf(t, server.TCPURL(b.DB.IngestURL)), f.postgres.Addr(), 1)
	for name, value := range environ {
		through[name] = value
	}
	f.Service = startOn(t, b, shortTimeouts(through))
	f.key = b.Keys.Key(project)
	fill(t, f.Service, project, 4000)
	return f
}

func hostOf(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// proxied starts a proxy in front of a database, and returns the database's URL through it.
func proxied(t *testing.T, server *pgtest.Instance, of string) (*faulttest.Proxy, string) {
	t.Helper()
	direct := server.TCPURL(of)
	p := faulttest.NewProxy(t, hostOf(t, direct))
	return p, strings.Replace(direct, hostOf(t, direct), p.Addr(), 1)
}

// load reads all paths of underLoad until it is stopped.
func (f *breakable) load(t *testing.T) *faulttest.Load {
	t.Helper()
	return faulttest.Start(t, f.URL, faulttest.LoadOptions{Key: f.key, Paths: underLoad})
}

// admin runs sql as the superuser of f's server, in the service's database.
func (f *breakable) admin(t *testing.T, sql string) {
	t.Helper()
	superuser(t, f.server, f.DB.Name, sql)
}

func superuser(t *testing.T, server *pgtest.Instance, db, sql string) {
	t.Helper()
	cfg, err := pgx.ParseConfig(server.AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	if db != "" {
		cfg.Database = db
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// checkKeys checks that a key that the process has not seen yet is accepted, and one that was never minted is not. A 401 for a good key would present a fault as a refusal.
func (f *breakable) checkKeys(t *testing.T, when string) {
	t.Helper()
	if a := f.Get(t, f.Keys.Key(project), underLoad[1]); a.Status != 200 {
		t.Errorf("%s: a key seen for the first time: %d %s", when, a.Status, a.Body)
	}
	if a := f.Get(t, mintElsewhere(), underLoad[1]); a.Status != 401 {
		t.Errorf("%s: a key that nobody minted: %d", when, a.Status)
	}
}

// checkHealth checks /healthz, which no fault of another system may break.
func checkHealth(t *testing.T, s *servicetest.Service, when string) {
	t.Helper()
	begin := time.Now()
	if a := s.DoInternal(t, servicetest.Request{Path: "/healthz"}); a.Status != 200 || time.Since(begin) > time.Minute {
		t.Errorf("%s: /healthz: %d after %v", when, a.Status, time.Since(begin))
	}
}
