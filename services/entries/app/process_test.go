package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// lines returns a reader of n generated entries as NDJSON.
func lines(project string, n int) io.Reader {
	r, w := io.Pipe()
	go func() {
		b := make([]byte, 0, 1<<16)
		for i := range n {
			b = fmt.Appendf(b, `{"entry_id":"en_%09d","group_id":"gr_%d","project_id":%q,"embeddable_id":"emb_1","contact_id":"co_%d","created_at":"2022-01-01T00:00:00Z","updated_at":"2022-01-01T00:00:00.%06dZ","entry_data":"{\"email\":\"person%d@example.com\",\"answers\":[1,2,3],\"comment\":\"%s\"}"}`+"\n",
				i, i%7, project, i, i%1000000, i, strings.Repeat("lorem ipsum ", 10))
			if len(b) > 1<<15 || i == n-1 {
				if _, err := w.Write(b); err != nil {
					return
				}
				b = b[:0]
			}
		}
		_ = w.Close() // the error is always nil
	}()
	return r
}

// post sends lines and returns the answer, or an error if the service is killed in the meantime.
func post(s *servicetest.Process, body io.Reader) (string, error) {
	req, err := http.NewRequest("POST", s.InternalURL+"/internal/entries", body)
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Api-Key", servicetest.IngestKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return string(answer), err
}

func count(t *testing.T, b *servicetest.Backing) (n, distinct int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.DB.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), `SELECT count(*), count(DISTINCT entry_id) FROM entries WHERE project_id = 'pr_1'`).Scan(&n, &distinct); err != nil {
		t.Fatal(err)
	}
	return n, distinct
}

// writing counts the running statements of the ingest role.
func writing(t *testing.T, b *servicetest.Backing) (n int) {
	t.Helper()
	// Only the superuser sees the activity of other roles.
	conn, err := pgx.Connect(t.Context(), pgtest.Server(t).AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	err = conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = $1 AND application_name = 'entries ingest' AND state <> 'idle'`, b.DB.Name).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// killAndResend kills the service in the middle of an ingest of n lines, and then sends all lines to a new process.
func killAndResend(t *testing.T, b *servicetest.Backing, binary string, n int) *servicetest.Process {
	t.Helper()
	first := servicetest.StartProcess(t, b, binary, nil)
	answered := make(chan error, 1)
	go func() {
		_, err := post(first, lines(project, n))
		answered <- err
	}()
	for stored := 0; stored < n/3; stored, _ = count(t, b) {
		select {
		case err := <-answered:
			t.Fatalf("the ingest ended before it could be killed: %v", err)
		default:
		}
	}
	first.Kill()
	if err := <-answered; err == nil {
		t.Fatal("a killed ingest was acknowledged")
	}
	// Its last statement may still run.
	eventually.True(t, "no statement of ingest runs", func() bool { return writing(t, b) == 0 })
	half, _ := count(t, b)
	second := servicetest.StartProcess(t, b, binary, nil)
	answer, err := post(second, lines(project, n))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"stored":%d,"changed":0,"existing":%d,"rejected":0,"rejects":[]}`+"\n", n-half, half)
	if answer != want {
		t.Errorf("sent again: %s, want %s", answer, want)
	}
	if rows, distinct := count(t, b); rows != n || distinct != n {
		t.Errorf("%d rows, %d distinct, want %d", rows, distinct, n)
	}
	return second
}

// TestKilledIngest kills the service in the middle of an ingest. The sender retries, nothing is lost and nothing is
// stored twice.
func TestKilledIngest(t *testing.T) {
	t.Parallel()
	killAndResend(t, servicetest.NewBacking(t, store.Schema()), servicetest.Self(t), 30_000)
}

// TestLongManyLines does the same with 200,000 lines, which need no more memory than a thousand. It then exports
// all of them in one request.
func TestLongManyLines(t *testing.T) {
	needs.Long(t)
	b := servicetest.NewBacking(t, store.Schema())
	binary := servicetest.Self(t)
	small := servicetest.StartProcess(t, b, binary, nil)
	if _, err := post(small, lines("pr_small", 1000)); err != nil {
		t.Fatal(err)
	}
	_, peakOfThousand := small.Memory(t)
	small.Kill()
	const n = 200_000
	s := killAndResend(t, b, binary, n)
	_, peak := s.Memory(t)
	t.Logf("peak memory: %d MiB after 1,000 lines, %d MiB after 200,000", peakOfThousand>>20, peak>>20)
	if peak > peakOfThousand+64<<20 {
		t.Errorf("memory grew from %d to %d MiB", peakOfThousand>>20, peak>>20)
	}
	s.Service.Exec(t, "ANALYZE")
	export := servicetest.StartProcess(t, b, binary, nil)
	key := b.Keys.Key(project)
	for _, direction := range []string{"DESC", "ASC"} {
		req, err := http.NewRequest("GET", export.URL+"/projects/pr_1/entries?limit=1000000&direction="+direction, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", key)
		req.Header.Set("Accept", "application/x-ndjson")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		buffer := make([]byte, 1<<16)
		for {
			k, err := resp.Body.Read(buffer)
			rows += strings.Count(string(buffer[:k]), "\n")
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		resp.Body.Close()
		_, peak := export.Memory(t)
		t.Logf("export of 200,000 %s: peak memory %d MiB", direction, peak>>20)
		// make bench measures the exact figure. This bound only detects memory that grows, even on a busy machine.
		if rows != n || peak > 96<<20 {
			t.Errorf("%s: %d rows, peak memory %d MiB", direction, rows, peak>>20)
		}
	}
}
