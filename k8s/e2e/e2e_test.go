package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// TestEndToEnd installs the release, checks its promises one after the other, and removes it.
func TestEndToEnd(t *testing.T) {
	r := fromEnvironment(t)
	if !t.Run("install", func(t *testing.T) {
		t.Cleanup(func() { r.keepLogs(t) })
		r.testInstall(t)
	}) {
		t.Fatal("not installed")
	}
	for _, step := range []struct {
		name string
		long bool // only with LECTERN_LONG
		test func(*testing.T)
	}{
		{"pods", false, r.testPods},
		{"helm test", false, r.testHelmTest},
		{"operations", false, r.testOperations},
		{"consumer", false, r.testConsumer},
		{"rotate", false, r.testRotate},
		{"proxy", false, r.testProxy},
		{"region", false, r.testRegion},
		{"identity", true, r.testIdentity},
		{"account replaced", true, r.testAccountReplaced},
		{"trace", false, r.testTrace},
		{"sync", false, r.testSync},
		{"retention", false, r.testRetention},
		{"replaced under load", false, r.testReplacedUnderLoad},
		{"rotated", false, r.testRotated},
		{"token renewed", true, r.testTokenRenewed},
		{"namespace goes", false, r.testNamespaceGoes},
		{"autoscaling", true, r.testAutoscaling},
		{"API server away", true, r.testAPIServerAway},
		{"faults", false, r.testFaults},
		{"memory after load", false, r.testMemory},
		// Each step from here on takes the release as it is and leaves it with other values: a mode of routing replaces all pods.
		{"routes of the edge", false, func(t *testing.T) { r.testRoutes(t, "edge", "edge-ingress") }},
		{"clients' addresses", false, r.testClientAddresses},
		{"routes of the gateway", false, func(t *testing.T) { r.testRoutes(t, "gateway", "nginx", "traefik") }},
		{"uninstall", false, r.testUninstall},
	} {
		t.Run(step.name, func(t *testing.T) {
			if step.long && os.Getenv("LECTERN_LONG") == "" {
				t.Skip("takes long: set LECTERN_LONG=1")
			}
			t.Cleanup(func() { r.keepLogs(t) })
			step.test(t)
		})
	}
}

// fromEnvironment reads the settings of scripts/e2e. Without them the test is skipped.
func fromEnvironment(t *testing.T) *release {
	t.Helper()
	if os.Getenv("LECTERN_E2E_VALUES") == "" {
		t.Skip("needs a cluster: run make e2e")
	}
	read := func(name string) string {
		value := os.Getenv(name)
		if value == "" {
			t.Fatalf("%s is not set; scripts/e2e sets it", name)
		}
		return value
	}
	values, err := filepath.Abs("testdata/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return &release{
		folder: t.TempDir(), namespace: read("LECTERN_E2E_NAMESPACE"), chart: read("LECTERN_E2E_CHART"), gateway: read("LECTERN_E2E_GATEWAY"),
		values: append([]string{values}, strings.Fields(read("LECTERN_E2E_VALUES"))...), sample: read("LECTERN_E2E_SAMPLE"),
		cli: read("LECTERN_E2E_CLI"), logs: read("LECTERN_E2E_LOGS"), nodeExec: strings.Fields(os.Getenv("LECTERN_E2E_NODE_EXEC")),
	}
}

