package charttest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/issuertest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// exposed runs a service, the proxy and the operator as released, and sends requests that create their metrics. It
// returns the metrics with the labels of each.
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
	backing := servicetest.NewBacking(t, migrate.Schema{Name: "charttest", Migrations: fstest.MapFS{
		"0001_nothing.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")},
	}})
	entries := startEntries(t, backing)
	add(entriesMetrics(t, backing, entries))
	add(syncMetrics(t, backing, entries))
	add(proxyMetrics(t, backing))
	kubeconfig := startCluster(t)
	add(operatorMetrics(t, backing, kubeconfig))
	add(policyMetrics(t, backing, kubeconfig))
	return all
}

func startEntries(t *testing.T, backing *servicetest.Backing) *servicetest.Process {
	t.Helper()
	binary := servicetest.BuildOf(t, "../../services", "./entries/cmd/entries")
	migrate := exec.Command(binary, "migrate")
	for name, value := range backing.Environ() {
		migrate.Env = append(migrate.Env, name+"="+value)
	}
	if out, err := migrate.CombinedOutput(); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	// A primary is a standby that is never behind.
	return servicetest.StartProcess(t, backing, binary, map[string]string{
		"READ_DATABASE_URL": backing.DB.ReaderURL, "TOKEN_ISSUERS": issuertest.Start(t).Setting(),
	})
}

func entriesMetrics(t *testing.T, backing *servicetest.Backing, service *servicetest.Process) map[string]*dto.MetricFamily {
	t.Helper()
	key := backing.Keys.Key("pr_1")
	service.Get(t, key, "/projects/pr_1/entries")
	service.Get(t, key, "/projects/pr_1/entries/none")
	service.Ingest(t, "entries", "{}")
	return scrape(t, service.InternalURL)
}

// syncMetrics returns the metrics of the command line's sync after its copy is current, run as in the chart. SIGTERM
// ends it.
func syncMetrics(t *testing.T, backing *servicetest.Backing, entries *servicetest.Process) map[string]*dto.MetricFamily {
	t.Helper()
	address := freeAddress(t)
	pod := one[*apps.Deployment](t, render(t, "sync: {copies: {shop: {project: pr_1, columns: none, moved: true}}}"), "lectern-sync-shop").Spec.Template.Spec
	program, environ := servicetest.BuildOf(t, "../../cli", "./cmd/lectern"), []string{
		"LECTERN_URL=" + entries.URL, "LECTERN_PROJECT_ID=pr_1", "LECTERN_API_KEY=" + backing.Keys.Key("pr_1"),
		"LECTERN_SYNC_TO=file://" + t.TempDir(), "LECTERN_METRICS_ADDRESS=" + address,
	}
	args := pod.Containers[0].Args
	follow := slices.Index(args, "--follow")
	// A copy has a metric of its verification once there was one.
	for _, mode := range []string{"--quiet", "--verify"} {
		once := exec.Command(program, slices.Replace(slices.Clone(args), follow, follow+1, mode)...)
		once.Env = environ
		if said, err := once.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", mode, err, said)
		}
	}
	sync := exec.Command(program, args...)
	sync.Env = environ
	ended, log := run(t, sync)
	families := awaitMetrics(t, address, ended, log)
	if err := sync.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ended
	if code := sync.ProcessState.ExitCode(); code != 130 {
		t.Errorf("after SIGTERM the sync ends with %d; want 130, as docs/reference/copies.md says\n%s", code, log.String())
	}
	return families
}

// freeAddress returns an address at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// run starts a program, and kills the program at the end of t. log may be read once ended is closed.
func run(t *testing.T, program *exec.Cmd) (ended <-chan struct{}, log *bytes.Buffer) {
	t.Helper()
	log = &bytes.Buffer{}
	program.Stderr = log
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	go func() { _ = program.Wait(); close(end) }() // the test reads the exit code
	t.Cleanup(func() { _ = program.Process.Kill(); <-end })
	return end, log
}

