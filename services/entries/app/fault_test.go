package app

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestFaultInTheMiddle checks that a client cannot mistake a list that breaks after its first byte for a complete one.
func TestFaultInTheMiddle(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	fill(t, s, project, 8000)
	s.BreakRows(t, "entries", "entry_data", "entry_id = 'en_0000001'") // the last row of the list
	s.CheckBrokenOff(t, s.Keys.Key(project), "/projects/pr_1/entries?limit=8000", "application/json", "application/x-ndjson")
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

// lock locks a table, so that the service's statements wait for it. The lock ends with t, or when the test calls unlock.
func lock(t *testing.T, s *servicetest.Service, table string) (unlock func()) {
	t.Helper()
	conn := pgtest.Connect(t, s.DB.OwnerURL)
	if _, err := conn.Exec(t.Context(), `BEGIN; LOCK TABLE `+table); err != nil {
		t.Fatal(err)
	}
	return func() { _ = conn.Close(context.Background()) }
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
	t.Parallel()
	s := start(t, map[string]string{"DATABASE_MAX_CONNS": "2", "WRITE_TIMEOUT": "1s", "ANSWER_MEMORY": "0"})
	key := s.Keys.Key(project)
	fill(t, s, project, 4000)
	// The answers exceed the buffers of their connections.
	s.Exec(t, `UPDATE entries SET entry_data = '{"large":"' || repeat('x', 4000) || '"}'`)
	const readers = 8 // more than the database connections
	var stalled sync.WaitGroup
	for range readers {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(conn, "GET /projects/pr_1/entries?limit=4000 HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\n\r\n", key)
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
	t.Parallel()
	s := start(t, nil)
	key := s.Keys.Key(project)
	fill(t, s, project, 10)
	lock(t, s, "entries")
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
	t.Parallel()
	s := start(t, map[string]string{"DATABASE_MAX_CONNS": "1", "DATABASE_ACQUIRE_TIMEOUT": "200ms"})
	key := s.Keys.Key(project)
	fill(t, s, project, 10)
	unlock := lock(t, s, "entries")
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
	unlock()
	if status := eventually.Receive(t, "an answer for who had the connection", first); status != 200 {
		t.Errorf("who had the connection: %d", status)
	}
}
