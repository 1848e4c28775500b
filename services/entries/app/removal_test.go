package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// internalProject is the start of the paths of the removals of project, and internalPath that of any project.
const internalProject = "/internal/projects/" + project

func internalPath(project string) string { return "/internal/projects/" + project }

// administer sends a request of an administrator. If body is empty, the request has none.
func administer(t testing.TB, s *servicetest.Service, method, path, body string) servicetest.Answer {
	t.Helper()
	r := servicetest.Request{Method: method, Path: path, Key: servicetest.AdminKey}
	if body != "" {
		r.Body, r.Headers = strings.NewReader(body), map[string]string{"Content-Type": "application/json"}
	}
	return s.DoInternal(t, r)
}

// checkRemoval checks that a removal is answered 200 with want.
func checkRemoval(t testing.TB, s *servicetest.Service, method, path, body, want string) {
	t.Helper()
	if a := administer(t, s, method, path, body); a.Status != 200 || strings.TrimSpace(string(a.Body)) != want || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s %s %s: %d %s; want %s", method, path, body, a.Status, a.Body, want)
	}
}

// purgeBody is the body of a purge.
func purgeBody(before time.Time) string {
	return fmt.Sprintf(`{"updated_before": %q}`, before.Format(time.RFC3339Nano))
}