// testInstall follows docs/tutorials/cluster.md: a namespace, the chart, the notes' next commands, the demo project's data.
func (r *release) testInstall(t *testing.T) {
	r.apply(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q,"labels":{"pod-security.kubernetes.io/enforce":"restricted","pod-security.kubernetes.io/enforce-version":"latest"}}}`,
		r.namespace), "apply", "-f", "-")
	gatewayNamespace, gatewayName, _ := strings.Cut(r.gateway, "/")
	address := r.kubectl(t, "--namespace", gatewayNamespace, "get", "gateway", gatewayName, "-o", "jsonpath={.status.addresses[0].value}")
	if address == "" {
		t.Fatalf("the Gateway %s has no address", r.gateway)
	}
	r.url = "http://" + address
	r.apply(t, r.manifest(t, "testdata/echo.yaml"), "apply", "-f", "-")
	// The third party has an address of the cluster, to which the proxy connects only if a setting allows it.
	third := filepath.Join(r.folder, "third-party.yaml")
	if err := os.WriteFile(third, fmt.Appendf(nil, "proxy: {config: {PROXY_ALLOWED_RANGES: %s/32}}\nrouting: {gateway: {parentRefs: [{name: %s, namespace: %s}]}}\n",
		r.kubectl(t, "get", "service", "echo", "-o", "jsonpath={.spec.clusterIP}"), gatewayName, gatewayNamespace), 0o600); err != nil {
		t.Fatal(err)
	}
	r.values = append(r.values, third)
	if os.Getenv("LECTERN_LONG") != "" {
		r.values = append(r.values, r.tokenValues(t))
	}
	started := time.Now()
	r.upgrade(t)
	installed := time.Since(started)
	r.apply(t, r.manifest(t, filepath.Join(r.chart, "examples", "demo.yaml")), "apply", "-f", "-")
	r.kubectl(t, "wait", "--for=condition=Ready", "--timeout=5m", "project/demo", "apikey/demo")
	r.apiKey = r.secret(t, "lectern-demo", "api-key")
	r.ingestKey, r.internalKey = r.secret(t, "lectern-keys", "INGEST_API_KEYS"), r.secret(t, "lectern-keys", "INTERNAL_API_KEYS")
	eventually(t, "an answer through the Gateway", func() error {
		status, _, body, err := r.get(t.Context(), "/projects/pr_demo/entries", r.apiKey)
		if err != nil || status != 200 {
			return fmt.Errorf("%d, %w: %.200s", status, err, body)
		}
		return nil
	})
	t.Logf("installed after %v, the first answer after %v", installed.Round(time.Second), time.Since(started).Round(time.Second))
	r.loadDemo(t)
}

// loadDemo sends the demo project's data to the internal address.
func (r *release) loadDemo(t *testing.T) {
	ingester, err := client.NewIngester(r.forward(t, "service/lectern-internal", 80), client.WithAPIKey(r.ingestKey))
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range []string{"embeddable-versions", "embeddables", "experiments", "entries", "events"} {
		records, err := command(t.Context(), "", r.cli, "demo", resource)
		if err != nil {
			t.Fatal(err)
		}
		send(t, ingester, resource, []byte(records))
	}
}

// send sends records in batches. No record may be rejected.
func send(t *testing.T, ingester *client.Ingester, resource string, ndjson []byte) {
	t.Helper()
	const batch = 4 << 20
	for len(ndjson) > 0 {
		end := min(batch, len(ndjson))
		if end < len(ndjson) {
			end = bytes.LastIndexByte(ndjson[:end], '\n') + 1
		}
		receipt, err := ingester.Send(t.Context(), resource, ndjson[:end])
		if err != nil || receipt.Rejected > 0 {
			t.Fatalf("%s: %v, %+v", resource, err, receipt)
		}
		ndjson = ndjson[end:]
	}
}

// testPods checks that every pod is ready and was not restarted, and that processes are ready shortly after their start.
func (r *release) testPods(t *testing.T) {
	for _, component := range components() {
		pods := r.pods(t, component)
		if len(pods) < 2 {
			t.Errorf("%s has %d pods; want 2", component, len(pods))
		}
		for _, p := range pods {
			ready, since := p.ready()
			if !ready {
				t.Errorf("%s is not ready", p.Metadata.Name)
				continue
			}
			for _, c := range p.Status.ContainerStatuses {
				if c.RestartCount > 0 {
					t.Errorf("%s: %s was started %d times again", p.Metadata.Name, c.Name, c.RestartCount)
				}
				if c.State.Running != nil {
					// Both are in whole seconds.
					t.Logf("%s: ready %v after its start", p.Metadata.Name, since.Sub(c.State.Running.StartedAt))
				}
			}
		}
	}
}

// testHelmTest runs the chart's own test, which calls every operation from inside.
func (r *release) testHelmTest(t *testing.T) {
	out := r.helm(t, "test", "lectern", "--logs", "--timeout", "2m")
	r.mustBeAllOperations(t, out)
}

// testOperations checks that every operation answers through the Gateway.
func (r *release) testOperations(t *testing.T) {
	t.Setenv("LECTERN_API_KEY", r.apiKey)
	t.Setenv("LECTERN_INTERNAL_API_KEY", r.internalKey)
	out, err := command(t.Context(), "", r.cli, "check", "-o", "table", "--url", r.url, "--project", "pr_demo")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.mustBeAllOperations(t, out)
}

// mustBeAllOperations checks that each operation has a line that ends with ok.
func (r *release) mustBeAllOperations(t *testing.T, out string) {
	t.Helper()
	for _, c := range r.everyOperation() {
		found := false
		for line := range strings.Lines(out) {
			fields := strings.Fields(line)
			found = found || len(fields) > 2 && fields[1] == c.operation && fields[len(fields)-1] == "ok"
		}
		if !found {
			t.Errorf("%s did not answer as described:\n%s", c.operation, out)
		}
	}
}

// testRegion checks that a service of the cluster can call region by its DNS name with the Go client.
func (r *release) testRegion(t *testing.T) {
	r.apply(t, r.manifest(t, "testdata/region.yaml"), "apply", "-f", "-")
	r.kubectl(t, "wait", "--for=condition=Complete", "--timeout=5m", "job/region")
	said := r.kubectl(t, "logs", "job/region")
	if !strings.Contains(said, `"region":"Europe/Lisbon"`) {
		t.Errorf("region said %s; want Europe/Lisbon", said)
	}
}

// testTrace checks that one trace crosses the ingress, the edge, the service, Redis and Postgres. It uses a new key,
// because a process does not look up a cached key in Redis.
func (r *release) testTrace(t *testing.T) {
	r.apply(t, `{"apiVersion":"lectern.dev/v1alpha1","kind":"APIKey","metadata":{"name":"traced"},"spec":{"projectId":"pr_demo"}}`, "apply", "-f", "-")
	r.kubectl(t, "wait", "--for=condition=Ready", "--timeout=5m", "apikey/traced")
	trace := fmt.Sprintf("%032x", time.Now().UnixNano())
	status, _, body, err := r.get(t.Context(), "/projects/pr_demo/entries?limit=2", r.secret(t, "traced", "api-key"), "Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	if err != nil || status != 200 {
		t.Fatalf("%d, %v: %.200s", status, err, body)
	}
	var names []string
	eventually(t, "spans of edge, service, Postgres and Redis in one trace", func() error {
		out, err := r.tryKubectl(t.Context(), "", "logs", "deployment/lectern-dev-collector", "--since=2m")
		if err != nil {
			return err
		}
		names = spansOf(out, trace)
		for _, want := range []string{"edge: GET /projects/{projectId}/entries", "entries: GET /projects/{projectId}/entries", "[postgresql]", "[redis]"} {
			if !containsFold(names, want) {
				return fmt.Errorf("no span like %q among %q", want, names)
			}
		}
		return nil
	})
	t.Logf("the spans of one request: %q", names)
}

// spansOf returns the spans of a trace from the output of the collector's debug exporter. Each is a service and a name,
// with the kind of a database if the span queries one, as in "entries: GET [redis]".
func spansOf(out, trace string) []string {
	var spans []string
	in, service := false, ""
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "-> "), ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case key == "service.name":
			service = strings.TrimSuffix(strings.TrimPrefix(value, "Str("), ")")
		case key == "Trace ID":
			in = value == trace
		case in && key == "Name":
			spans = append(spans, service+": "+value)
		case in && len(spans) > 0 && (key == "db.system" || key == "db.system.name"):
			spans[len(spans)-1] += " [" + strings.TrimSuffix(strings.TrimPrefix(value, "Str("), ")") + "]"
		}
	}
	return spans
}

func containsFold(all []string, part string) bool {
	for _, s := range all {
		if strings.Contains(strings.ToLower(s), strings.ToLower(part)) {
			return true
		}
	}
	return false
}

// testUninstall uninstalls in the documented order, without an operator. No object waits for it. Only the resource definitions
// remain, which the chart keeps. They can be deleted with the objects.
func (r *release) testUninstall(t *testing.T) {
	r.kubectl(t, "scale", "deployment/lectern-operator", "--replicas=0")
	r.kubectl(t, "wait", "--for=delete", "--timeout=5m", "pod", "-l", "app.kubernetes.io/instance=lectern,app.kubernetes.io/component=operator")
	r.kubectl(t, "delete", "apikey", "demo", "--timeout=1m")
	started := time.Now()
	r.helm(t, "uninstall", "lectern", "--wait", "--timeout", "2m")
	t.Logf("uninstalled after %v", time.Since(started).Round(time.Second))
	r.kubectl(t, "delete", "pod/lectern-test", "lease/lectern-operator", "--ignore-not-found", "--timeout=5m")
	eventually(t, "nothing but definitions", func() error {
		out, err := r.tryKubectl(context.Background(), "", "get",
			"deployments,pods,services,secrets,configmaps,serviceaccounts,ingresses,networkpolicies,poddisruptionbudgets,roles,rolebindings,horizontalpodautoscalers,httproutes,cronjobs,jobs,persistentvolumeclaims",
			"-l", "app.kubernetes.io/instance=lectern,app.kubernetes.io/component!=test", "-o", "name")
		if err != nil {
			return err
		}
		if left := strings.Fields(out); len(left) > 0 {
			return fmt.Errorf("left: %q", left)
		}
		return nil
	})
	for _, kind := range []string{"clusterroles", "clusterrolebindings"} {
		if out := r.kubectl(t, "get", kind, "-l", "app.kubernetes.io/instance=lectern", "-o", "name"); out != "" {
			t.Errorf("left: %s", out)
		}
	}
	if kept := strings.Fields(r.kubectl(t, "get", "crds", "-l", "app.kubernetes.io/instance=lectern", "-o", "name")); len(kept) != 4 {
		t.Errorf("definitions: %q; want 4", kept)
	}
	r.kubectl(t, "delete", "crds", "-l", "app.kubernetes.io/instance=lectern", "--timeout=5m")
}
