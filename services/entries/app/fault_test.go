package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// eventually waits until ok, and fails t after the bound.
func eventually(t *testing.T, bound time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Since(begin) > bound {
			t.Fatalf("not within %v: %s", bound, what)
		}
		<-tick.C
	}
	return time.Since(begin)
}

// TestRevocation checks when a process that has cached the key sees a revocation by another process. That is within a
// second if Redis is up, and within the TTL if it is down.
func TestRevocation(t *testing.T) {
	b := servicetest.NewBacking(t, store.Schema())
	first, second := startOn(t, b, nil), startOn(t, b, nil)
	const path = "/projects/pr_1/entries"
	warm := func() (key, id string) {
		k, r := b.Keys.Minted(mintOptions())
		for _, s := range []*servicetest.Service{first, second} {
			if a := s.Get(t, k, path); a.Status != 200 {
				t.Fatalf("a fresh key: %d", a.Status)
			}
		}
		return k, r.ID
	}
	refused := func(key string) func() bool {
		return func() bool {
			one, two := first.Get(t, key, path).Status, second.Get(t, key, path).Status
			for _, status := range []int{one, two} {
				if status != 200 && status != 401 {
					t.Fatalf("a key in revocation: %d", status)
				}
			}
			return one == 401 && two == 401
		}
	}
	key, id := warm()
	if _, err := b.Keys.Revoke(t.Context(), project, id); err != nil {
		t.Fatal(err)
	}
	t.Logf("with Redis: %v", eventually(t, time.Second, "revoked with Redis up", refused(key)))

	key, id = warm()
	b.Redis.Kill()
	if _, err := b.Keys.Revoke(t.Context(), project, id); err != nil {
		t.Logf("the announcement: %v", err)
	}
	t.Logf("without Redis: %v", eventually(t, 5*time.Second, "revoked with Redis down", refused(key)))
	// The key stays revoked when Redis comes back empty.
	b.Redis.Restart()
	for range 50 {
		if !refused(key)() {
			t.Fatal("a revoked key works again")
		}
	}
}

// TestFaultsOfRedis checks that a fault of Redis disables only the rate limit.
func TestFaultsOfRedis(t *testing.T) {
	s, key := demo(t, nil)
	const path = "/projects/pr_1/entries"
	for name, fault := range map[string]struct{ begin, end func() }{
		"killed": {s.Redis.Kill, s.Redis.Restart},
		"hangs":  {s.Redis.Pause, s.Redis.Resume},
	} {
		fault.begin()
		for _, k := range []string{key, s.Keys.Key(project)} { // a cached key, and one that is not cached
			for range 20 {
				if a := s.Get(t, k, path); a.Status != 200 {
					t.Fatalf("Redis %s: %d %s", name, a.Status, a.Body)
				}
			}
		}
		if a := s.Get(t, mintElsewhere(), path); a.Status != 401 {
			t.Errorf("Redis %s: an unknown key: %d", name, a.Status)
		}
		fault.end()
	}
}

