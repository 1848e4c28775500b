package app

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestUnreadAnswers checks that a project whose clients do not take their answers holds no more memory than its share. One
// answer more gets 429. Small answers and other projects are not affected.
func TestUnreadAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"ANSWER_MEMORY": fmt.Sprint(8 << 20)})
	key, other := s.Keys.Key(project), s.Keys.Key("pr_2")
	fill(t, s, project, 4000)
	fill(t, s, "pr_2", 1000)
	// The entries exceed the buffers of the connection, so a client that does not read blocks the list.
	s.Exec(t, `UPDATE entries SET entry_data = '{"large":"' || repeat('x', 10000) || '"}' WHERE project_id = $1`, project)
	const export = "/projects/pr_1/entries?limit=4000"

	idle := faulttest.Dial(t, s.URL)
	idle.Say("GET " + export + " HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + key + "\r\n\r\n")
	eventually.True(t, "the list is being read", func() bool { return poolOf(t, s, "lectern_admission_used", "answers") > 0 })
	for path, refused := range map[string]bool{export: true, "/projects/pr_1/entries?limit=90": true, "/projects/pr_1/entries?limit=3": false} {
		a := s.Get(t, key, path)
		var body struct {
			Error     struct{ Code, Message string }
			ProjectID string
		}
		if want := a.Status == 429; want != refused {
			t.Errorf("%s next to it: %d", path, a.Status)
		}
		if refused {
			a.JSON(t, &body)
			if body.Error.Code != "rate_limited" || body.ProjectID != project || a.Header.Get("Retry-After") == "" {
				t.Errorf("%s: %s, Retry-After %q", path, a.Body, a.Header.Get("Retry-After"))
			}
		}
	}
	if got := poolOf(t, s, "lectern_admission_refused_total", "answers"); got != 2 {
		t.Errorf("%v refusals are counted", got)
	}
	if a := s.Get(t, other, "/projects/pr_2/entries?limit=1000"); a.Status != 200 {
		t.Errorf("another project next to it: %d %s", a.Status, a.Body)
	}
	_ = idle.Close()
	eventually.True(t, "its memory is free", func() bool { return s.Get(t, key, export).Status == 200 })
	eventually.True(t, "nothing is held", func() bool { return poolOf(t, s, "lectern_admission_used", "answers") == 0 })
}

// TestRequestsOfOneProject checks that one project has an eighth of MAX_IN_FLIGHT. One request more gets 429, and other
// projects are served.
func TestRequestsOfOneProject(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"MAX_IN_FLIGHT": "16"})
	key := s.Keys.Key(project)
	fill(t, s, project, 10)
	fill(t, s, "pr_2", 10)
	unlock := lock(t, s, "events")
	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() {
			if a := s.Get(t, key, "/projects/pr_1/entries-page-views"); a.Status != 200 {
				t.Errorf("a request within the share: %d %s", a.Status, a.Body)
			}
		})
	}
	eventually.True(t, "both wait for the lock", func() bool { return blocked(t, s) == 2 })
	if a := s.Get(t, key, "/projects/pr_1/entries"); a.Status != 429 || a.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", a.Status, a.Body)
	}
	if a := s.Get(t, s.Keys.Key("pr_2"), "/projects/pr_2/entries"); a.Status != 200 {
		t.Errorf("another project: %d %s", a.Status, a.Body)
	}
	unlock()
	waiting.Wait()
}

// TestListsThatTakeTurns checks that a list whose filter has no index, and one of more than 100 records, wait for their
// turn. Others do not, nor does a follower that lacks few changes.
func TestListsThatTakeTurns(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"LARGE_READS": "1"})
	key := s.Keys.Key(project)
	fill(t, s, project, 10)
	unlock := lock(t, s, "entries")
	var waiting sync.WaitGroup
	for _, list := range []string{"entries?group_id=nobody", "entries?group_id=nobody", "entries?limit=101", "entries?limit=100", "entries-changes"} {
		waiting.Go(func() {
			if a := s.Get(t, key, "/projects/pr_1/"+list); a.Status != 200 {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	eventually.True(t, "the small list, the few changes and one of the others are read, and two wait for their turn", func() bool {
		return blocked(t, s) == 3 && metricOf(t, s, "lectern_large_reads_waiting") == "2"
	})
	unlock()
	waiting.Wait()
}

// TestExportsWaitForEachOther checks that lists that wait for each other are complete.
func TestExportsWaitForEachOther(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"LARGE_READS": "1", "ANSWER_MEMORY": "0"})
	fill(t, s, project, 4000)
	fill(t, s, "pr_2", 4000)
	keys := map[string]string{project: s.Keys.Key(project), "pr_2": s.Keys.Key("pr_2")}
	paths := []string{"/projects/%s/entries?limit=4000", "/projects/%s/entries?limit=4000&direction=ASC", "/projects/%s/entries-page-views?limit=3000"}
	want := map[string][]byte{}
	for of, key := range keys {
		for _, path := range paths {
			path = fmt.Sprintf(path, of)
			want[path] = s.Get(t, key, path).Body
		}
	}
	var all sync.WaitGroup
	for path, body := range want {
		key := keys[strings.Split(path, "/")[2]]
		for range 4 {
			all.Go(func() {
				for range 3 {
					if a := s.Get(t, key, path); a.Status != 200 || a.Err != nil || !bytes.Equal(a.Body, body) {
						t.Errorf("%s: %d, %v, %d bytes of %d", path, a.Status, a.Err, len(a.Body), len(body))
					}
					if a := s.Get(t, key, strings.Split(path, "?")[0]); a.Status != 200 {
						t.Errorf("a small list next to it: %d %s", a.Status, a.Body)
					}
				}
			})
		}
	}
	all.Wait()
	eventually.True(t, "all have left", func() bool { return metricOf(t, s, "lectern_large_reads_waiting") == "0" })
}

// poolOf returns the value of a metric of admission for a pool.
func poolOf(t *testing.T, s *servicetest.Service, name, pool string) float64 {
	t.Helper()
	for line := range strings.Lines(string(s.DoInternal(t, servicetest.Request{Path: "/metrics"}).Body)) {
		if strings.HasPrefix(line, name+"{") && strings.Contains(line, `pool="`+pool+`"`) {
			value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(strings.TrimSpace(line), ' ')+1:]), 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("there is no metric %s of %s", name, pool)
	return 0
}

// metricOf returns the value of a metric that has one series.
func metricOf(t *testing.T, s *servicetest.Service, name string) string {
	t.Helper()
	for line := range strings.Lines(string(s.DoInternal(t, servicetest.Request{Path: "/metrics"}).Body)) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == '{' || rest[0] == ' ') {
			return strings.TrimSpace(rest[strings.LastIndexByte(strings.TrimSpace(rest), ' ')+1:])
		}
	}
	t.Fatalf("there is no metric %s", name)
	return ""
}
