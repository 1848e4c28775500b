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

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
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
// last record on another connection, and is complete.
func TestListCutAtTheDatabase(t *testing.T) {
	f := startBreakable(t, nil)
	cuts := 0
	for _, path := range []string{
		"/projects/pr_1/entries?limit=4000&direction=ASC",
		"/projects/pr_1/entries?limit=4000&sort=created_at",
		"/projects/pr_1/entries-page-views?limit=4000",
	} {
		whole := f.Get(t, f.key, path)
		for _, after := range []int64{150_000, 300_000, 450_000} {
			if after > int64(len(whole.Body))/2 {
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

// TestListCutForGood checks that the client sees a broken transfer if the database does not come back.
func TestListCutForGood(t *testing.T) {
	f := startBreakable(t, nil)
	fill(t, f.Service, "pr_2", 40_000)
	key := f.Keys.Key("pr_2")
	for _, accept := range []string{"application/json", "application/x-ndjson"} {
		resp := export(t, f.Service, key, "/projects/pr_2/entries?limit=40000")
		if _, err := io.ReadFull(resp.Body, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		f.postgres.Refuse()
		begin := time.Now()
		if _, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Errorf("%s: a broken list looks complete", accept)
		} else if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s: the connection ended after %v", accept, took)
		}
		f.postgres.Heal()
		servicetest.Eventually(t, 10*time.Second, "lists are whole again", func() bool {
			a := f.Get(t, key, "/projects/pr_2/entries?limit=2000")
			return a.Status == 200 && a.Err == nil
		})
	}
}

// TestClientCutOff resets the client's connection in the middle of a list. The statement ends, and other clients are
// not affected.
func TestClientCutOff(t *testing.T) {
	s := start(t, nil)
	key := s.Keys.Key(project)
	fill(t, s, project, 40_000)
	way := faulttest.NewProxy(t, strings.TrimPrefix(s.URL, "http://"))
	load := faulttest.Start(t, s.URL, faulttest.LoadOptions{Key: key, Paths: []string{"/projects/pr_1/entries?limit=100"}, Clients: 2})
	for range 10 {
		way.CutAfter(500_000)
		c := faulttest.Dial(t, "http://"+way.Addr())
		c.Say("GET /projects/pr_1/entries?limit=40000 HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + key + "\r\n\r\n")
		if _, _, _, err := c.Answer("GET"); err == nil {
			t.Fatal("a broken transfer looks complete")
		}
	}
	servicetest.Eventually(t, 10*time.Second, "no statement is left", func() bool { return queries(t, s) == 0 })
	report := load.Stop()
	report.Check(t, "clients cut off")
	if report.Refused > 0 || report.Broken > 0 {
		t.Errorf("others noticed: %v", report)
	}
}

// TestDiskFull checks that ingest answers 503 while the database's disk is full, and that the sender can retry once
// there is space. Acknowledged records are kept, and reads continue.
func TestDiskFull(t *testing.T) {
	disk, grow := faulttest.SmallDisk(t, 40<<20)
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
	s := startOn(t, b, shortTimeouts(nil))
	key := b.Keys.Key(project)
	const perBody = 2000
	send := func(n int) servicetest.Answer {
		var body bytes.Buffer
		for i := n * perBody; i < (n+1)*perBody; i++ {
			fmt.Fprintf(&body, `{"entry_id":"en_%07d","group_id":"g","project_id":"pr_1","embeddable_id":"e","contact_id":"c","created_at":"2022-01-01T00:00:00Z","updated_at":"2022-01-01T00:00:01Z","entry_data":"{\"t\":\"%s\"}"}`+"\n", i, strings.Repeat("lorem ipsum ", 40))
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
	servicetest.Eventually(t, 10*time.Second, "entries are taken in", func() bool {
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

// TestWalkBetweenPrimaryAndStandby follows cursors while the reads move between the primary and a standby that lags,
// dies and comes back. No record that both have is missing or comes twice.
func TestWalkBetweenPrimaryAndStandby(t *testing.T) {
	primary := pgtest.PrivatePrimary(t, nil)
	b, _ := servicetest.NewBreakable(t, store.Schema()) // only its keys and its Redis are used
	b.DB = primary.Database(t, store.Schema())
	standby := primary.Standby(t, nil)
	s := startOn(t, b, shortTimeouts(map[string]string{"READ_DATABASE_URL": standby.Here(b.DB).ReaderURL, "MAX_REPLICA_LAG": "200ms"}))
	key := b.Keys.Key(project)
	const n = 3000
	fill(t, s, project, n)
	const in, out = `lectern_replica_up{node="standby-1"} 1`, `lectern_replica_up{node="standby-1"} 0`
	await := func(state string) {
		t.Helper()
		servicetest.Eventually(t, 20*time.Second, state, func() bool {
			return strings.Contains(string(s.DoInternal(t, servicetest.Request{Path: "/metrics"}).Body), state)
		})
	}
	await(in)
	for _, direction := range []string{"ASC", "DESC"} {
		page, extra := 0, 0
		all := walk(t, s, key, "/projects/pr_1/entries?limit=200&direction="+direction, func() {
			page++
			// Both ends of the list grow on the primary during the walk.
			extra++
			s.MustIngest(t, "entries", newEntry(project, fmt.Sprintf("new_%s_%d", direction, extra), time.Date(2021, 1, 1, 0, 0, extra, 0, time.UTC)),
				newEntry(project, fmt.Sprintf("newer_%s_%d", direction, extra), time.Date(2023, 1, 1, 0, 0, extra, 0, time.UTC)))
			switch page {
			case 2:
				superuser(t, standby, b.DB.Name, `SELECT pg_wal_replay_pause()`)
				s.MustIngest(t, "entries", newEntry(project, "paused_"+direction, time.Date(2023, 2, 1, 0, 0, 0, 0, time.UTC)))
				await(out)
			case 5:
				superuser(t, standby, b.DB.Name, `SELECT pg_wal_replay_resume()`)
				await(in)
			case 7:
				if err := standby.Kill(); err != nil {
					t.Fatal(err)
				}
			case 9:
				if err := standby.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				await(in)
			}
		})
		seen := map[string]int{}
		for _, id := range ids(all, "entry_id") {
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
	conn, err := pgx.Connect(t.Context(), primary.AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), `SELECT NOT pg_is_in_recovery()`).Scan(&here); err != nil || !here {
		t.Errorf("the primary: %v, %v", here, err)
	}
}
