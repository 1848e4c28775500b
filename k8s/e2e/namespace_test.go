package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

// testNamespaceGoes deletes a watched namespace with a Project and an APIKey. The namespace goes, its key is refused, nobody
// else notices, and the release can be upgraded without a change of its values.
func (r *release) testNamespaceGoes(t *testing.T) {
	const team = "lectern-e2e-team"
	r.kubectl(t, "create", "namespace", team)
	t.Cleanup(func() {
		_, _ = r.tryKubectl(context.Background(), "", "delete", "namespace", team, "--ignore-not-found", "--wait=false")
	})
	watched := []string{"--set", fmt.Sprintf("watchNamespaces={%s,%s}", r.namespace, team)}
	r.upgrade(t, watched...)
	r.apply(t, `{"apiVersion":"v1","kind":"List","items":[
		{"apiVersion":"lectern.dev/v1alpha1","kind":"Project","metadata":{"name":"team","namespace":"`+team+`"},"spec":{"projectId":"pr_team","title":"Team"}},
		{"apiVersion":"lectern.dev/v1alpha1","kind":"APIKey","metadata":{"name":"team","namespace":"`+team+`"},"spec":{"projectId":"pr_team"}}]}`, "-n", team, "apply", "-f", "-")
	r.kubectl(t, "-n", team, "wait", "--for=condition=Ready", "--timeout=5m", "apikey/team")
	encoded := r.kubectl(t, "-n", team, "get", "secret", "team", "-o", "jsonpath={.data.api-key}")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	read := func() (int, error) {
		status, _, _, err := r.get(t.Context(), "/projects/pr_team/entries", string(key))
		return status, err
	}
	if status, err := read(); err != nil || status != 200 {
		t.Fatalf("before: %d, %v", status, err)
	}
	r.apply(t, strings.ReplaceAll(r.manifest(t, "testdata/proxy.yaml"), "FIRST_VALUE", "first-secret-value"), "apply", "-f", "-")
	proxied := func() error {
		status, digest, err := r.callThirdParty(t)
		if err == nil && digest != digestOf("first-secret-value") {
			err = fmt.Errorf("%d, digest %q", status, digest)
		}
		return err
	}
	eventually(t, "a call through the proxy", proxied)
	l := startLoad(t, r, 4, 50*time.Millisecond, r.everyOperation())
	started := time.Now()
	r.kubectl(t, "delete", "namespace", team, "--timeout=5m")
	t.Logf("the namespace was gone after %v", time.Since(started).Round(time.Second))
	eventually(t, "the key is refused", func() error {
		if status, err := read(); err != nil || status != 401 {
			return fmt.Errorf("%d, %w", status, err)
		}
		return nil
	})
	if err := proxied(); err != nil {
		t.Errorf("a call through the proxy: %v", err)
	}
	r.upgrade(t, watched...)
	l.mustBeClean(t, 100)
}
