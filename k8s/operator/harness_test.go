package operator

import (
	"context"
	"net"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// running is a running operator.
type running struct {
	URL      string // of the internal address
	Requests *kubetest.Requests

	t    testing.TB
	log  *servicetest.Log
	stop context.CancelFunc
	done chan error
}

// shortLease lets another operator take over soon from one that is cut off. A busy machine still renews it in time.
func shortLease(cfg *Config) { cfg.LeaseDuration = 6 * time.Second }

// declare makes c's namespace the owner of the project pr_1, unless it is already.
func declare(t testing.TB, c *kubetest.Cluster) {
	t.Helper()
	o := newProject(in(c.Namespace, "pr-1"), "pr_1")
	if err := c.Client.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// valuesFor makes the Secret for the proxy, as the chart does, and names it in environ.
func valuesFor(t testing.TB, c *kubetest.Cluster, environ map[string]string) {
	t.Helper()
	values := &corev1.Secret{ObjectMeta: in(c.Namespace, "lectern-proxy-values")}
	if err := c.Client.Create(t.Context(), values); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	environ["PROXY_VALUES"] = c.Namespace + "/" + values.Name
}

// start runs an operator on c until t ends, with the declared project pr_1. It watches only the test's namespace and
// those in more, so that tests that share a server do not interfere.
func start(t testing.TB, c *kubetest.Cluster, environ map[string]string, change func(*Config)) *running {
	t.Helper()
	all := map[string]string{
		"WATCH_NAMESPACES": c.Namespace, "LISTEN_INTERNAL": "127.0.0.1:0", "LOG_LEVEL": "debug", "OTEL_TRACES_EXPORTER": "none",
	}
	for name, value := range environ {
		all[name] = value
	}
	declare(t, c)
	valuesFor(t, c, all)
	var cfg Config
	if err := config.Load(&cfg, all); err != nil {
		t.Fatal(err)
	}
	r := &running{Requests: &kubetest.Requests{}, t: t, log: &servicetest.Log{}, done: make(chan error, 1)}
	cfg.Cluster.REST = c.As(t, "operator", cfg.Cluster.WatchNamespaces...) // with the rights that the chart gives it, and no more
	r.Requests.Count(cfg.Cluster.REST)
	cfg.Lease.Namespace, cfg.LogOutput = c.Namespace, r.log
	ready := make(chan struct{})
	cfg.Ready = func(internal net.Addr) {
		r.URL = "http://" + internal.String()
		close(ready)
	}
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() { r.done <- Run(ctx, cfg) }()
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Errorf("the operator stopped with: %v", err)
		}
		if t.Failed() {
			t.Logf("the operator's log, its end:\n%s", r.log.Tail(6000))
		}
	})
	select {
	case <-ready:
	case err := <-r.done:
		close(r.done)
		t.Fatalf("the operator did not start: %v\n%s", err, r.log.Tail(6000))
	case <-time.After(time.Minute):
		t.Fatalf("the operator does not start\n%s", r.log.Tail(6000))
	}
	return r
}

// Stop stops the operator and returns what its Run did.
func (r *running) Stop() error {
	r.stop()
	err, open := <-r.done
	if open {
		close(r.done)
	}
	return err
}

// quiet waits until no reconcile runs and the operator has sent no write for a while, and returns the number of its
// writes. A reconcile that waits for the region service has not ended.
func (r *running) quiet(t testing.TB) int {
	t.Helper()
	const still = 300 * time.Millisecond
	last, since := r.Requests.Writes(), time.Now()
	eventually.True(t, "the operator rests", func() bool {
		if now := r.Requests.Writes(); now != last || reconciling.MatchString(metricsOf(t, r.URL)) {
			last, since = now, time.Now()
		}
		return time.Since(since) > still
	})
	return last
}

// reconciling finds a controller that runs a reconcile. The depth of a queue would not do: a stopped operator of the same
// process leaves its queues as they were.
var reconciling = regexp.MustCompile(`(?m)^controller_runtime_active_workers{.*} [1-9]`)
