package app

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestOneExportTooMany starts one export more than a project may run. It waits and is answered 429 if no other export
// ends. Other requests are not affected.
func TestOneExportTooMany(t *testing.T) {
	s := start(t, map[string]string{"PROJECT_MAX_EXPORTS": "1", "PROJECT_EXPORT_WAIT": "100ms"})
	key, other := s.Keys.Key(project), s.Keys.Key("pr_2")
	fill(t, s, project, 4000)
	fill(t, s, "pr_2", 1000)
	// The entries exceed the buffers of the connection, so a client that does not read blocks the list.
	s.Exec(t, `UPDATE entries SET entry_data = '{"large":"' || repeat('x', 10000) || '"}' WHERE project_id = $1`, project)
	const export = "/projects/pr_1/entries?limit=4000"

	idle := faulttest.Dial(t, s.URL)
	idle.Say("GET " + export + " HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + key + "\r\n\r\n")
	eventually.True(t, "the list is being read", func() bool { return metricOf(t, s, "lectern_large_lists") == "1" })

	begin := time.Now()
	a := s.Get(t, key, export)
	var body struct {
		Error     struct{ Code, Message string }
		ProjectID string
	}
	a.JSON(t, &body)
	if a.Status != 429 || body.Error.Code != "rate_limited" || body.ProjectID != project || a.Header.Get("Retry-After") != "5" {
		t.Errorf("one too many: %d %s, Retry-After %q", a.Status, a.Body, a.Header.Get("Retry-After"))
	}
	if took := time.Since(begin); took < 100*time.Millisecond {
		t.Errorf("refused after %v, without having waited", took)
	}
	if got := metricOf(t, s, "lectern_large_lists_refused_total"); got != "1" {
		t.Errorf("%s refusals are counted", got)
	}
	for path, key := range map[string]string{
		"/projects/pr_1/entries":            key,
		"/projects/pr_1/entries?limit=100":  key,
		"/projects/pr_2/entries?limit=1000": other,
	} {
		if a := s.Get(t, key, path); a.Status != 200 {
			t.Errorf("%s next to it: %d %s", path, a.Status, a.Body)
		}
	}
	_ = idle.Close()
	eventually.True(t, "its place is free", func() bool { return s.Get(t, key, export).Status == 200 })
}

// TestExportsWaitForEachOther checks that lists that wait for each other are complete.
func TestExportsWaitForEachOther(t *testing.T) {
	s := start(t, map[string]string{"PROJECT_MAX_READS": "1", "MAX_EXPORT_READS": "1"})
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
	eventually.True(t, "all have left", func() bool {
		return metricOf(t, s, "lectern_large_lists") == "0" && metricOf(t, s, "lectern_large_lists_waiting") == "0"
	})
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
