package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// feed is the path of the change feed of project, and feedOf that of any project.
const feed = "/projects/" + project + "/entries-changes"

func feedOf(project string) string { return "/projects/" + project + "/entries-changes" }

// changesOf reads one page of a feed.
func changesOf(t testing.TB, s *servicetest.Service, key, path string) ([]object, servicetest.Answer) {
	t.Helper()
	return s.List(t, key, path)
}

// kinds summarizes changes: the type, and the id of the entry or event.
func kinds(changes []object) string {
	var out []string
	for _, c := range changes {
		switch c["change"] {
		case "entry":
			out = append(out, "entry "+fmt.Sprint(c["entry"].(object)["entry_id"]))
		case "event":
			out = append(out, "event "+fmt.Sprint(c["event"].(object)["event_id"]))
		default:
			out = append(out, fmt.Sprint(c["change"], " ", c["entry_id"]))
		}
	}
	return strings.Join(out, ", ")
}

func TestChangeFeed(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	feed := feedOf(project)

	none, a := changesOf(t, s, key, feed)
	if len(none) != 0 || a.Header.Get("X-Next-Cursor") == "" || a.Header.Get("Link") != "" || a.Header.Get("X-Last-Seq") != "0" {
		t.Errorf("an empty project: %s, headers %v", a.Body, a.Header)
	}
	began := time.Now().UnixMicro()
	s.MustIngest(t, "entries", newEntry(project, "a", at(1)), newEntry(project, "b", at(2)))
	s.MustIngest(t, "events", servicetest.With(pageView(project, "a", 1, at(1)), "event_id", "v1"), servicetest.With(pageView(project, "c", 1, at(1)), "event_id", "v2"))
	s.MustIngest(t, "entries", newEntry(project, "a", at(3)), newEntry("pr_2", "x", at(1)))

	all, a := changesOf(t, s, key, feed)
	if got, want := kinds(all), "entry b, event v1, event v2, entry a"; got != want {
		t.Errorf("the feed has %s, want %s", got, want)
	}
	last := 0.0
	for _, c := range all {
		seq := c["seq"].(float64)
		if seq <= last || seq < float64(began)-float64(time.Minute.Microseconds()) {
			t.Errorf("number %.0f after %.0f, first ingest at %d", seq, last, began)
		}
		last = seq
	}
	if a.Header.Get("X-Last-Seq") != fmt.Sprintf("%.0f", last) || a.Header.Get("Link") != "" || a.Header.Get("Etag") != "" {
		t.Errorf("headers %v after the change %.0f", a.Header, last)
	}
	event := all[1]["event"].(object)
	if event["entry_id"] != "a" || event["page_id"] != "pg_1" || event["url"] != nil || len(fmt.Sprint(event["event_key"])) != 32 {
		t.Errorf("the event is %v", event)
	}

	t.Run("pages", func(t *testing.T) {
		if got := kinds(followFeed(t, s, key, feed+"?limit=1")); got != kinds(all) {
			t.Errorf("in pages of one: %s", got)
		}
	})
	t.Run("types", func(t *testing.T) {
		for types, want := range map[string]string{
			"entry": "entry b, entry a", "event": "event v1, event v2", "entry_removed": "", "event,entry": kinds(all),
		} {
			list, a := changesOf(t, s, key, feed+"?types="+types)
			if kinds(list) != want || a.Header.Get("X-Next-Cursor") == "" {
				t.Errorf("types=%s: %s, want %s", types, kinds(list), want)
			}
		}
	})
	t.Run("after", func(t *testing.T) {
		second := fmt.Sprintf("%.0f", all[1]["seq"])
		for query, want := range map[string]string{
			"after=0": kinds(all), "after=" + second: "event v2, entry a", "after=now": "", "types=entry&after=" + second: "entry a",
		} {
			list, a := changesOf(t, s, key, feed+"?"+query)
			if kinds(list) != want || a.Header.Get("X-Next-Cursor") == "" {
				t.Errorf("?%s: %s, want %s", query, kinds(list), want)
			}
		}
		list, a := changesOf(t, s, key, feed+"?limit=1&after="+second)
		next, _, _ := strings.Cut(strings.TrimPrefix(a.Header.Get("Link"), "<"+s.URL), ">")
		if rest, _ := changesOf(t, s, key, next); kinds(append(list, rest...)) != "event v2, entry a" {
			t.Errorf("after %s: %s, then %s: %s", second, kinds(list), next, kinds(rest))
		}
		_, a = changesOf(t, s, key, feed+"?after=now&types=event")
		s.MustIngest(t, "entries", newEntry(project, "d", at(4)))
		s.MustIngest(t, "events", servicetest.With(pageView(project, "d", 1, at(4)), "event_id", "v3"))
		if list, _ := changesOf(t, s, key, feed+"?types=event&cursor="+a.Header.Get("X-Next-Cursor")); kinds(list) != "event v3" {
			t.Errorf("after now: %s", kinds(list))
		}
	})
	t.Run("NDJSON", func(t *testing.T) {
		a := s.Do(t, servicetest.Request{Path: feed, Key: key, Headers: map[string]string{"Accept": "application/x-ndjson"}})
		lines := strings.Split(strings.TrimSuffix(string(a.Body), "\n"), "\n")
		var first object
		if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(lines) != 6 || kinds([]object{first}) != "entry b" {
			t.Errorf("%d lines, %v: %s", len(lines), err, a.Body)
		}
	})
}

