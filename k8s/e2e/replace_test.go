package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// exported is the number of entries in the project of exports.
const exported = 100_000

// testReplacedUnderLoad replaces pods under load of all operations and of long exports. An upgrade and a rollback
// replace them, evictions do so one by one, and a changed Secret restarts them. The upgrade moves passwords into files, and the
// passwords change twice. No request fails, as [load.mustBeClean] says, and no partial export looks complete.
func (r *release) testReplacedUnderLoad(t *testing.T) {
	key := r.projectOfExports(t)
	first := r.secret(t, "lectern-dev", "postgres")
	firstOfRedis := r.secret(t, "lectern-dev", "redis")
	passwords, inFiles := r.passwordsInFiles(t)
	l := startLoad(t, r, 8, 100*time.Millisecond, r.everyOperation())
	phase := func(name string, do func()) {
		t.Helper()
		started := time.Now()
		before, _ := l.answered()
		do()
		after, faults := l.answered()
		t.Logf("%s: %v, %d requests, %d failed so far", name, time.Since(started).Round(time.Second), after-before, faults)
	}
	// exporting does something during an export.
	exporting := func(do func()) func() {
		return func() {
			t.Helper()
			export := r.startExport(t, key)
			do()
			outcome := <-export
			t.Logf("the export: %s", outcome.said)
			if outcome.fault != "" {
				t.Errorf("the export: %s", outcome.fault)
			}
		}
	}
	phase("upgrade", exporting(func() { r.upgrade(t, append(inFiles, "--set", "defaults.podAnnotations.revision=second")...) }))
	// A pod without a connection cannot open one while its file is old.
	r.awaitReplaced(t)
	phase("passwords changed", func() { passwords.change(t, "the-second-password-of-every-role") })

	ingest, edge := r.secret(t, "lectern-keys", "INGEST_API_KEYS"), r.secret(t, "lectern-keys", "EDGE_KEYS")
	const another = "another-secret-of-the-same-kind-0"
	store := func(pattern string) {
		r.kubectl(t, "patch", "secret", "lectern-keys", "--type=merge", "-p",
			fmt.Sprintf(`{"stringData":{"INGEST_API_KEYS":%q,"EDGE_KEYS":%q}}`, fmt.Sprintf(pattern, ingest), fmt.Sprintf(pattern, edge)))
	}
	phase("a Secret with another key last, evictions", exporting(func() {
		store("%s," + another)
		r.restart(t, "embeddables", "experiments", "proxy", "console", "internal")
		r.evictAll(t, "entries", "region", "edge")
	}))
	phase("a Secret with another key first, restarts", exporting(func() {
		store(another + ",%s")
		r.restart(t, "entries", "embeddables", "experiments", "region", "proxy", "console", "edge", "internal")
	}))
	r.awaitReplaced(t)
	phase("the keys and passwords of before", func() {
		// The rollback takes the other keys out of the Secret, so the edge must not send one of them any more.
		store("%s")
		r.restart(t, "edge", "internal")
		passwords.change(t, first)
	})
	phase("rollback", exporting(func() {
		passwords.redis(t, first, ">"+firstOfRedis)
		r.helm(t, "rollback", "lectern", "--wait", "--timeout", "9m")
	}))
	l.mustBeClean(t, 2_000)
	r.awaitReplaced(t)
	passwords.redis(t, firstOfRedis, "resetpass", ">"+firstOfRedis)
	r.kubectl(t, "delete", "secret", "passwords")
}

// restart replaces the pods of components and waits for the new ones.
func (r *release) restart(t *testing.T, components ...string) {
	t.Helper()
	r.kubectl(t, append([]string{"rollout", "restart"}, deployments(components)...)...)
	r.awaitRollout(t, components...)
}

// awaitRollout waits until the Deployments of components have all their pods.
func (r *release) awaitRollout(t *testing.T, components ...string) {
	t.Helper()
	r.kubectl(t, append([]string{"rollout", "status", "--timeout=5m"}, deployments(components)...)...)
}