// awaitMetrics waits until a program is ready and has some metrics, and returns all its metrics.
func awaitMetrics(t *testing.T, address string, ended <-chan struct{}, log *bytes.Buffer, names ...string) (families map[string]*dto.MetricFamily) {
	t.Helper()
	eventually.True(t, "the program is ready, with its metrics", func() bool {
		select {
		case <-ended:
			t.Fatalf("the program ended before it was ready\n%s", log.String())
		default:
		}
		resp, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false // the program does not listen yet
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			return false
		}
		families = scrape(t, "http://"+address)
		return !slices.ContainsFunc(names, func(name string) bool { return families[name] == nil })
	})
	return families
}

const proxyManifests = `
apiVersion: lectern.dev/v1alpha1
kind: ProxyEndpoint
metadata: {name: echo}
spec:
  projectId: pr_1
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
spec: {projectId: pr_1, environment: test, id: cred_echo, valueFrom: {secretKeyRef: {name: echo, key: token}}}
---
apiVersion: v1
kind: Secret
metadata: {name: echo}
stringData: {token: a-value-to-be-found}
`

// proxyMetrics returns the metrics of a proxy that removed a credential from an answer.
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
	proxy := servicetest.StartProcess(t, backing, servicetest.BuildOf(t, "../../proxy", "./cmd/proxy"), map[string]string{
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
	var families map[string]*dto.MetricFamily
	eventually.True(t, "the proxy counts the request, after the caller has the answer", func() bool {
		families = scrape(t, proxy.InternalURL)
		return families["lectern_proxy_request_duration_seconds"] != nil
	})
	return families
}

// scrape reads metrics as Prometheus does.
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

// assets names the folder of kube-apiserver and etcd.
const assets = "KUBEBUILDER_ASSETS"

// startCluster starts an API server with the custom resources and one object. It returns the path of its kubeconfig.
func startCluster(t *testing.T) (kubeconfig string) {
	t.Helper()
	if os.Getenv(assets) == "" {
		const missing = assets + " is not set: there is no API server for the operator (scripts/test-long sets it by CLUSTER_KIT)"
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	// envtest logs through a global of its libraries.
	ctrllog.SetLogger(logr.Discard())
	cluster := &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join(chartFolder, "files", "crds")}, ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: 5 * time.Minute, // on a busy machine
	}
	config, err := cluster.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	user, err := cluster.AddUser(envtest.User{Name: "operator", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The operator's Lease is there.
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "lectern"}}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	credential := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "lectern.dev/v1alpha1", "kind": "Credential", "metadata": map[string]any{"name": "echo", "namespace": "default"},
		"spec": map[string]any{
			"projectId": "pr_1", "environment": "test", "id": "cred_echo",
			"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "none", "key": "token"}},
		},
	}}
	if err := admin.Create(t.Context(), credential); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// policyMetrics returns the metrics of a proxy with a policy from the cluster.
func policyMetrics(t *testing.T, backing *servicetest.Backing, kubeconfig string) map[string]*dto.MetricFamily {
	t.Helper()
	proxy := servicetest.StartProcess(t, backing, servicetest.BuildOf(t, "../../proxy/kubernetes", "./cmd/proxy"), map[string]string{"KUBECONFIG": kubeconfig})
	return scrape(t, proxy.InternalURL)
}

// operatorMetrics returns the metrics of an operator that has reconciled an object.
func operatorMetrics(t *testing.T, backing *servicetest.Backing, kubeconfig string) map[string]*dto.MetricFamily {
	t.Helper()
	address := freeAddress(t)
	operator := exec.Command(servicetest.BuildOf(t, "../../k8s", "./cmd/operator"), "serve")
	operator.Env = []string{
		"KUBECONFIG=" + kubeconfig, "LISTEN_INTERNAL=" + address,
		"AUTH_ADMIN_DATABASE_URL=" + backing.Keys.Config.AdminURL.Reveal(),
	}
	ended, log := run(t, operator)
	return awaitMetrics(t, address, ended, log, "controller_runtime_reconcile_time_seconds", "lectern_operator_objects")
}
