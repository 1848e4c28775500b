package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// testFaults checks faults of docs/how-to/operate.md in the cluster.
func (r *release) testFaults(t *testing.T) {
	dev := "app.kubernetes.io/component=dev-"
	for _, fault := range []struct {
		name    string
		do      func()
		allowed []int // statuses that clients may see in addition to the right one; 0 is a connection that ended
	}{
		{"Redis and the operator killed", func() {
			// The connection ends with the server, which kubectl may take for a failure.
			out, _ := r.tryKubectl(t.Context(), "", "exec", "deployment/lectern-dev-redis", "--", "redis-cli", "shutdown", "nosave")
			if out != "" {
				t.Fatalf("Redis says %s", out)
			}
			r.killPods(t, "operator")
			r.awaitRestart(t, dev+"redis")
		}, nil},
		{"Postgres killed", func() {
			_, _ = r.tryKubectl(t.Context(), "", "exec", "deployment/lectern-dev-postgres", "--", "sh", "-c", "kill -QUIT 1")
			r.awaitRestart(t, dev+"postgres")
		}, []int{503, 0}},
		{"a pod of entries and one of the edge killed", func() { r.killPods(t, "entries", "edge") }, []int{502, 503, 504, 0}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			calls := r.everyOperation()
			l := startLoad(t, r, 4, 50*time.Millisecond, calls)
			awaitGood(t, l, len(calls))
			fault.do()
			recovered := awaitGood(t, l, 3*len(calls))
			l.stop()
			for status, n := range l.statuses {
				if status != 200 && status != 400 && !slices.Contains(fault.allowed, status) {
					t.Errorf("%d answers of status %d", n, status)
				}
			}
			if len(fault.allowed) == 0 && l.faults > 0 {
				t.Errorf("%d requests failed:\n%s", l.faults, strings.Join(l.failed, "\n"))
			}
			t.Logf("%d good, %d not, statuses %v; well again %v after the pod was", l.good, l.faults, l.statuses, recovered.Round(time.Millisecond))
		})
	}
}

// awaitGood waits until n requests in a row succeed.
func awaitGood(t *testing.T, l *load, n int) time.Duration {
	t.Helper()
	good, faults := l.answered()
	return eventually(t, fmt.Sprintf("%d good answers in a row", n), func() error {
		nowGood, nowFaults := l.answered()
		if nowFaults > faults {
			good, faults = nowGood, nowFaults
		}
		if nowGood-good < n {
			return fmt.Errorf("%d so far; %d failed", nowGood-good, nowFaults)
		}
		return nil
	})
}

// awaitRestart waits until the killed server runs again.
func (r *release) awaitRestart(t *testing.T, selector string) {
	t.Helper()
	eventually(t, "a restart", func() error {
		for _, p := range object[struct{ Items []pod }](t, r, "get", "pods", "-l", selector).Items {
			if ok, _ := p.ready(); ok && p.Status.ContainerStatuses[0].RestartCount > 0 {
				return nil
			}
		}
		return fmt.Errorf("not ready again")
	})
}

// killPods kills one pod of each component at once, and waits for their replacements.
func (r *release) killPods(t *testing.T, components ...string) {
	t.Helper()
	args := []string{"delete", "pod", "--grace-period=0", "--force"}
	for _, c := range components {
		args = append(args, r.pods(t, c)[0].Metadata.Name)
	}
	r.kubectl(t, args...)
	r.awaitRollout(t, components...)
}

// onNode runs a command on the node and returns what it printed. A failure ends the test.
func (r *release) onNode(t *testing.T, args ...string) string {
	t.Helper()
	all := append(slices.Clone(r.nodeExec), args...)
	out, err := command(t.Context(), "", all[0], all[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// testAPIServerAway checks that clients, including those of the proxy, see no fault during a minute without an API
// server.
func (r *release) testAPIServerAway(t *testing.T) {
	if len(r.nodeExec) == 0 {
		t.Skip("nothing runs commands on this cluster's node: LECTERN_E2E_NODE_EXEC is not set")
	}
	server := r.onNode(t, "pidof", "kube-apiserver")
	l := startLoad(t, r, 4, 20*time.Millisecond, r.everyOperation())
	r.onNode(t, "kill", "-STOP", server)
	t.Cleanup(func() {
		_, _ = command(t.Context(), "", r.nodeExec[0], append(slices.Clone(r.nodeExec[1:]), "kill", "-CONT", server)...)
	})
	rest(t.Context(), time.Minute)
	r.onNode(t, "kill", "-CONT", server)
	eventually(t, "the API server", func() error {
		_, err := r.tryKubectl(t.Context(), "", "get", "pods")
		return err
	})
	l.mustBeClean(t, 2_000)
}
