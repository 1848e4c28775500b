package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// export requests a long list and returns the response before its body is read.
func export(t *testing.T, s *servicetest.Service, key, path string) *http.Response {
	t.Helper()
	req, err := http.NewRequest("GET", s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 {
		t.Fatalf("%s: %d", path, resp.StatusCode)
	}
	return resp
}

// TestListCutAtTheDatabase resets the connection to the database in the middle of a chunk. The list continues after its
// last record on another connection, and is complete. A funnel starts over.
func TestListCutAtTheDatabase(t *testing.T) {
	t.Parallel()
	f := startBreakable(t, nil)
	f.Exec(t, `INSERT INTO progress (project_id, entry_id, part, several, embeddable_id, created_at, updated_at, furthest, ended, cells, first_view, latest_view)
		SELECT project_id, entry_id, 0, false, embeddable_id, created_at, updated_at, 1, false, '\x0200', 0, 0 FROM entries`)
	cuts := 0
	for _, path := range []string{
		"/projects/pr_1/entries?limit=4000&direction=ASC",
		"/projects/pr_1/entries?limit=4000&sort=created_at",
		"/projects/pr_1/entries-page-views?limit=4000",
		"/projects/pr_1/entries-funnel?embeddable_id=emb_1",
	} {
		whole := f.Get(t, f.key, path)
		for _, after := range []int64{150_000, 300_000, 450_000} {
			if strings.Contains(path, "funnel") {
				after /= 10
			} else if after > int64(len(whole.Body))/2 {
				break
			}
			f.postgres.CutAfter(after)
			a := f.Get(t, f.key, path)
			f.postgres.Heal()
			if cuts++; f.postgres.Cuts() != cuts {
				t.Fatalf("%s: %d connections were cut of %d", path, f.postgres.Cuts(), cuts)
			}
			if a.Status != 200 || a.Err != nil || !bytes.Equal(a.Body, whole.Body) {
				t.Errorf("%s, cut after %d bytes: %d, %v, %d bytes of %d", path, after, a.Status, a.Err, len(a.Body), len(whole.Body))
			}
		}
	}
}

// TestDiskFull checks that ingest answers 503 while the database's disk is full, and that the sender can retry once
// there is space. Acknowledged records are kept, and reads continue.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	disk, grow := faulttest.SmallDisk(t, 32<<20)
	b, server := servicetest.NewBreakable(t, store.Schema())
	owner, err := os.Stat(server.Dir())
	if err != nil {
		t.Fatal(err)
	}
	// Postgres needs a folder of its own, not the root of a mount.
	place := disk + "/tables"
	if err := errors.Join(os.Mkdir(place, 0o700),
		os.Chown(place, int(owner.Sys().(*syscall.Stat_t).Uid), int(owner.Sys().(*syscall.Stat_t).Gid))); err != nil {
		t.Fatal(err)
	}
	superuser(t, server, "", `CREATE TABLESPACE small LOCATION '`+place+`'`)
	superuser(t, server, "", `ALTER DATABASE "`+b.DB.Name+`" SET TABLESPACE small`)
	s := startOn(t, b, map[string]string{"INGEST_RETRY_TIME": "300ms"})
	key := b.Keys.Key(project)
	const perBody = 700
	send := func(n int) servicetest.Answer {
		var body bytes.Buffer
		for i := n * perBody; i < (n+1)*perBody; i++ {
			fmt.Fprintf(&body, `{"entry_id":"en_%07d","group_id":"g","project_id":"pr_1","embeddable_id":"e","contact_id":"c","created_at":"2022-01-01T00:00:00Z","updated_at":"2022-01-01T00:00:01Z","entry_data":"{\"t\":\"%s\"}"}`+"\n", i, strings.Repeat("lorem ipsum ", 120))
		}
		return s.DoInternal(t, servicetest.Request{Method: "POST", Path: "/internal/entries", Key: servicetest.IngestKey, Body: &body})
	}
	sent := 0
	for {
		a := send(sent)
		if a.Status == 503 {
			break
		}
		if a.Status != 200 {
			t.Fatalf("body %d: %d %s", sent, a.Status, a.Body)
		}
		if sent++; sent > 100 {
			t.Fatal("the disk does not fill up")
		}
	}
	if sent == 0 {
		t.Fatal("the disk was full from the beginning")
	}
	for range 3 {
		if a := send(sent); a.Status != 503 || a.Header.Get("Retry-After") == "" {
			t.Errorf("with a full disk: %d %s", a.Status, a.Body)
		}
		if a := s.Get(t, key, "/projects/pr_1/entries?limit=1000"); a.Status != 200 || a.Err != nil {
			t.Errorf("a read with a full disk: %d", a.Status)
		}
	}
	grow(200 << 20)
	eventually.True(t, "entries are taken in", func() bool {
		a := send(sent)
		if a.Status != 200 && a.Status != 503 {
			t.Fatalf("with room again: %d %s", a.Status, a.Body)
		}
		return a.Status == 200
	})
	want := (sent + 1) * perBody
	t.Logf("full after %d entries", sent*perBody)
	if rows, distinct := count(t, b); rows != want || distinct != want {
		t.Errorf("%d rows, %d distinct, want %d", rows, distinct, want)
	}
}

