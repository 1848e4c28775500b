package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// testMemory checks that no pod holds more memory than its limit, and logs how much.
func (r *release) testMemory(t *testing.T) {
	for _, component := range components() {
		for _, p := range r.pods(t, component) {
			if ok, _ := p.ready(); !ok {
				continue
			}
			bytes := r.metric(t, "pod/"+p.Metadata.Name, "process_resident_memory_bytes")
			t.Logf("%s: %.0f MiB", p.Metadata.Name, bytes/(1<<20))
			if bytes <= 0 || bytes > 256<<20 {
				t.Errorf("%s holds %.0f bytes; want at most its limit", p.Metadata.Name, bytes)
			}
		}
	}
}

// metric reads one metric without labels from the internal port of an object.
func (r *release) metric(t *testing.T, target, name string) float64 {
	t.Helper()
	resp, err := http.Get(r.forward(t, target, 9090) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && (fields[0] == name || strings.HasPrefix(fields[0], name+"{")) {
			value, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return value
		}
	}
	t.Fatalf("%s has no metric %s", target, name)
	return 0
}

// testAutoscaling checks that entries gets more pods under load and fewer afterwards, and that no request fails.
func (r *release) testAutoscaling(t *testing.T) {
	if _, err := r.tryKubectl(t.Context(), "", "top", "pods"); err != nil {
		t.Skipf("the cluster measures no pods: %v", err)
	}
	r.upgrade(t, "--set", "entries.autoscaling.enabled=true", "--set", "entries.autoscaling.maxReplicas=4",
		"--set", "entries.autoscaling.targetCPUUtilizationPercentage=150", "--set", "entries.resources.requests.cpu=50m",
		"--set", "entries.autoscaling.behavior.scaleDown.stabilizationWindowSeconds=15")
	replicas := func() int {
		n, err := strconv.Atoi(strings.TrimSpace(r.kubectl(t, "get", "deployment", "lectern-entries", "-o", "jsonpath={.status.readyReplicas}")))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	calls := r.everyOperation()
	heavy := startLoad(t, r, 16, 0, calls[:4])
	out := eventually(t, "more pods", func() error {
		if n := replicas(); n < 3 {
			return fmt.Errorf("%d pods", n)
		}
		return nil
	})
	heavy.mustBeClean(t, 1_000)
	light := startLoad(t, r, 2, 20*time.Millisecond, calls)
	back := eventually(t, "two pods", func() error {
		if n := replicas(); n > 2 {
			return fmt.Errorf("%d pods", n)
		}
		return nil
	})
	light.mustBeClean(t, 500)
	t.Logf("scaled out after %v, back after %v", out.Round(time.Second), back.Round(time.Second))
	r.upgrade(t)
}
