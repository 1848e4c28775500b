package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/k8s/testing/operatortest"
	"github.com/lectern-dev/lectern/proxy/kubernetes"
	"github.com/lectern-dev/lectern/proxy/resource"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
)

// third is a third party on loopback. It answers with all credentials that it has received, at /stream when on is closed.
type third struct {
	*httptest.Server
	port int32
	auth atomic.Pointer[string] // the last one
	kept sync.Map
	on   chan struct{}
}

func newThird(t testing.TB) *third {
	t.Helper()
	p := &third{on: make(chan struct{})}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		p.auth.Store(&auth)
		p.kept.Store(auth, true)
		_, _ = io.WriteString(w, "well")
		if strings.HasSuffix(r.URL.Path, "/stream") {
			_ = http.NewResponseController(w).Flush()
			<-p.on
		}
		for value := range p.kept.Range {
			_, _ = fmt.Fprintf(w, " %s", value)
		}
	}))
	t.Cleanup(p.Close)
	_, port, err := net.SplitHostPort(p.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	p.port = int32(n)
	return p
}

// endpoint allows calls of paths below one of the third party, with credentials.
func (p *third) endpoint(name, project, path string, credentials ...string) *v1alpha1.ProxyEndpoint {
	return &v1alpha1.ProxyEndpoint{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resource.ProxyEndpointSpec{
		ProjectID: project, Environment: "prod", Access: resource.AccessByOrigin,
		Origins:      []resource.Rule{{Domain: "example.com"}},
		Destinations: []resource.Rule{{Pattern: regexp.QuoteMeta(p.URL+path) + "(/.*)?"}},
		Ports:        []int32{p.port}, AllowHTTP: true, Credentials: credentials,
	}}
}

func credential(name, project, id string) *v1alpha1.Credential {
	return &v1alpha1.Credential{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resource.CredentialSpec{
		ProjectID: project, Environment: "prod", ID: id,
		ValueFrom: resource.ValueSource{SecretKeyRef: resource.SecretKeyRef{Name: name, Key: "token"}},
	}}
}

func secret(name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"token": []byte(value)}}
}

func declared(name, project string, allowed ...string) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resource.ProjectSpec{
		ProjectID: project, Title: "A project", AllowedNamespaces: allowed,
	}}
}

// proxy is a running proxy with its policy in a cluster.
type proxy struct {
	base, internal string
	third          *third
	project        string
	declared       *v1alpha1.Project // declares project in the test's namespace
	log            *logtest.Buffer
	client         *http.Client
}

// startProxy runs a proxy that uses the API server of kube, and the operator's controllers of Credentials. The proxy
// watches the test's namespace, unless environ says otherwise.
func startProxy(t testing.TB, c *kubetest.Cluster, kube *rest.Config, environ map[string]string) *proxy {
	t.Helper()
	p := &proxy{third: newThird(t), project: "pr_" + c.Namespace, log: &logtest.Buffer{}}
	p.declared = declared("declared", p.project)
	c.Create(t, p.declared)
	operatortest.StartCredentials(t, c, values(c))
	p.run(t, c, kube, environ)
	return p
}

// run runs p.
func (p *proxy) run(t testing.TB, c *kubetest.Cluster, kube *rest.Config, environ map[string]string) {
	t.Helper()
	all := map[string]string{
		"LISTEN_PUBLIC": "127.0.0.1:0", "LISTEN_INTERNAL": "127.0.0.1:0", "DRAIN_DELAY": "0s", "LOG_LEVEL": "debug",
		"PROXY_ALLOWED_RANGES": "127.0.0.0/8", "ANON_RATE_LIMIT": "0", "PROXY_VALUES": values(c).String(),
		"WATCH_NAMESPACES": c.Namespace, // other tests share the server
	}
	for name, value := range environ {
		all[name] = value
	}
	var cfg kubernetes.Config
	if err := config.Load(&cfg, all); err != nil {
		t.Fatal(err)
	}
	type addresses struct{ public, internal net.Addr }
	ready := make(chan addresses, 1)
	cfg.Cluster.REST, cfg.Proxy.LogOutput = kube, p.log
	cfg.Proxy.HTTP.Ready = func(public, internal net.Addr) { ready <- addresses{public, internal} }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- kubernetes.Run(ctx, cfg) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	p.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the proxy ended with %v", err)
		}
		if t.Failed() {
			t.Logf("log of the proxy:\n%s", p.log)
		}
	})
	select {
	case a := <-ready:
		p.base, p.internal = "http://"+a.public.String(), "http://"+a.internal.String()
	case err := <-ended:
		ended <- nil
		t.Fatalf("the proxy did not start: %v", err)
	}
}

// awaitReady waits until the proxy has its first policy.
func (p *proxy) awaitReady(t testing.TB) {
	t.Helper()
	eventually.True(t, "the proxy is ready", func() bool { status, _ := p.ready(t); return status == http.StatusOK })
}

// ready returns the answer of /readyz.
func (p *proxy) ready(t testing.TB) (status int, checks map[string]string) {
	t.Helper()
	text, status := p.get(t, p.internal+"/readyz")
	var body struct{ Checks map[string]string }
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return status, body.Checks
}

func (p *proxy) get(t testing.TB, address string) (string, int) {
	t.Helper()
	resp, err := p.client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), resp.StatusCode
}

// metric returns the value of the line of /metrics that begins with a name and has all of some labels.
func (p *proxy) metric(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	text, _ := p.get(t, p.internal+"/metrics")
lines:
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(rest, label) {
				continue lines
			}
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' ')+1:]), 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	t.Fatalf("there is no metric %s %q", name, labels)
	return 0
}

// call requests a path of the third party with the placeholder of a credential. It returns the status, the value that
// the third party received, and the code of a refusal.
func (p *proxy) call(path, id string) (status int, sent, code string, err error) {
	resp, err := p.send(path, id)
	if err != nil {
		return 0, "", "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, "", "", err
	}
	if resp.Header.Get("X-Proxy-Worker-Success") == "true" {
		return resp.StatusCode, *p.third.auth.Load(), "", nil
	}
	var body struct{ Error struct{ Code string } }
	if err := json.Unmarshal(b, &body); err != nil {
		return resp.StatusCode, "", "", err
	}
	return resp.StatusCode, "", body.Error.Code, nil
}

// send is [proxy.call] with the whole answer.
func (p *proxy) send(path, id string) (*http.Response, error) {
	r, err := http.NewRequest(http.MethodGet, p.base+"/proxy?url="+url.QueryEscape(p.third.URL+path), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Project-ID", p.project)
	r.Header.Set("X-Environment", "prod")
	r.Header.Set("Origin", "https://app.example.com")
	if id != "" {
		r.Header.Set("Authorization", "{{ "+id+" }}")
	}
	return p.client.Do(r)
}

// awaitSent waits until the third party receives a value.
func (p *proxy) awaitSent(t testing.TB, path, id, value string) {
	t.Helper()
	eventually.True(t, "a call of "+path+" with "+id+" brings the value", func() bool {
		_, sent, code, err := p.call(path, id)
		if err != nil {
			t.Fatal(err)
		}
		return code == "" && sent == value
	})
}

// awaitRefused waits until a call is refused.
func (p *proxy) awaitRefused(t testing.TB, path, id, code string) {
	t.Helper()
	eventually.True(t, "a call of "+path+" with "+id+" is refused by "+code, func() bool {
		_, _, got, err := p.call(path, id)
		if err != nil {
			t.Fatal(err)
		}
		return got == code
	})
}