// followFeed reads the feed until it is current.
func followFeed(t testing.TB, s *servicetest.Service, key, path string) []object {
	t.Helper()
	var all []object
	next := path
	for range 1000 {
		list, a := changesOf(t, s, key, next)
		all = append(all, list...)
		if a.Header.Get("Link") == "" {
			return all
		}
		next = path + "&cursor=" + a.Header.Get("X-Next-Cursor")
	}
	t.Fatal("the feed does not end")
	return nil
}

func TestChangesAreWaitedFor(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"MAX_IN_FLIGHT": "1", "MAX_WAITING": "24"})
	key := s.Keys.Key(project)
	s.MustIngest(t, "entries", newEntry(project, "a", at(1)))
	_, a := changesOf(t, s, key, feed)
	path := feed + "?wait=60&cursor=" + a.Header.Get("X-Next-Cursor")

	answers := make(chan string, 3)
	for n := range 3 {
		go func() {
			began := time.Now()
			list, _ := changesOf(t, s, key, path)
			answers <- fmt.Sprintf("%s %v", kinds(list), time.Since(began) < time.Minute)
		}()
		eventually.True(t, "a request waits", func() bool {
			return metricOf(t, s, "lectern_feed_waiting") == strconv.Itoa(n+1)
		})
	}
	if a := s.Get(t, key, path); a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("a fourth that would wait is answered %d", a.Status)
	}
	if _, a := changesOf(t, s, s.Keys.Key("pr_2"), "/projects/pr_2/entries-changes?wait=1"); a.Status != 200 {
		t.Errorf("another project that would wait is answered %d", a.Status)
	}
	if a := s.Get(t, key, feed); a.Status != 200 {
		t.Errorf("a request next to long polls is answered %d", a.Status)
	}
	s.MustIngest(t, "entries", newEntry(project, "b", at(2)))
	for range 3 {
		if got := <-answers; got != "entry b true" {
			t.Errorf("a request that waited got %s", got)
		}
	}

	began := time.Now()
	list, a := changesOf(t, s, key, feed+"?types=event&wait=1")
	if took := time.Since(began); len(list) != 0 || took < time.Second || took > time.Minute || a.Header.Get("Link") != "" {
		t.Errorf("without news, wait=1 took %v: %s", took, a.Body)
	}
}

