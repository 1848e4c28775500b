package charttest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pgtest"
	"github.com/lectern-dev/lectern/shared/servicetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// exposed runs a service and the proxy as they are released, asks them for what brings their metrics about, and
// returns the metrics, of the operator's libraries too, with the labels of each.
func exposed(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	add := func(families map[string]*dto.MetricFamily) {
		for name, f := range families {
			var labels []string
			for _, m := range f.Metric {
				for _, l := range m.Label {
					labels = append(labels, l.GetName())
				}
			}
			names := []string{name}
			if f.GetType() == dto.MetricType_HISTOGRAM {
				names = []string{name + "_bucket", name + "_sum", name + "_count"}
				labels = append(labels, "le")
			}
			for _, n := range names {
				all[n] = append(all[n], labels...)
			}
		}
	}
	backing := servicetest.NewBacking(t, pgdb.Schema{Name: "charttest", Migrations: fstest.MapFS{
		"0001_nothing.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")},
	}})
	add(entriesMetrics(t, backing))
	add(proxyMetrics(t, backing))
	add(operatorMetrics(t))
	return all
}

// build compiles a program of another module of the project.
func build(t *testing.T, module, program string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), filepath.Base(program))
	cmd := exec.Command("go", "build", "-o", binary, "./"+program)
	cmd.Dir = filepath.Join("..", "..", module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", program, err, out)
	}
	return binary
}

func entriesMetrics(t *testing.T, backing *servicetest.Backing) map[string]*dto.MetricFamily {
	t.Helper()
	binary := build(t, "services/entries", "cmd/entries")
	migrate := exec.Command(binary, "migrate")
	for name, value := range backing.Environ() {
		migrate.Env = append(migrate.Env, name+"="+value)
	}
	if out, err := migrate.CombinedOutput(); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	// A primary is a standby that is never behind.
	service := servicetest.StartProcess(t, backing, binary, map[string]string{"READ_DATABASE_URL": backing.DB.ReaderURL})
	key := backing.Keys.Key("pr_1")
	service.Get(t, key, "/projects/pr_1/entries")
	service.Get(t, key, "/projects/pr_1/entries/none")
	service.Ingest(t, "entries", "{}")
	return scrape(t, service.InternalURL)
}

const proxyManifests = `
apiVersion: lectern.dev/v1alpha1
kind: ProxyEndpoint
metadata: {name: echo}
spec:
  project: pr_1
  environment: test
  origins: [{domain: example.com}]
  destinations: [{pattern: 'http://127\.0\.0\.1:\d+/'}]
  ports: [%s]
  allowHTTP: true
  credentials: [cred_echo]
---
apiVersion: lectern.dev/v1alpha1
kind: Credential
metadata: {name: echo}
spec: {project: pr_1, environment: test, id: cred_echo, valueFrom: {secretKeyRef: {name: echo, key: token}}}
---
apiVersion: v1
kind: Secret
metadata: {name: echo}
stringData: {token: a-value-to-be-found}
`

// proxyMetrics are those of a proxy that took a credential out of an answer.
func proxyMetrics(t *testing.T, backing *servicetest.Backing) map[string]*dto.MetricFamily {
	t.Helper()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	}))
	t.Cleanup(target.Close)
	at, err := url.Parse(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "echo.yaml"), fmt.Appendf(nil, proxyManifests, at.Port()), 0o600); err != nil {
		t.Fatal(err)
	}
	proxy := servicetest.StartProcess(t, backing, build(t, "proxy", "cmd/proxy"), map[string]string{
		"PROXY_MANIFESTS": folder, "PROXY_ALLOWED_RANGES": "127.0.0.0/8",
	})
	req, err := http.NewRequest(http.MethodGet, proxy.URL+"/proxy?url="+url.QueryEscape(target.URL+"/"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Origin": "https://example.com", "X-Project-ID": "pr_1", "X-Environment": "test", "Authorization": "Bearer {{ cred_echo }}",
	} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "redacted") {
		t.Fatalf("the proxy answered %d %q, %v; want the target's answer without the credential", resp.StatusCode, body, err)
	}
	return scrape(t, proxy.InternalURL)
}

// scrape reads what Prometheus would.
func scrape(t *testing.T, internal string) map[string]*dto.MetricFamily {
	t.Helper()
	resp, err := http.Get(internal + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// operatorMetrics are those that controller-runtime has of a controller that runs, of an election, and of requests to
// an API server.
func operatorMetrics(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ServerVersion(); err == nil {
		t.Fatal("a server that knows nothing told its version")
	}
	if _, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{LockConfig: resourcelock.ResourceLockConfig{Identity: "charttest"}},
		Name: "charttest", LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: time.Second,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	}); err != nil {
		t.Fatal(err)
	}
	c, err := controller.NewUnmanaged("charttest", controller.Options{Reconciler: reconcile.Func(
		func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })})
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	if err := c.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		close(asked)
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Start(ctx) }() // it ends with ctx
	<-asked
	deadline := time.Now().Add(10 * time.Second)
	for {
		families, err := ctrlmetrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]*dto.MetricFamily{}
		for _, f := range families {
			found[f.GetName()] = f
		}
		if found["controller_runtime_reconcile_time_seconds"] != nil || time.Now().After(deadline) {
			return found
		}
		runtime.Gosched()
	}
}
