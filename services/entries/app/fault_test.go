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

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

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
	t.Logf("with Redis: %v", eventually.True(t, "revoked with Redis up", refused(key)))

	key, id = warm()
	b.Redis.Kill()
	if _, err := b.Keys.Revoke(t.Context(), project, id); err != nil {
		t.Logf("the announcement: %v", err)
	}
	t.Logf("without Redis: %v", eventually.True(t, "revoked with Redis down", refused(key)))
	// The key stays revoked when Redis comes back empty.
	b.Redis.Restart()
	for range 50 {
		if !refused(key)() {
			t.Fatal("a revoked key works again")
		}
	}
}

func reads(s *servicetest.Service) servicetest.Reads {
	return servicetest.Reads{Service: s, Key: s.Keys.Key(project), Project: project, Paths: []string{"/entries", "/entries/en_1", "/entries/en_1/events", "/entries-page-views"}}
}

// TestFaultsOfRedis checks that a fault of Redis disables only the rate limit.
func TestFaultsOfRedis(t *testing.T) {
	s, _ := demo(t, nil)
	servicetest.CheckRedisFaults(t, reads(s))
}

// TestFaultsOfPostgres checks that clients see 503 with Retry-After, never 401 or 500, and the service recovers by
// itself.
func TestFaultsOfPostgres(t *testing.T) {
	b, server := servicetest.NewBreakable(t, store.Schema())
	s := startOn(t, b, map[string]string{"DATABASE_ACQUIRE_TIMEOUT": "1s", "STATEMENT_TIMEOUT": "2s", "INGEST_RETRY_TIME": "1s"})
	s.MustIngest(t, "entries", newEntry(project, "en_1", at(1)))
	line, _ := json.Marshal(newEntry(project, "en_2", at(2)))
	servicetest.CheckPostgresFaults(t, server, reads(s), "entries", string(line))
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
			s.Exec(t, `ALTER TABLE entries RENAME TO gone`)
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			s.Exec(t, `ALTER TABLE gone RENAME TO entries`)
			if err == nil {
				t.Errorf("%s, %s: a broken list looks complete", accept, encoding)
			}
		}
	}
}

// queries counts the connections of the service's reader that are in a statement or transaction.
func queries(t *testing.T, s *servicetest.Service) int {
	t.Helper()
	return activity(t, s, `state <> 'idle'`)
}

// blocked returns how many statements of the service wait for a lock.
func blocked(t *testing.T, s *servicetest.Service) int {
	t.Helper()
	return activity(t, s, `wait_event_type = 'Lock'`)
}

// activity returns how many connections of the service meet the condition on pg_stat_activity.
func activity(t *testing.T, s *servicetest.Service, condition string) (n int) {
	t.Helper()
	// Only the superuser sees the activity of other roles.
	conn, err := pgx.Connect(t.Context(), pgtest.Server(t).AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	err = conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = $1 AND application_name = 'entries' AND `+condition, s.DB.Name).Scan(&n)
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
	eventually.True(t, "no connection is in use", func() bool { return queries(t, s) == 0 })
	if a := s.Get(t, key, "/projects/pr_1/entries"); a.Status != 200 {
		t.Errorf("a request next to %d stalled readers: %d", readers, a.Status)
	}
	eventually.True(t, "the stalled readers are cut off", func() bool {
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
	eventually.True(t, "the statement waits", func() bool { return blocked(t, s) == 1 })
	leave()
	if err := <-done; err == nil {
		t.Error("a request that was left has an answer")
	}
	eventually.True(t, "the statement is ended", func() bool { return queries(t, s) == 0 })
}

// TestFullPool checks that a request gets 503 while all connections are in use.
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
	// On a busy machine, opening the connection may take longer than a request waits for it.
	first := make(chan int, 1)
	go func() {
		status := 503
		for status == 503 && t.Context().Err() == nil {
			status = s.Get(t, key, "/projects/pr_1/entries").Status
		}
		first <- status
	}()
	eventually.True(t, "the only connection waits for the lock", func() bool { return blocked(t, s) == 1 })
	if a := s.Get(t, key, "/projects/pr_1/entries"); a.Status != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("%d, Retry-After %q", a.Status, a.Header.Get("Retry-After"))
	}
	if _, err := conn.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if status := eventually.Receive(t, "an answer for who had the connection", first); status != 200 {
		t.Errorf("who had the connection: %d", status)
	}
}