// deployments returns the names of the components' Deployments.
func deployments(components []string) []string {
	var names []string
	for _, c := range components {
		names = append(names, "deployment/lectern-"+c)
	}
	return names
}

// evictAll evicts each current pod of components, as a drain does: again and again until their PodDisruptionBudgets
// allow it.
func (r *release) evictAll(t *testing.T, components ...string) {
	t.Helper()
	var left []string
	for _, component := range components {
		for _, p := range r.pods(t, component) {
			if p.Metadata.DeletionTimestamp == nil {
				left = append(left, p.Metadata.Name)
			}
		}
	}
	refusals := 0
	eventually(t, "the evictions", func() error {
		var last error
		left = slices.DeleteFunc(left, func(name string) bool {
			eviction := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`, name, r.namespace)
			_, err := r.tryKubectl(t.Context(), eviction, "create", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", r.namespace, name), "-f", "-")
			if err != nil {
				refusals++
				last = err
			}
			return err == nil
		})
		if last != nil {
			rest(t.Context(), time.Second) // a drain waits for five
		}
		return last
	})
	r.awaitRollout(t, components...)
	t.Logf("evictions of %q: refused %d times by the budgets", components, refusals)
}

// projectOfExports makes a project with many entries and returns a key of it.
func (r *release) projectOfExports(t *testing.T) string {
	t.Helper()
	r.apply(t, `
apiVersion: lectern.dev/v1alpha1
kind: Project
metadata: {name: export}
spec: {projectId: pr_export, title: Export}
---
apiVersion: lectern.dev/v1alpha1
kind: APIKey
metadata: {name: export}
spec: {projectId: pr_export}
`, "apply", "-f", "-")
	r.kubectl(t, "wait", "--for=condition=Ready", "--timeout=5m", "apikey/export")
	var records bytes.Buffer
	began := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	for i := range exported {
		at := began.Add(time.Duration(i) * time.Second).Format(time.RFC3339)
		fmt.Fprintf(&records, `{"entry_id":"ent_%06d","group_id":"grp","project_id":"pr_export","embeddable_id":"emb","contact_id":"con_%d","created_at":%q,"updated_at":%q,"entry_data":"{\"answer\":\"%s\"}"}`+"\n",
			i, i, at, at, strings.Repeat("yes ", 40))
	}
	ingester, err := client.NewIngester(r.forward(t, "service/lectern-internal", 80), client.WithAPIKey(r.ingestKey))
	if err != nil {
		t.Fatal(err)
	}
	send(t, ingester, "entries", records.Bytes())
	return r.secret(t, "export", "api-key")
}

// export is the result of an export.
type export struct {
	said  string
	fault string // empty: it was whole, or visibly broken
}

// startExport reads all entries of the project of exports, so slowly that it takes most of a pod's time to stop.
func (r *release) startExport(t *testing.T, key string) <-chan export {
	t.Helper()
	ended := make(chan export, 1)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+fmt.Sprintf("/projects/pr_export/entries?limit=%d", exported), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer resp.Body.Close()
		started := time.Now()
		var body bytes.Buffer
		var err error
		for err == nil {
			// Some 2 MB a second.
			_, err = io.CopyN(&body, resp.Body, 200<<10)
			rest(context.Background(), 100*time.Millisecond)
		}
		said := fmt.Sprintf("%d bytes in %v", body.Len(), time.Since(started).Round(100*time.Millisecond))
		if err != io.EOF {
			ended <- export{said: said + ", broken visibly: " + err.Error()}
			return
		}
		var records []json.RawMessage
		if err := json.Unmarshal(body.Bytes(), &records); err != nil || len(records) != exported || resp.StatusCode != http.StatusOK {
			ended <- export{said, fmt.Sprintf("ended as if whole with %d records, status %d, %v", len(records), resp.StatusCode, err)}
			return
		}
		ended <- export{said: said + ", whole"}
	}()
	return ended
}