// TestWalkBetweenPrimaryAndStandby follows cursors while the reads move between the primary and a standby that lags
// or dies and comes back. No record that both have is missing or comes twice.
func TestWalkBetweenPrimaryAndStandby(t *testing.T) {
	t.Parallel()
	primary := pgtest.PrivatePrimary(t)
	redis := redistest.Start(t)
	b := &servicetest.Backing{DB: primary.Database(t, store.Schema()), Redis: redis, Keys: authtest.New(t, redis.URL)}
	standby := primary.Standby(t)
	s := startOn(t, b, map[string]string{"READ_DATABASE_URL": standby.Here(b.DB).ReaderURL})
	key := b.Keys.Key(project)
	const n = 3000
	fill(t, s, project, n)
	const in, out = `lectern_replica_up{node="standby-1"} 1`, `lectern_replica_up{node="standby-1"} 0`
	await := func(state string) {
		t.Helper()
		eventually.True(t, state, func() bool {
			return strings.Contains(string(s.DoInternal(t, servicetest.Request{Path: "/metrics"}).Body), state)
		})
	}
	await(in)
	for _, direction := range []string{"ASC", "DESC"} {
		page, extra := 0, 0
		all := s.Walk(t, key, "/projects/pr_1/entries?limit=200&direction="+direction, func() {
			page++
			// Both ends of the list grow on the primary during the walk.
			extra++
			s.MustIngest(t, "entries", newEntry(project, fmt.Sprintf("new_%s_%d", direction, extra), time.Date(2021, 1, 1, 0, 0, extra, 0, time.UTC)),
				newEntry(project, fmt.Sprintf("newer_%s_%d", direction, extra), time.Date(2023, 1, 1, 0, 0, extra, 0, time.UTC)))
			switch fmt.Sprint(direction, " ", page) {
			case "ASC 2":
				superuser(t, standby, b.DB.Name, `SELECT pg_wal_replay_pause()`)
				s.MustIngest(t, "entries", newEntry(project, "paused_"+direction, time.Date(2023, 2, 1, 0, 0, 0, 0, time.UTC)))
				await(out)
			case "ASC 5":
				superuser(t, standby, b.DB.Name, `SELECT pg_wal_replay_resume()`)
				await(in)
			case "DESC 7":
				if err := standby.Kill(); err != nil {
					t.Fatal(err)
				}
			case "DESC 9":
				if err := standby.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				await(in)
			}
		})
		seen := map[string]int{}
		for _, id := range servicetest.Column(all, "entry_id") {
			seen[id]++
		}
		for i := 1; i <= n; i++ {
			if id := fmt.Sprintf("en_%07d", i); seen[id] != 1 {
				t.Errorf("%s: %s came %d times", direction, id, seen[id])
			}
		}
		if page < 14 {
			t.Errorf("%s: %d pages", direction, page)
		}
	}
	// The same holds in a list of several chunks.
	resp := export(t, s, key, "/projects/pr_1/entries?limit=100000&direction=ASC&updated_before=2022-12-31&updated_after=2021-12-31")
	if _, err := io.ReadFull(resp.Body, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := standby.Kill(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("a list whose standby died: %v", err)
	}
	if got := bytes.Count(rest, []byte(`"entry_id":"en_`)); got < n-10 || got > n {
		t.Errorf("%d entries", got)
	}
	var here bool
	conn := pgtest.Connect(t, primary.AdminURL())
	if err := conn.QueryRow(t.Context(), `SELECT NOT pg_is_in_recovery()`).Scan(&here); err != nil || !here {
		t.Errorf("the primary: %v, %v", here, err)
	}
}
