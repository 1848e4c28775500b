package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// feedPage is an answer of the change feed.
type feedPage struct {
	status  int
	changes []struct {
		Change  string `json:"change"`
		EntryID string `json:"entry_id"`
		Reason  string `json:"reason"`
		Entry   struct {
			EntryID string `json:"entry_id"`
		} `json:"entry"`
	}
	cursor string
	body   string
	err    error
}

// feed reads a page of a project's change feed through the Gateway.
func (r *release) feed(t *testing.T, project, key, query string) (p feedPage) {
	status, header, body, err := r.get(t.Context(), "/projects/"+project+"/entries-changes?"+query, key)
	p = feedPage{status: status, cursor: header.Get("X-Next-Cursor"), body: string(body), err: err}
	if err == nil && status == 200 {
		p.err = json.Unmarshal(body, &p.changes)
	}
	return p
}

// testRetention checks that the retention job removes the entries that are older than their Project allows, and no
// others. A waiting follower of the change feed sees the removal.
func (r *release) testRetention(t *testing.T) {
	r.upgrade(t, "--set", "retention.enabled=true", "--set", "retention.suspend=true")
	r.apply(t, `{"apiVersion":"v1","kind":"List","items":[
		{"apiVersion":"lectern.dev/v1alpha1","kind":"Project","metadata":{"name":"kept"},"spec":{"projectId":"pr_kept","title":"Kept for 30 days","retentionDays":30}},
		{"apiVersion":"lectern.dev/v1alpha1","kind":"APIKey","metadata":{"name":"kept"},"spec":{"projectId":"pr_kept"}}]}`, "apply", "-f", "-")
	r.kubectl(t, "wait", "--for=condition=Ready", "--timeout=5m", "project/kept", "apikey/kept")
	key := r.secret(t, "kept", "api-key")
	ingester, err := client.NewIngester(r.forward(t, "service/lectern-internal", 80), client.WithAPIKey(r.ingestKey))
	if err != nil {
		t.Fatal(err)
	}
	entry := func(id string, updated time.Time) string {
		at := updated.UTC().Format(time.RFC3339)
		return fmt.Sprintf(`{"entry_id":%q,"group_id":"g","project_id":"pr_kept","embeddable_id":"m","contact_id":"c","created_at":%q,"updated_at":%q,"entry_data":"{}"}`+"\n", id, at, at)
	}
	day := 24 * time.Hour
	send(t, ingester, "entries", []byte(entry("old", time.Now().Add(-31*day))+entry("new", time.Now().Add(-29*day))))
	first := r.feed(t, "pr_kept", key, "types=entry,entry_removed")
	if first.err != nil || len(first.changes) != 2 {
		t.Fatalf("the feed before: %d, %v: %s", first.status, first.err, first.body)
	}

	followed := make(chan feedPage, 1)
	go func() {
		followed <- r.feed(t, "pr_kept", key, "types=entry,entry_removed&wait=25&cursor="+first.cursor)
	}()
	r.kubectl(t, "create", "job", "--from=cronjob/lectern-retention", "retention-now")
	r.kubectl(t, "wait", "--for=condition=Complete", "--timeout=5m", "job/retention-now")
	said := r.kubectl(t, "logs", "job/retention-now")
	if !strings.Contains(said, `"project_id":"pr_kept","days":30`) || strings.Contains(said, "pr_demo") {
		t.Errorf("the job's log:\n%s", said)
	}
	t.Logf("the job said:\n%s", said)
	if p := <-followed; p.err != nil || len(p.changes) != 1 || p.changes[0].Change != "entry_removed" || p.changes[0].EntryID != "old" || p.changes[0].Reason != "purged" {
		t.Errorf("the follower got %d, %v: %s", p.status, p.err, p.body)
	}
	for id, want := range map[string]int{"old": 404, "new": 200} {
		if status, _, body, err := r.get(t.Context(), "/projects/pr_kept/entries/"+id, key); err != nil || status != want {
			t.Errorf("the entry %q: %d, %v: %.200s; want %d", id, status, err, body, want)
		}
	}
	// Once more there is nothing to remove.
	r.kubectl(t, "delete", "job", "retention-now")
	r.kubectl(t, "create", "job", "--from=cronjob/lectern-retention", "retention-again")
	r.kubectl(t, "wait", "--for=condition=Complete", "--timeout=5m", "job/retention-again")
	if said := r.kubectl(t, "logs", "job/retention-again"); !strings.Contains(said, `"msg":"done","service":"operator retention","projects":1,"failed":0,"entries":0,"events":0`) {
		t.Errorf("the second job's log:\n%s", said)
	}
	r.kubectl(t, "delete", "job", "retention-again")
}