// queryInt reads one integer as the owner of the service's database.
func queryInt(t testing.TB, s *servicetest.Service, sql string, args ...any) (n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DB.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// TestErase checks that an entry, and all entries and events of a contact, are removed for good. Followers see the
// removal, and ingest refuses the removed records later.
func TestErase(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	feed := feedOf(project)
	internalProject := internalPath(project)
	of := func(contact string, o object) object { return servicetest.With(o, "contact_id", contact) }
	view := func(contact, entry, event string) object {
		return servicetest.With(of(contact, pageView(project, entry, 1, at(1))), "event_id", event)
	}
	s.MustIngest(t, "entries",
		of("co_a", newEntry(project, "own", at(1))), of("co_b", newEntry(project, "shared", at(1))), of("co_b", newEntry(project, "other", at(1))))
	s.MustIngest(t, "events", view("co_a", "own", "v1"), view("co_b", "own", "v2"), view("co_a", "shared", "v3"), view("co_b", "shared", "v4"),
		view("co_a", "never-came", "v5"), view("co_b", "other", "v6"))
	s.MustIngest(t, "entries", of("co_a", newEntry(project+"_other", "own", at(1))))
	_, before := changesOf(t, s, key, feed)

	checkRemoval(t, s, "DELETE", internalProject+"/contacts/co_a", "", `{"entries":2,"events":5}`)
	checkRemoval(t, s, "DELETE", internalProject+"/contacts/co_a", "", `{"entries":0,"events":0}`)
	checkRemoval(t, s, "DELETE", internalProject+"/contacts/nobody", "", `{"entries":0,"events":0}`)
	news, _ := changesOf(t, s, key, feed+"?cursor="+before.Header.Get("X-Next-Cursor"))
	got := map[any]any{}
	for _, c := range news {
		if removed, err := time.Parse(time.RFC3339Nano, fmt.Sprint(c["removed_at"])); err != nil || time.Since(removed) > time.Minute || len(c) != 5 {
			t.Errorf("%v", c)
		}
		got[c["entry_id"]] = c["change"].(string) + " " + c["reason"].(string)
	}
	if diff := cmp.Diff(map[any]any{"own": "entry_removed erased", "shared": "entry_removed erased", "never-came": "entry_removed erased"}, got); diff != "" {
		t.Errorf("the feed: %s", diff)
	}
	if got := kinds(followFeed(t, s, key, feed+"?limit=100")[:2]); got != "entry other, event v6" {
		t.Errorf("the remaining changes are %s", got)
	}
	if a := s.Get(t, key, "/projects/"+project+"/entries/own"); a.Status != 404 {
		t.Errorf("an erased entry: %d", a.Status)
	}
	if a := s.Get(t, s.Keys.Key(project+"_other"), "/projects/"+project+"_other/entries/own"); a.Status != 200 {
		t.Errorf("another project's entry of that id: %d", a.Status)
	}

	in := s.Ingest(t, "entries", newEntry(project, "fresh", at(2)), newEntry(project, "own", at(2)), newEntry(project, "never-came", at(2)))
	if in.Stored != 1 || in.Rejected != 2 || in.Rejects[0].Line != 2 || in.Rejects[0].Code != "erased" || in.Rejects[1].Code != "erased" {
		t.Errorf("entries sent again: %+v", in)
	}
	if in := s.Ingest(t, "events", view("co_b", "shared", "v7")); in.Rejected != 1 || in.Rejects[0].Code != "erased" {
		t.Errorf("an event sent again: %+v", in)
	}

	// One entry, an entry that is removed before it arrives, and an id that needs escaping.
	checkRemoval(t, s, "DELETE", internalProject+"/entries/other", "", `{"entries":1,"events":1}`)
	checkRemoval(t, s, "DELETE", internalProject+"/entries/other", "", `{"entries":0,"events":0}`)
	checkRemoval(t, s, "DELETE", internalProject+"/entries/"+url.PathEscape("ü/% later"), "", `{"entries":0,"events":0}`)
	if in := s.Ingest(t, "entries", newEntry(project, "ü/% later", at(2))); in.Rejected != 1 {
		t.Errorf("an entry that was erased before it came: %+v", in)
	}
	last, _ := changesOf(t, s, key, feed+"?types=entry_removed")
	if len(last) != 5 {
		t.Errorf("%d tombstones: %v", len(last), last)
	}
}

// TestEraseIsSeenByWaiting checks that a removal answers a long poll at once.
func TestEraseIsSeenByWaiting(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key := s.Keys.Key(project)
	s.MustIngest(t, "entries", newEntry(project, "a", at(1)))
	_, a := changesOf(t, s, key, feed)
	answered := make(chan string, 1)
	go func() {
		list, _ := changesOf(t, s, key, feed+"?wait=30&cursor="+a.Header.Get("X-Next-Cursor"))
		answered <- kinds(list)
	}()
	eventually.True(t, "a request waits", func() bool { return metricOf(t, s, "lectern_feed_waiting") == "1" })
	checkRemoval(t, s, "DELETE", internalProject+"/entries/a", "", `{"entries":1,"events":0}`)
	if got := <-answered; got != "entry_removed a" {
		t.Errorf("a request that waited got %s", got)
	}
}

// TestPurge checks that a purge removes at most 10,000 entries a request that are older than a time. It also removes
// orphans: events without an entry, if all events of their entry id are old. A purged id may come back.
func TestPurge(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	feed := feedOf(project)
	internalProject := internalPath(project)
	fill(t, s, project, 10_600) // entries 2n and 2n+1 are updated n seconds into the year
	view := func(entry string, n int) object { return pageView(project, entry, n, at(n)) }
	s.MustIngest(t, "events", view("old-orphan", 1), view("old-orphan", 2), view("young-orphan", 1), view("young-orphan", 50_000))
	limit := at(5100)
	dry := strings.Replace(purgeBody(limit), "}", `, "dry_run": true}`, 1)

	// Entries 1 to 10,199 are old, each with a page view, and so is an orphan.
	checkRemoval(t, s, "POST", internalProject+"/purge", dry, `{"entries":10199,"events":10201,"dry_run":true}`)
	first := purge(t, s, internalProject, limit, "")
	if first.Cursor == "" || first != (purged{Entries: 10000, Events: 10000, More: true, Cursor: first.Cursor}) {
		t.Errorf("the first request: %+v", first)
	}
	if second := purge(t, s, internalProject, limit, first.Cursor); second != (purged{Entries: 199, Events: 201}) {
		t.Errorf("the second request: %+v", second)
	}
	checkRemoval(t, s, "POST", internalProject+"/purge", purgeBody(limit), `{"entries":0,"events":0}`)
	checkRemoval(t, s, "POST", internalProject+"/purge", dry, `{"entries":0,"events":0,"dry_run":true}`)

	left, _ := s.List(t, key, "/projects/"+project+"/entries?limit=1000&direction=ASC")
	if len(left) != 401 || left[0]["entry_id"] != "en_0010200" {
		t.Errorf("%d entries are left, from %v", len(left), left[0]["entry_id"])
	}
	if n := queryInt(t, s, `SELECT count(*) FROM events WHERE project_id = $1 AND entry_id = 'young-orphan'`, project); n != 2 {
		t.Errorf("%d events of an orphan with a young event are left; want both", n)
	}
	removed := followFeed(t, s, key, feed+"?types=entry_removed&limit=5000")
	if len(removed) != 10_200 || removed[0]["reason"] != "purged" {
		t.Errorf("%d removals, first %v", len(removed), removed[0])
	}

	s.MustIngest(t, "entries", newEntry(project, "en_0000001", at(9000)))
	if a := s.Get(t, key, "/projects/"+project+"/entries/en_0000001"); a.Status != 200 {
		t.Errorf("a purged entry that came back: %d", a.Status)
	}
}

// purged is the answer to a purge.
type purged struct {
	Entries, Events int
	More            bool
	Cursor          string
}

// purge sends a request to purge, from the cursor of the answer before.
func purge(t testing.TB, s *servicetest.Service, internalProject string, before time.Time, cursor string) (p purged) {
	t.Helper()
	body := strings.Replace(purgeBody(before), "}", fmt.Sprintf(`, "cursor": %q}`, cursor), 1)
	if cursor == "" {
		body = purgeBody(before)
	}
	a := administer(t, s, "POST", internalProject+"/purge", body)
	if err := json.Unmarshal(a.Body, &p); a.Status != 200 || err != nil {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return p
}

// TestLongPurgeOfManyEvents checks that one request searches a part of the events, and the next one goes on there.
func TestLongPurgeOfManyEvents(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	s, project, _ := shared(t)
	internalProject := internalPath(project)
	fill(t, s, project, 300_000)
	s.MustIngest(t, "events", pageView(project, "orphan", 1, at(1)))
	var want, got []purged
	want = append(want, purged{Entries: 2999, Events: 2999, More: true}, purged{Events: 1}, purged{}, purged{})
	for range 2 { // the second round finds nothing, which must not make a client without a cursor repeat its request
		cursor := ""
		for {
			began := time.Now()
			p := purge(t, s, internalProject, at(1500), cursor)
			t.Logf("%+v after %v", p, time.Since(began))
			cursor, p.Cursor = p.Cursor, ""
			if got = append(got, p); cursor == "" {
				break
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPurgeBesideIngest checks that an interrupted purge can be repeated, and that ingest continues at the same time.
func TestPurgeBesideIngest(t *testing.T) {
	t.Parallel()
	s, project, _ := shared(t)
	internalProject := internalPath(project)
	fill(t, s, project, 4000)
	body := purgeBody(at(100_000))
	var sending sync.WaitGroup
	stop := make(chan struct{})
	sent := 0
	sending.Go(func() {
		for ; ; sent++ {
			select {
			case <-stop:
				return
			default:
				// Each record updates an entry during the purge, so that it is no longer old.
				s.MustIngest(t, "entries", newEntry(project, fmt.Sprintf("en_%07d", 4000-sent), at(200_000)))
			}
		}
	})
	for range 5 { // clients that disconnect in the middle
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.InternalURL+internalProject+"/purge", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", servicetest.AdminKey)
		r.Header.Set("Content-Type", "application/json")
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
		cancel()
	}
	close(stop)
	sending.Wait()
	if a := administer(t, s, "POST", internalProject+"/purge", body); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if sent == 0 {
		t.Fatal("nothing was sent meanwhile")
	}
	young := queryInt(t, s, `SELECT count(*) FROM entries WHERE project_id = $1 AND updated_at > '2022-01-02'`, project)
	all := queryInt(t, s, `SELECT count(*) FROM entries WHERE project_id = $1`, project)
	views := queryInt(t, s, `SELECT count(*) FROM events v WHERE project_id = $1 AND NOT EXISTS (SELECT FROM entries e WHERE e.project_id = $1 AND e.entry_id = v.entry_id)`, project)
	if young != sent || all != sent || views != 0 {
		t.Errorf("%d entries were sent; %d young and %d in all are left, and %d events without entry", sent, young, all, views)
	}
}

// TestRemoveProject checks that all data of a project is removed, including its tombstones and counter, and no data of
// another project. Later sequence numbers are greater than before, and a reader of the removed ones gets 410.
func TestRemoveProject(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	feed := feedOf(project)
	internalProject := internalPath(project)
	fill(t, s, project, 10_400)
	other := project + "_other"
	fill(t, s, other, 5)
	s.MustIngest(t, "events", pageView(project, "orphan", 1, at(1)))
	checkRemoval(t, s, "DELETE", internalProject+"/entries/en_0000001", "", `{"entries":1,"events":1}`)
	_, a := changesOf(t, s, key, feed+"?limit=1")

	checkRemoval(t, s, "DELETE", internalProject, "", `{"entries":10000,"events":10000,"more":true}`)
	checkRemoval(t, s, "DELETE", internalProject, "", `{"entries":399,"events":400}`)
	checkRemoval(t, s, "DELETE", internalProject, "", `{"entries":0,"events":0}`)
	checkRemoval(t, s, "DELETE", "/internal/projects/unknown", "", `{"entries":0,"events":0}`)
	for _, table := range []string{"entries", "events", "removals", "project_changes", "lost_numbers"} {
		if n := queryInt(t, s, `SELECT count(*) FROM `+table+` WHERE project_id IN ($1, 'unknown')`, project); n != 0 {
			t.Errorf("%s: %d rows are left", table, n)
		}
	}
	if n := queryInt(t, s, `SELECT count(*) FROM entries WHERE project_id = $1`, other); n != 5 {
		t.Errorf("another project has %d entries; want 5", n)
	}
	old := feed + "?cursor=" + a.Header.Get("X-Next-Cursor")
	if list, _ := changesOf(t, s, key, old); kinds(list) != "" {
		t.Errorf("after the removal an old cursor gives %s", kinds(list))
	}
	s.MustIngest(t, "entries", newEntry(project, "new", at(1)))
	if a := s.Get(t, key, old); a.Status != http.StatusGone {
		t.Errorf("in the new life an old cursor gives %d %s", a.Status, a.Body)
	}
}

func TestRemovalRefuses(t *testing.T) {
	t.Parallel()
	s, project, _ := shared(t)
	internalProject := internalPath(project)
	s.MustIngest(t, "entries", newEntry(project, "a", at(1)))
	purge := internalProject + "/purge"
	long := strings.Repeat("x", 257)
	for _, tt := range []struct {
		name, method, path, body string
		status                   int
		code                     string
		message                  []string // parts of the error: the given value and the allowed ones
	}{
		{"no date", "POST", purge, `{}`, 400, "invalid_body", []string{`has no "updated_before"`, `"dry_run"`}},
		{"null", "POST", purge, `{"updated_before":null}`, 400, "invalid_body", []string{`has no "updated_before"`}},
		{"bad date", "POST", purge, `{"updated_before":"yesterday"}`, 400, "invalid_body", []string{`"yesterday"`, "in the past, such as 2025-01-31T00:00:00Z"}},
		{"number", "POST", purge, `{"updated_before":1640995200}`, 400, "invalid_body", []string{"1640995200", "a date and time"}},
		{"future", "POST", purge, `{"updated_before":"2222-01-01"}`, 400, "invalid_body", []string{"2222-01-01", "in the past"}},
		{"dry_run is a text", "POST", purge, `{"updated_before":"2022-01-01","dry_run":"yes"}`, 400, "invalid_body", []string{`"yes"`, "true or false"}},
		{"dry_run is a number", "POST", purge, `{"updated_before":"2022-01-01","dry_run":1}`, 400, "invalid_body", []string{"true or false"}},
		{"cursor", "POST", purge, `{"updated_before":"2022-01-01","cursor":"AQ"}`, 400, "invalid_body", []string{`"AQ"`, "the cursor of the answer before"}},
		{"cursor is a number", "POST", purge, `{"updated_before":"2022-01-01","cursor":1}`, 400, "invalid_body", []string{"the cursor of the answer before"}},
		{"unknown field", "POST", purge, `{"updated_before":"2022-01-01","dryrun":true}`, 400, "invalid_body", []string{`"dryrun"`, `"dry_run"`}},
		{"field twice", "POST", purge, `{"updated_before":"2022-01-01","updated_before":"2023-01-01"}`, 400, "invalid_body", nil},
		{"array", "POST", purge, `[]`, 400, "invalid_body", []string{"not a JSON object"}},
		{"not JSON", "POST", purge, `updated_before=2022`, 400, "invalid_body", []string{"not valid JSON"}},
		{"blank", "POST", purge, ` `, 400, "invalid_body", nil},
		{"no body", "POST", purge, ``, 415, "unsupported_media_type", []string{"application/json"}},
		{"too long", "POST", purge, `{"updated_before":"` + strings.Repeat("2", 70_000) + `"}`, 413, "payload_too_large", []string{"65536"}},
		{"parameter", "POST", purge + "?dry_run=true", `{"updated_before":"2022-01-01"}`, 400, "invalid_parameter", []string{`"dry_run"`}},
		{"parameter of an erasure", "DELETE", internalProject + "/entries/a?force=1", "", 400, "invalid_parameter", []string{`"force"`}},
		{"parameter of a contact", "DELETE", internalProject + "/contacts/co_1?force=1", "", 400, "invalid_parameter", []string{`"force"`}},
		{"parameter of a project", "DELETE", internalProject + "?force=1", "", 400, "invalid_parameter", []string{`"force"`}},
		{"long entry", "DELETE", internalProject + "/entries/" + long, "", 400, "invalid_parameter", []string{"256 bytes"}},
		{"long contact", "DELETE", internalProject + "/contacts/" + long, "", 400, "invalid_parameter", []string{"256 bytes"}},
		{"NUL", "DELETE", internalProject + "/contacts/a%00", "", 400, "invalid_parameter", []string{"NUL"}},
		{"long project", "DELETE", "/internal/projects/" + long, "", 400, "invalid_parameter", []string{"256 bytes"}},
		{"no contact", "DELETE", internalProject + "/contacts/", "", 404, "route_not_found", nil},
		{"no entry", "DELETE", internalProject + "/entries", "", 404, "route_not_found", nil},
		{"read", "GET", internalProject + "/entries/a", "", 405, "method_not_allowed", []string{"DELETE"}},
		{"purge by DELETE", "DELETE", purge, "", 405, "method_not_allowed", []string{"POST"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := administer(t, s, tt.method, tt.path, tt.body)
			var got struct {
				Error struct{ Code, Message string }
			}
			a.JSON(t, &got)
			if a.Status != tt.status || got.Error.Code != tt.code {
				t.Errorf("%d %s; want %d %s", a.Status, a.Body, tt.status, tt.code)
			}
			for _, part := range tt.message {
				if !strings.Contains(got.Error.Message, part) {
					t.Errorf("%q does not say %s", got.Error.Message, part)
				}
			}
		})
	}
	if n := queryInt(t, s, `SELECT count(*) FROM entries WHERE project_id = $1`, project); n != 1 {
		t.Errorf("%d entries; want the one from before", n)
	}
}

// removals are all operations that remove data.
var removals = []struct{ method, path, body string }{
	{"DELETE", internalProject + "/entries/a", ""},
	{"DELETE", internalProject + "/contacts/co_1", ""},
	{"POST", internalProject + "/purge", `{"updated_before":"2023-01-01"}`},
	{"DELETE", internalProject, ""},
}

// TestRemovalIsForAdministrators checks that only administrators can remove data, and only on the internal port. The
// service needs the database role that may delete, and no other role may.
func TestRemovalIsForAdministrators(t *testing.T) {
	t.Parallel()
	b := servicetest.NewBacking(t, store.Schema())
	s := startOn(t, b, nil)
	without := startOn(t, b, map[string]string{"REMOVE_DATABASE_URL": ""})
	closed := startOn(t, b, map[string]string{"ADMIN_API_KEYS": ""})
	byIngest := startOn(t, b, map[string]string{"REMOVE_DATABASE_URL": b.DB.IngestURL})
	byReader := startOn(t, b, map[string]string{"REMOVE_DATABASE_URL": b.DB.ReaderURL})
	s.MustIngest(t, "entries", newEntry(project, "a", at(1)))
	s.MustIngest(t, "events", pageView(project, "a", 1, at(1)))
	for _, op := range removals {
		for _, key := range []string{"", "x", "tester=" + servicetest.AdminKey, servicetest.IngestKey, servicetest.InternalKey, b.Keys.Key(project)} {
			if a := s.DoInternal(t, servicetest.Request{Method: op.method, Path: op.path, Key: key}); a.Status != 401 {
				t.Errorf("%s %s with the key %q: %d", op.method, op.path, key, a.Status)
			}
		}
		if a := administer(t, closed, op.method, op.path, op.body); a.Status != 401 {
			t.Errorf("%s %s where no admin key is set: %d", op.method, op.path, a.Status)
		}
		if a := administer(t, without, op.method, op.path, op.body); a.Status != 503 || !strings.Contains(string(a.Body), "REMOVE_DATABASE_URL is not set") {
			t.Errorf("%s %s without a role: %d %s", op.method, op.path, a.Status, a.Body)
		}
		for name, other := range map[string]*servicetest.Service{"ingest": byIngest, "reader": byReader} {
			if a := administer(t, other, op.method, op.path, op.body); a.Status != 500 || !strings.Contains(other.Log(), "permission denied") {
				t.Errorf("%s %s by the role %s: %d %s", op.method, op.path, name, a.Status, a.Body)
			}
		}
		if a := s.Do(t, servicetest.Request{Method: op.method, Path: op.path, Key: servicetest.AdminKey}); a.Status != 404 {
			t.Errorf("%s %s on the public port: %d", op.method, op.path, a.Status)
		}
	}
	if n := queryInt(t, s, `SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM events)`); n != 2 {
		t.Errorf("%d records; want both from before", n)
	}
}

// TestRemovalAudit checks that each removal has one audit line with the number of removed records and without personal
// data.
func TestRemovalAudit(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"LOG_LEVEL": "error"})
	s.MustIngest(t, "entries", newEntry(project, "a", at(1)))
	for _, op := range removals {
		administer(t, s, op.method, op.path, op.body)
	}
	administer(t, s, "POST", internalProject+"/purge", `{}`)
	if err := s.Stop(); err != nil { // flushes the log
		t.Fatal(err)
	}
	none := object{"entries": 0.0, "events": 0.0}
	line := func(action, outcome string, removed any) object {
		o := object{"actor": "tester", "action": action, "project": project, "outcome": outcome}
		if removed != nil {
			o["removed"] = removed
		}
		return o
	}
	want := []object{
		line("entry.erase", "done", object{"entries": 1.0, "events": 0.0}), line("contact.erase", "done", none),
		line("entries.purge", "done", none), line("project.remove", "done", none), line("entries.purge", "invalid_body", nil),
	}
	var got []object
	for text := range strings.Lines(s.Log()) {
		var l object
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, name := range []string{"time", "level", "msg", "request_id", "service"} {
			delete(l, name)
		}
		got = append(got, l)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRemovalWithoutRoom checks that a removal is answered 503 if the database refuses a write, for example because its
// disk is full. Nothing is lost or half done.
func TestRemovalWithoutRoom(t *testing.T) {
	t.Parallel()
	if pgtest.Server(t).Citus() {
		t.Skip("the trigger below is of plain Postgres")
	}
	s := start(t, map[string]string{"INGEST_RETRY_TIME": "300ms"})
	s.MustIngest(t, "entries", newEntry(project, "a", at(1)))
	s.MustIngest(t, "events", pageView(project, "a", 1, at(1)))
	full := func(table string) {
		s.Exec(t, `CREATE OR REPLACE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$`)
		s.Exec(t, `CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON `+table+` FOR EACH ROW EXECUTE FUNCTION full_disk()`)
	}
	for _, table := range []string{"project_changes", "removals"} {
		full(table)
		for _, op := range removals[:3] {
			if a := administer(t, s, op.method, op.path, op.body); a.Status != 503 || a.Header.Get("Retry-After") == "" || strings.Contains(string(a.Body), "space") {
				t.Errorf("%s is full: %s %s: %d %s", table, op.method, op.path, a.Status, a.Body)
			}
		}
		if table == "project_changes" {
			line, _ := json.Marshal(newEntry(project, "b", at(1))) // it has only strings, so Marshal cannot fail
			a := s.DoInternal(t, servicetest.Request{Method: "POST", Path: "/internal/entries", Key: servicetest.IngestKey, Body: strings.NewReader(string(line))})
			if a.Status != 503 {
				t.Errorf("ingest: %d %s", a.Status, a.Body)
			}
		}
		if n := queryInt(t, s, `SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM events)`); n != 2 {
			t.Errorf("%s is full: %d records; want both from before", table, n)
		}
		s.Exec(t, `DROP TRIGGER full_disk ON `+table)
	}
	checkRemoval(t, s, "DELETE", internalProject+"/contacts/co_1", "", `{"entries":1,"events":1}`)
}