// TestFaultsOfPostgres checks that clients see 503 with Retry-After, never 401 or 500, and the service recovers by
// itself.
func TestFaultsOfPostgres(t *testing.T) {
	server := pgtest.Private(t, map[string]string{"synchronous_commit": "on"})
	redis := redistest.Start(t)
	b := &servicetest.Backing{
		DB:    server.Database(t, store.Schema()),
		Redis: redis,
		Keys:  authtest.New(t, redis.URL), // these are on another Postgres server
	}
	s := startOn(t, b, map[string]string{"DATABASE_ACQUIRE_TIMEOUT": "300ms", "STATEMENT_TIMEOUT": "1s", "INGEST_RETRY_TIME": "500ms"})
	key := b.Keys.Key(project)
	s.MustIngest(t, "entries", newEntry(project, "en_1", at(1)))
	paths := []string{"/entries", "/entries/en_1", "/entries/en_1/events", "/entries-page-views"}
	unavailable := func(name string) {
		t.Helper()
		for _, path := range paths {
			begin := time.Now()
			a := s.Get(t, key, "/projects/pr_1"+path)
			if a.Status != 503 || a.Header.Get("Retry-After") == "" || !strings.Contains(string(a.Body), `"code":"unavailable"`) || !strings.Contains(string(a.Body), `"projectId":"pr_1"`) {
				t.Errorf("%s: %s: %d %s", name, path, a.Status, a.Body)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("%s: %s took %v", name, path, took)
			}
			if strings.Contains(string(a.Body), "127.0.0.1") || strings.Contains(string(a.Body), "SELECT") {
				t.Errorf("%s: the answer says too much: %s", name, a.Body)
			}
		}
		line, _ := json.Marshal(newEntry(project, "en_2", at(2)))
		a := s.DoInternal(t, servicetest.Request{Method: "POST", Path: "/internal/entries", Key: servicetest.IngestKey, Body: strings.NewReader(string(line))})
		if a.Status != 503 {
			t.Errorf("%s: ingest: %d %s", name, a.Status, a.Body)
		}
		if a := s.DoInternal(t, servicetest.Request{Path: "/healthz"}); a.Status != 200 {
			t.Errorf("%s: /healthz: %d", name, a.Status)
		}
	}
	back := func(name string) {
		t.Helper()
		took := eventually(t, 15*time.Second, name+": answers again", func() bool {
			for _, path := range paths {
				a := s.Get(t, key, "/projects/pr_1"+path)
				if a.Status != 200 && a.Status != 503 {
					t.Fatalf("%s: %s: %d %s", name, path, a.Status, a.Body)
				}
				if a.Status != 200 {
					return false
				}
			}
			return true
		})
		t.Logf("%s: back after %v", name, took)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	unavailable("killed")
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	back("restarted")
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	unavailable("stopped")
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	back("resumed")
	// An ingest that was answered 503 may be sent again.
	s.MustIngest(t, "entries", newEntry(project, "en_2", at(2)))
	if list, _ := getList(t, s, key, "/projects/pr_1/entries"); len(list) != 2 {
		t.Errorf("%d entries", len(list))
	}
}

// TestFaultInTheMiddle checks that a client cannot mistake a list that breaks after its first byte for a complete one.
func TestFaultInTheMiddle(t *testing.T) {
	s := start(t, nil)
	key := s.Keys.Key(project)
	fill(t, s, project, 40_000)
	for _, accept := range []string{"application/json", "application/x-ndjson"} {
		for _, encoding := range []string{"identity", "gzip"} {
			req, err := http.NewRequest("GET", s.URL+"/projects/pr_1/entries?limit=40000", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Api-Key", key)
			req.Header.Set("Accept", accept)
			req.Header.Set("Accept-Encoding", encoding)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(resp.Body, make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			// From now on every chunk fails.
			exec(t, s, `ALTER TABLE entries RENAME TO gone`)
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			exec(t, s, `ALTER TABLE gone RENAME TO entries`)
			if err == nil {
				t.Errorf("%s, %s: a broken list looks complete", accept, encoding)
			}
		}
	}
}

// queries counts the connections of the service's reader that are in a statement or transaction.
func queries(t *testing.T, s *servicetest.Service) (n int) {
	t.Helper()
	// Only the superuser sees the activity of other roles.
	conn, err := pgx.Connect(t.Context(), pgtest.Server(t).AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	err = conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = $1 AND application_name = 'entries' AND state <> 'idle'`, s.DB.Name).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSlowReader checks that clients that stop reading hold no database connection, and are disconnected after
// WRITE_TIMEOUT.
func TestSlowReader(t *testing.T) {
	s := start(t, map[string]string{"DATABASE_MAX_CONNS": "2", "WRITE_TIMEOUT": "2s"})
	key := s.Keys.Key(project)
	fill(t, s, project, 100_000)
	const readers = 8 // more than the database connections
	var stalled sync.WaitGroup
	for range readers {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(conn, "GET /projects/pr_1/entries?limit=100000 HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\n\r\n", key)
		line, err := bufio.NewReaderSize(conn, 64).ReadString('\n')
		if err != nil || !strings.Contains(line, "200") {
			t.Fatalf("%q %v", line, err)
		}
		stalled.Add(1)
	}
	eventually(t, 10*time.Second, "no connection is in use", func() bool { return queries(t, s) == 0 })
	if a := s.Get(t, key, "/projects/pr_1/entries"); a.Status != 200 {
		t.Errorf("a request next to %d stalled readers: %d", readers, a.Status)
	}
	eventually(t, 15*time.Second, "the stalled readers are cut off", func() bool {
		return strings.Count(s.Log(), `"route":"/projects/{projectId}/entries"`) >= readers+1
	})
}

// TestClientLeaves checks that the statement of a client that disconnects is cancelled.
func TestClientLeaves(t *testing.T) {
	s := start(t, nil)
	key := s.Keys.Key(project)
	fill(t, s, project, 10)
	// The lock makes the service's statement wait.
	conn, err := pgx.Connect(t.Context(), s.DB.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `BEGIN; LOCK TABLE entries`); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/projects/pr_1/entries", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	done := make(chan error)
	go func() { _, err := http.DefaultClient.Do(req); done <- err }()
	eventually(t, 10*time.Second, "the statement waits", func() bool { return queries(t, s) == 1 })
	leave()
	if err := <-done; err == nil {
		t.Error("a request that was left has an answer")
	}
	eventually(t, 10*time.Second, "the statement is ended", func() bool { return queries(t, s) == 0 })
}

// TestFullPool checks that a request gets 503 in bounded time if all connections are in use.
func TestFullPool(t *testing.T) {
	s := start(t, map[string]string{"DATABASE_MAX_CONNS": "1", "DATABASE_ACQUIRE_TIMEOUT": "200ms"})
	key := s.Keys.Key(project)
	fill(t, s, project, 10)
	conn, err := pgx.Connect(t.Context(), s.DB.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `BEGIN; LOCK TABLE entries`); err != nil {
		t.Fatal(err)
	}
	first := make(chan int)
	go func() { first <- s.Get(t, key, "/projects/pr_1/entries").Status }()
	eventually(t, 10*time.Second, "the pool is full", func() bool { return queries(t, s) == 1 })
	begin := time.Now()
	a := s.Get(t, key, "/projects/pr_1/entries")
	if took := time.Since(begin); a.Status != 503 || a.Header.Get("Retry-After") == "" || took > 2*time.Second {
		t.Errorf("%d after %v, Retry-After %q", a.Status, took, a.Header.Get("Retry-After"))
	}
	if _, err := conn.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if status := <-first; status != 200 {
		t.Errorf("who had the connection: %d", status)
	}
}