// TestRevokedWhileItWaits checks that a request that waits gets no data once its key is revoked.
func TestRevokedWhileItWaits(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key, record := s.Keys.Minted(pgkeys.MintOptions{ProjectID: project})
	answered := make(chan servicetest.Answer, 1)
	go func() { answered <- s.Get(t, key, feed+"?wait=60") }()
	eventually.True(t, "the request waits", func() bool { return metricOf(t, s, "lectern_feed_waiting") == "1" })
	if _, err := s.Keys.Revoke(t.Context(), project, record.ID); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the key is refused", func() bool { return s.Get(t, key, feed).Status == http.StatusUnauthorized })
	s.MustIngest(t, "entries", newEntry(project, "a", at(1)))
	if a := eventually.Receive(t, "an answer", answered); a.Status != http.StatusUnauthorized {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// TestWaitingEndsWithTheKey checks that no request waits longer than its key or token is valid.
func TestWaitingEndsWithTheKey(t *testing.T) {
	t.Parallel()
	s, project, _ := shared(t)
	feed := feedOf(project)
	key, _ := s.Keys.Minted(pgkeys.MintOptions{ProjectID: project, ExpiresAt: time.Now().Add(3 * time.Second)})
	began := time.Now()
	if list, a := changesOf(t, s, key, feed+"?wait=60"); a.Status != 200 && a.Status != 401 || len(list) > 0 || time.Since(began) > 55*time.Second {
		t.Errorf("after %v: %d %s", time.Since(began), a.Status, a.Body)
	}
}

// TestWaitingOutlastsTimeouts checks that a long poll may last longer than all time limits for clients and statements.
func TestWaitingOutlastsTimeouts(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"READ_TIMEOUT": "1s", "WRITE_TIMEOUT": "1s", "IDLE_TIMEOUT": "1s", "STATEMENT_TIMEOUT": "1s"})
	key := s.Keys.Key(project)
	_, before := changesOf(t, s, key, feed) // on the connection that the next request uses
	began := time.Now()
	_, a := changesOf(t, s, key, feed+"?wait=3&cursor="+before.Header.Get("X-Next-Cursor"))
	if took := time.Since(began); a.Status != http.StatusOK || took < 3*time.Second {
		t.Errorf("answered %d after %v: %s", a.Status, took, a.Body)
	}
}

func TestWaitingEndsWithTheService(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key := s.Keys.Key(project)
	answered := make(chan servicetest.Answer, 1)
	go func() {
		_, a := changesOf(t, s, key, feed+"?wait=60")
		answered <- a
	}()
	eventually.True(t, "the request waits", func() bool { return metricOf(t, s, "lectern_feed_waiting") == "1" })
	began := time.Now()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if a := <-answered; a.Status != 200 || a.Header.Get("X-Next-Cursor") == "" || time.Since(began) > 50*time.Second {
		t.Errorf("after %v: %d %v", time.Since(began), a.Status, a.Header)
	}
}

func TestChangesRefuse(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	feed := feedOf(project)
	s.MustIngest(t, "entries", newEntry(project, "a", at(1)), newEntry(project, "b", at(1)))
	_, a := changesOf(t, s, key, feed)
	_, entries := s.List(t, key, "/projects/"+project+"/entries?limit=1")
	cursor := a.Header.Get("X-Next-Cursor")
	for _, query := range []string{
		"wait=61", "wait=-1", "wait=1.5", "wait=", "wait=1&wait=2", "limit=0", "limit=1000001", "limit=x", "types=", "types=entry,entry",
		"types=entries", "types=entry,", "cursor=x", "cursor=", "cursor=" + cursor + "A", "types=entry&cursor=" + cursor, "since=1", "embeddable_id=e",
		"after=", "after=-1", "after=+1", "after=1.5", "after=x", "after=NOW", "after=9223372036854775808", "after=1&after=2", "after=0&cursor=" + cursor,
		"after=now&cursor=x", "cursor=" + entries.Header.Get("X-Next-Cursor"),
	} {
		if a := s.Get(t, key, feed+"?"+query); a.Status != 400 || !strings.Contains(string(a.Body), "invalid_parameter") {
			t.Errorf("?%s: %d %s", query, a.Status, a.Body)
		}
	}
	if a := s.Get(t, key, "/projects/pr_2/entries-changes"); a.Status != 401 {
		t.Errorf("another project's feed: %d", a.Status)
	}
	if a := s.Get(t, s.Keys.Key("pr_2"), "/projects/pr_2/entries-changes?cursor="+cursor); a.Status != 400 {
		t.Errorf("another project's cursor: %d", a.Status)
	}
}
