package operator

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

func inNamespace(name string) client.ListOption { return client.InNamespace(name) }

func get(t testing.TB, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func metricsOf(t testing.TB, url string) string {
	t.Helper()
	status, body := get(t, url+"/metrics")
	if status != 200 {
		t.Fatalf("/metrics: %d %.300s", status, body)
	}
	return body
}

// acting reports whether the operator at url has the Lease.
func acting(t testing.TB, url string) bool {
	t.Helper()
	_, body := get(t, url+"/readyz")
	var said struct{ Acting bool }
	if err := json.Unmarshal([]byte(body), &said); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return said.Acting
}

// Of two operators one acts. The other takes over at once if the first one stops. If the first one cannot reach the
// API server, it exits, and the other takes over later.
func TestTwoOperators(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	first := start(t, c, nil, shortLease)
	eventually.True(t, "the first one acts", func() bool { return acting(t, first.URL) })
	second := start(t, c, nil, shortLease)
	eventually.True(t, "the second one is ready", func() bool { status, _ := get(t, second.URL+"/readyz"); return status == 200 })
	cred := newCredential(named("x"), "pr_1", "cred_x", "none")
	c.Create(t, cred)
	c.AwaitReady(t, cred, v1alpha1.ReasonSecretNotFound)
	if acting(t, second.URL) || second.Requests.Writes() > 0 {
		t.Errorf("both act: %v", second.Requests.All())
	}
	var lease coordinationv1.Lease
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "lectern-operator"}, &lease); err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the second one acts", func() bool { return acting(t, second.URL) })
	c.Create(t, newSecret(named("none"), map[string]string{"token": canary}))
	c.AwaitReady(t, cred, v1alpha1.ReasonValid)

	// Cut off: the one that acts loses its Lease and ends, the third one goes on.
	third := start(t, c, nil, shortLease)
	second.Requests.Cut()
	select {
	case err := <-second.done:
		close(second.done)
		if err == nil {
			t.Error("an operator that lost its Lease stopped without saying so")
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("an operator that lost its Lease goes on")
	}
	eventually.True(t, "the third one acts", func() bool { return acting(t, third.URL) })
	c.Delete(t, newSecret(in(c.Namespace, "none"), nil))
	c.AwaitReady(t, cred, v1alpha1.ReasonSecretNotFound)
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestStopDuringStart checks that an operator that is stopped while the API server keeps it waiting stops without an error.
func TestStopDuringStart(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	asked := make(chan struct{})
	o := start(t, c, map[string]string{"AUTH_ADMIN_DATABASE_URL": "postgres://operator@127.0.0.1:1/auth"}, func(cfg *Config) {
		cfg.Cluster.REST.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.URL.Path, "/namespaces/kube-system") {
					close(asked)
					<-r.Context().Done()
				}
				return next.RoundTrip(r)
			})
		})
	})
	eventually.Receive(t, "the operator asks which cluster this is", asked)
	if err := o.Stop(); err != nil {
		t.Error(err)
	}
}

func TestInternalAddress(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	// The operator starts before the API server, and waits for the API server.
	var up atomic.Bool
	o := start(t, c, map[string]string{"LEADER_ELECTION": "false"}, func(cfg *Config) {
		cfg.Cluster.REST.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if !up.Load() {
					return nil, errors.New("connection refused")
				}
				return next.RoundTrip(r)
			})
		})
	})
	eventually.True(t, "the operator says that it waits", func() bool { return strings.Contains(o.log.String(), "waits for the API server") })
	if status, body := get(t, o.URL+"/readyz"); status != 503 || !strings.Contains(body, `"cache":"failing"`) {
		t.Errorf("/readyz without an API server: %d %s", status, body)
	}
	up.Store(true)
	const ready = `{"acting":true,"checks":{"cache":"ok"},"status":"ready"}` + "\n"
	eventually.True(t, "it is ready and acts", func() bool { status, body := get(t, o.URL+"/readyz"); return status == 200 && body == ready })
	if status, body := get(t, o.URL+"/healthz"); status != 200 || body != `{"status":"ok"}`+"\n" {
		t.Errorf("/healthz: %d %s", status, body)
	}
	if status, _ := get(t, o.URL+"/debug/pprof/"); status != 404 {
		t.Errorf("profiles that nobody asked for: %d", status)
	}
	cred := newCredential(named("x"), "pr_1", "cred_x", "none")
	c.Create(t, cred)
	c.AwaitReady(t, cred, v1alpha1.ReasonSecretNotFound)
	want := []string{
		`lectern_operator_objects{`, `kind="Credential"`, `reason="SecretNotFound"`, `lectern_build_info{`, `service_name="operator"`, "process_open_fds ",
		`controller_runtime_reconcile_total{controller="credential"`, "workqueue_depth{", "rest_client_requests_total{",
	}
	eventually.True(t, "the metrics show the object", func() bool {
		text := metricsOf(t, o.URL)
		for _, w := range want {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	})

	profiled := start(t, c, map[string]string{"LEADER_ELECTION": "false", "PPROF": "true"}, nil)
	if status, _ := get(t, profiled.URL+"/debug/pprof/"); status != 200 {
		t.Errorf("profiles that were asked for: %d", status)
	}
}

func TestConfigFaults(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   map[string]string
		want string // variable at fault; empty: none
	}{
		{"defaults", map[string]string{}, ""},
		{"all", map[string]string{"WATCH_NAMESPACES": "a,b", "REGION_INTERNAL_URL": "http://region:9090", "INGEST_API_KEYS": "a-key-0123456789", "PUBLIC_URL": "https://api.example.com"}, ""},
		{"no key", map[string]string{"REGION_INTERNAL_URL": "http://region:9090"}, "INGEST_API_KEYS"},
		{"a short key", map[string]string{"REGION_INTERNAL_URL": "http://region:9090", "INGEST_API_KEYS": "a-key-012345678"}, "INGEST_API_KEYS"},
		{"no URL", map[string]string{"REGION_INTERNAL_URL": "region:9090", "INGEST_API_KEYS": "a-key-0123456789"}, "REGION_INTERNAL_URL"},
		{"public URL", map[string]string{"PUBLIC_URL": "api.example.com"}, "PUBLIC_URL"},
		{"address", map[string]string{"LISTEN_INTERNAL": "9090"}, "LISTEN_INTERNAL"},
		{"auth", map[string]string{"AUTH_CACHE_TTL": "1ms"}, "AUTH_CACHE_TTL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var cfg Config
			err := config.Load(&cfg, tt.in)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			faults, ok := errors.AsType[*config.Faults](err)
			if !ok || !strings.Contains(faults.Error(), "\n  "+tt.want+" ") {
				t.Errorf("says %v, want a fault of %s", err, tt.want)
			}
		})
	}
}
