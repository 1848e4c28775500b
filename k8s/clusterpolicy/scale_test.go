package clusterpolicy_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// changes makes n changes one after the other. It returns the time from before each request to the API server until a
// call showed the change, shortest first. The changes are another value, another destination, a new credential and a
// revoked one.
func changes(t testing.TB, c *cluster, p *proxy, n int) []time.Duration {
	t.Helper()
	token := secret("rotated", canary)
	shop := p.third.endpoint("changed", p.project, "/0", "cred_rotated", "cred_new")
	c.create(t, token, credential("rotated", p.project, "cred_rotated"), shop)
	p.awaitSent(t, "/0", "cred_rotated", canary)
	path := "/0"
	var took []time.Duration
	for i := range n {
		value := fmt.Sprintf("%s-%d", canary, i)
		began := time.Now()
		switch i % 4 {
		case 0:
			change(t, c, token, func(s *corev1.Secret) { s.Data["token"] = []byte(value) })
			p.awaitSent(t, path, "cred_rotated", value)
		case 1:
			path = fmt.Sprintf("/%d", i)
			change(t, c, shop, func(e *v1alpha1.ProxyEndpoint) {
				e.Spec.Destinations = p.third.endpoint("", "", path).Spec.Destinations
			})
			p.awaitSent(t, path, "", "")
		case 2:
			c.create(t, secret("new", value), credential("new", p.project, "cred_new"))
			p.awaitSent(t, path, "cred_new", value)
		case 3:
			for _, o := range []client.Object{credential("new", "", ""), secret("new", "")} {
				o.SetNamespace(c.namespace)
				c.remove(t, o)
			}
			p.awaitRefused(t, path, "cred_new", "credential_not_allowed")
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took
}

// judge logs how long changes took, and checks that at most one of a hundred takes more than a second.
func judge(t testing.TB, took []time.Duration) {
	t.Helper()
	n := len(took)
	p99 := took[min(n-1, n*99/100)]
	t.Logf("%d changes, from before they were sent until a call showed them: median %v, p99 %v, slowest %v", n,
		took[n/2].Round(time.Millisecond), p99.Round(time.Millisecond), took[n-1].Round(time.Millisecond))
	if p99 > time.Second {
		t.Errorf("the p99 is %v; asked for: 1s", p99)
	}
}

// A change is live within a second.
func TestLongChanges(t *testing.T) {
	long(t)
	c := newCluster(t)
	p := startProxy(t, c, c.asProxy(t), map[string]string{"LOG_LEVEL": "warn"})
	p.awaitReady(t)
	judge(t, changes(t, c, p, 100))
}

// A minute without changes costs the API server one request every five seconds.
func TestLongRest(t *testing.T) {
	long(t)
	c := newCluster(t)
	seen := &requests{}
	kube := c.asProxy(t)
	kube.Wrap(func(next http.RoundTripper) http.RoundTripper { seen.next = next; return seen })
	p := startProxy(t, c, kube, map[string]string{"LOG_LEVEL": "warn"})
	c.create(t, secret("stripe", canary), credential("stripe", p.project, "cred_stripe"), p.third.endpoint("shop", p.project, "/a", "cred_stripe"))
	p.awaitReady(t)
	p.awaitSent(t, "/a", "cred_stripe", canary)
	seen.mu.Lock()
	before := len(seen.all)
	seen.mu.Unlock()
	time.Sleep(time.Minute) // the test is about this time
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for _, r := range seen.all[before:] {
		if r.Method != http.MethodGet {
			t.Errorf("it asked for %s %s", r.Method, r.URL.Path)
		}
	}
	n := len(seen.all) - before
	t.Logf("%d requests in a minute", n)
	if n > 20 {
		t.Errorf("they were %d; asked for: at most 20", n)
	}
}

// TestLongScale measures two thousand objects with as many unused Secrets: the time until the policy has them, the
// memory, and the time of a change. The figures are in bench/README.md.
func TestLongScale(t *testing.T) {
	long(t)
	const each = 500
	c := newOwnCluster(t)
	p := &proxy{third: newThird(t), project: "pr_" + c.namespace, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	var writers sync.WaitGroup
	for writer := range 8 {
		writers.Go(func() {
			for i := writer; i < each; i += 8 {
				name, id := fmt.Sprintf("o-%d", i), fmt.Sprintf("cred_%d", i)
				project := p.project + "-" + name
				key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.APIKeySpec{ProjectID: project}}
				for _, o := range []client.Object{
					declared(name, project), key, secret(name, "value-of-"+name), credential(name, project, id), p.third.endpoint(name, project, "/"+name, id),
				} {
					o.SetNamespace(c.namespace)
					if err := c.client.Create(t.Context(), o); err != nil {
						t.Errorf("create %T %s: %v", o, name, err)
						return
					}
				}
				for j := range 4 {
					// Of 10 KiB each: 20 MB in all, were they held.
					other := secret(fmt.Sprintf("other-%d-%d", i, j), strings.Repeat("0123456789", 1024))
					other.Namespace = c.namespace
					if err := c.client.Create(t.Context(), other); err != nil {
						t.Errorf("create a Secret: %v", err)
						return
					}
				}
			}
		})
	}
	writers.Wait()
	if t.Failed() {
		t.FailNow()
	}
	c.create(t, declared("changes", p.project))

	environ := map[string]string{
		"LISTEN_PUBLIC": "127.0.0.1:0", "LISTEN_INTERNAL": "127.0.0.1:0", "DRAIN_DELAY": "0s", "PROXY_ALLOWED_RANGES": "127.0.0.0/8",
		"ANON_RATE_LIMIT": "0", "KUBECONFIG": kubeconfig(t, c.asProxy(t)), "PROXY_VALUES": c.values().String(),
	}
	c.startOperator(t)
	binary := servicetest.Build(t, "../cmd/proxy")
	began := time.Now()
	process := launch(t, p, binary, environ)
	p.awaitReady(t)
	now, peak := process.memory(t)
	t.Logf("%d objects in force %v after the start of the process, with %d MiB resident, %d at most", 4*each, time.Since(began).Round(time.Millisecond), now>>20, peak>>20)
	for _, kind := range []string{"Credential", "ProxyEndpoint"} {
		if n := p.metric(t, "lectern_proxy_policy_objects", `kind="`+kind+`"`, `state="in_force"`); n != each {
			t.Errorf("%v objects of %s are in force", n, kind)
		}
	}
	judge(t, changes(t, c, p, 40))
	n, sum := p.metric(t, "lectern_proxy_policy_build_duration_seconds_count"), p.metric(t, "lectern_proxy_policy_build_duration_seconds_sum")
	now, peak = process.memory(t)
	t.Logf("a policy of them is made in %.1f ms; then %d MiB resident, %d at most", 1000*sum/n, now>>20, peak>>20)
	if now > 256<<20 {
		t.Errorf("%d MiB resident; asked for: at most 256", now>>20)
	}
}

// kubeconfig writes a kubeconfig for an API server, and returns its path.
func kubeconfig(t testing.TB, config *rest.Config) string {
	t.Helper()
	all := clientcmdapi.NewConfig()
	all.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	all.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		Impersonate: config.Impersonate.UserName, ImpersonateGroups: config.Impersonate.Groups,
	}
	all.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	all.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*all, path); err != nil {
		t.Fatal(err)
	}
	return path
}
