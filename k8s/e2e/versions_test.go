package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFromVersionBefore installs the version before with its own chart and images, upgrades it to this version, and rolls
// back. Under load no request fails, and what the versions have stored stays.
func TestFromVersionBefore(t *testing.T) {
	this := fromEnvironment(t)
	chart := os.Getenv("LECTERN_E2E_CHART_BEFORE")
	if chart == "" {
		t.Skip("needs a version before this one: set LECTERN_E2E_BEFORE of scripts/e2e to its commit")
	}
	r := *this
	r.chart, r.values = chart, strings.Fields(os.Getenv("LECTERN_E2E_VALUES_BEFORE"))
	shipped := len(r.values)
	t.Cleanup(func() { r.keepLogs(t) })
	r.testInstall(t)
	r.apply(t, `{"apiVersion":"lectern.dev/v1alpha1","kind":"APIKey","metadata":{"name":"removed"},"spec":{"projectId":"pr_demo"}}`, "apply", "-f", "-")
	r.kubectl(t, "wait", "--for=condition=Ready", "--timeout=5m", "apikey/removed")
	entries := r.entries(t)

	calls := r.everyOperation()
	for i := range calls {
		calls[i].anyBody = true
	}
	l := startLoad(t, &r, 4, 100*time.Millisecond, calls)
	installed := r.values[shipped:]
	r.chart, r.values = this.chart, slices.Concat(this.values, installed)
	r.upgrade(t)
	r.awaitReplaced(t)
	if now := r.entries(t); now != entries {
		t.Errorf("after the upgrade, entries are %.300s; want %.300s", now, entries)
	}
	// The new operator knows the old one's objects.
	r.kubectl(t, "delete", "apikey", "removed", "--timeout=5m")
	good, faults := l.answered()
	t.Logf("upgraded: %d requests, %d failed", good+faults, faults)
	r.helm(t, "rollback", "lectern", "--wait", "--timeout", "9m")
	r.awaitReplaced(t)
	if now := r.entries(t); now != entries {
		t.Errorf("after the rollback, entries are %.300s; want %.300s", now, entries)
	}
	l.mustBeClean(t, 2_000)
	r.upgrade(t)
	r.testUninstall(t)
}

// entries returns the demo project's entries, as the key of the version before reads them.
func (r *release) entries(t *testing.T) string {
	t.Helper()
	status, _, body, err := r.get(t.Context(), "/projects/pr_demo/entries?limit=100000", r.apiKey)
	if err != nil || status != 200 {
		t.Fatalf("%d, %v: %.200s", status, err, body)
	}
	return string(body)
}
