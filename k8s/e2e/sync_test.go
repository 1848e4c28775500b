package e2e

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// testSync checks that a copy of the chart gets all entries, including those that come while its pod is killed and
// replaced.
func (r *release) testSync(t *testing.T) {
	to := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", r.secret(t, "lectern-dev", "postgres")), Host: "lectern-dev-postgres:5432", Path: "/postgres"}
	r.apply(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"List","items":[
		{"apiVersion":"lectern.dev/v1alpha1","kind":"Project","metadata":{"name":"copied"},"spec":{"projectId":"pr_copied","title":"Copied"}},
		{"apiVersion":"lectern.dev/v1alpha1","kind":"APIKey","metadata":{"name":"copied"},
			"spec":{"projectId":"pr_copied","scopes":["entries:read"],"secret":{"name":"lectern-sync-warehouse-key"}}},
		{"apiVersion":"v1","kind":"Secret","metadata":{"name":"lectern-sync-warehouse"},"stringData":{"LECTERN_SYNC_TO":%q}}]}`, to.String()), "apply", "-f", "-")
	t.Cleanup(func() {
		// The test's own context has ended by then.
		if _, err := r.tryKubectl(context.Background(), "", "delete", "secret", "lectern-sync-warehouse"); err != nil {
			t.Error(err)
		}
	})
	r.kubectl(t, "wait", "--for=condition=Ready", "--timeout=5m", "project/copied", "apikey/copied")
	ingester, err := client.NewIngester(r.forward(t, "service/lectern-internal", 80), client.WithAPIKey(r.ingestKey))
	if err != nil {
		t.Fatal(err)
	}
	entry := func(id string) []byte {
		const at = "2026-01-01T00:00:00Z"
		return fmt.Appendf(nil, `{"entry_id":%q,"group_id":"g","project_id":"pr_copied","embeddable_id":"m","contact_id":"c","created_at":%q,"updated_at":%q,"entry_data":"{}"}`+"\n", id, at, at)
	}
	copied := func(want int) {
		t.Helper()
		took := eventually(t, "the copy", func() error {
			out, err := r.tryKubectl(t.Context(), "", "exec", "deployment/lectern-dev-postgres", "--", "psql", "-U", "postgres", "-Atc", "SELECT count(*) FROM lectern.entries")
			if err == nil && strings.TrimSpace(out) != fmt.Sprint(want) {
				err = fmt.Errorf("the copy has %s entries; want %d", strings.TrimSpace(out), want)
			}
			return err
		})
		t.Logf("%d entries are in the copy after %v", want, took)
	}

	send(t, ingester, "entries", entry("first"))
	// It waits until the pod is ready, which is after its first batch.
	r.upgrade(t, "--set", "sync.copies.warehouse.project=pr_copied")
	copied(1)
	replaced := make(chan error, 1)
	go func() {
		_, err := r.tryKubectl(t.Context(), "", "delete", "pod", "-l", "app.kubernetes.io/component=sync-warehouse", "--grace-period=0", "--force")
		if err == nil {
			_, err = r.tryKubectl(t.Context(), "", "rollout", "status", "--timeout=5m", "deployment/lectern-sync-warehouse")
		}
		replaced <- err
	}()
	sent := 1
	for running := true; running; sent++ {
		send(t, ingester, "entries", entry(fmt.Sprint("n", sent)))
		select {
		case err := <-replaced:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		case <-time.After(10 * time.Millisecond):
		}
	}
	copied(sent)
	if since := r.metric(t, "deployment/lectern-sync-warehouse", "lectern_sync_since_current_seconds"); since > 65 {
		t.Errorf("the copy was current %v s ago; want less than a request's wait", since)
	}
}
