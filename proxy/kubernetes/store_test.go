package kubernetes_test

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/proxy/resource"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

const (
	canary = "sk_live_c4n4ryC4N4RY51Hx0Qw9"
	second = "sk_live_an0th3rV4lue8Kq2Zt7b"
)

// The proxy has no policy at first, then that of the cluster, and follows its changes.
func TestLife(t *testing.T) {
	c := start(t)
	way, kube := newWay(t, c.As(t, "proxy"))
	way.Load().Refuse()
	p := startProxy(t, c, kube, nil)
	if status, checks := p.ready(t); status != http.StatusServiceUnavailable || checks["loaded"] != "failing" || checks["policy"] != "failing" {
		t.Errorf("before there is a policy /readyz says %d %v", status, checks)
	}
	if _, _, code, err := p.call("/a", ""); err != nil || code != "origin_not_allowed" {
		t.Errorf("before there is a policy a call is answered %q, %v", code, err)
	}
	way.Load().Heal()
	p.awaitReady(t)

	token, key := secret("stripe", canary), credential("stripe", p.project, "cred_stripe")
	c.Create(t, token, key, p.third.endpoint("shop", p.project, "/a", "cred_stripe"))
	p.awaitSent(t, "/a/b", "cred_stripe", canary)
	eventually.True(t, "/readyz says that all is well", func() bool {
		status, checks := p.ready(t)
		return status == http.StatusOK && checks["policy"] == "ok"
	})

	kubetest.Change(t, c, token, func(s *corev1.Secret) { s.Data["token"] = []byte(second) })
	p.awaitSent(t, "/a", "cred_stripe", second)
	kubetest.Change(t, c, token, func(s *corev1.Secret) { s.Data = map[string][]byte{"other": []byte(second)} })
	p.awaitRefused(t, "/a", "cred_stripe", "credential_not_allowed")
	kubetest.Change(t, c, key, func(k *v1alpha1.Credential) { k.Spec.ValueFrom.SecretKeyRef.Key = "other" })
	p.awaitSent(t, "/a", "cred_stripe", second)
	c.Delete(t, token)
	p.awaitRefused(t, "/a", "cred_stripe", "credential_not_allowed")
	p.awaitSent(t, "/a", "", "") // all else stays
	token = secret("stripe", "")
	token.Data = map[string][]byte{"other": []byte(canary)}
	c.Create(t, token)
	p.awaitSent(t, "/a", "cred_stripe", canary)
	c.Delete(t, key)
	p.awaitRefused(t, "/a", "cred_stripe", "credential_not_allowed")
	// Deleted counts at once, also where somebody's finalizer keeps the object.
	held := credential("stripe", p.project, "cred_stripe")
	held.Finalizers = []string{"example.com/hold"}
	held.Spec.ValueFrom.SecretKeyRef.Key = "other"
	c.Create(t, held)
	p.awaitSent(t, "/a", "cred_stripe", canary)
	c.Delete(t, held)
	p.awaitRefused(t, "/a", "cred_stripe", "credential_not_allowed")
	kubetest.Change(t, c, held, func(k *v1alpha1.Credential) { k.Finalizers = nil })

	shop := p.third.endpoint("shop", p.project, "/a")
	shop.Namespace = c.Namespace
	kubetest.Change(t, c, shop, func(e *v1alpha1.ProxyEndpoint) {
		e.Spec.Destinations = p.third.endpoint("", "", "/b").Spec.Destinations
	})
	p.awaitRefused(t, "/a", "", "destination_not_allowed")
	p.awaitSent(t, "/b", "", "")
	c.Delete(t, shop)
	p.awaitRefused(t, "/b", "", "origin_not_allowed")
}

// A faulty object excludes only itself. The log names the fault once, and a correction ends it.
func TestFaultyObjects(t *testing.T) {
	c := start(t)
	p := startProxy(t, c, c.As(t, "proxy"), nil)
	p.awaitReady(t)
	c.Create(t, secret("good", canary), credential("good", p.project, "cred_good"), p.third.endpoint("good", p.project, "/good", "cred_good"))
	p.awaitSent(t, "/good", "cred_good", canary)

	bad := p.third.endpoint("bad", p.project, "/bad")
	bad.Spec.Origins = []resource.Rule{{Domain: "co.uk"}} // the schema cannot know
	rival := credential("rival", p.project, "cred_good")
	rival.Spec.ValueFrom.SecretKeyRef.Name = "good"
	c.Create(t, bad, credential("lone", p.project, "cred_lone"), rival, p.third.endpoint("half", p.project, "/half", "cred_good", "cred_lone", "cred_none"))
	faulty := func(kind string) float64 {
		return p.metric(t, "lectern_proxy_policy_objects", `kind="`+kind+`"`, `state="faulty"`)
	}
	eventually.True(t, "the metric counts them", func() bool { return faulty("ProxyEndpoint") == 2 && faulty("Credential") == 2 })
	p.awaitSent(t, "/good", "cred_good", canary)
	p.awaitSent(t, "/half", "cred_good", canary)
	p.awaitRefused(t, "/half", "cred_lone", "credential_not_allowed")
	p.awaitRefused(t, "/bad", "", "destination_not_allowed")
	if current := p.metric(t, "lectern_proxy_policy_current"); current != 1 {
		t.Errorf("with faulty objects the policy counts as %v", current)
	}
	says := func(name, message, reason string) bool {
		for line := range strings.Lines(p.log.String()) {
			if strings.Contains(line, `"name":"`+name+`"`) && strings.Contains(line, message) && strings.Contains(line, reason) &&
				strings.Contains(line, `"namespace":"`+c.Namespace+`"`) {
				return true
			}
		}
		return false
	}
	for _, want := range []struct{ name, reason string }{
		{"bad", `spec.origins[0].domain: \"co.uk\" would allow`}, {"lone", "the operator has given no value"},
		{"rival", "as is that of Credential/good"}, {"half", `there is no Credential with the id \"cred_none\"`},
	} {
		eventually.True(t, "the log says what is wrong with "+want.name, func() bool { return says(want.name, "policy: an object is faulty", want.reason) })
	}

	kubetest.Change(t, c, bad, func(e *v1alpha1.ProxyEndpoint) { e.Spec.Origins = []resource.Rule{{Domain: "example.com"}} })
	c.Create(t, secret("lone", second))
	p.awaitSent(t, "/bad", "", "")
	p.awaitSent(t, "/half", "cred_lone", second)
	eventually.True(t, "the log says that it is mended", func() bool {
		return says("bad", "an object is no longer faulty", "") && says("lone", "an object is no longer faulty", "")
	})
	if n := strings.Count(p.log.String(), `"reason":"spec.origins[0].domain`); n != 1 {
		t.Errorf("it was said %d times what is wrong", n)
	}
}

// Another namespace may use objects of a namespace only by a grant. The proxy needs no rights in other namespaces than those
// that it watches.
func TestGrants(t *testing.T) {
	c := start(t)
	other := c.NewNamespace(t)
	p := startProxy(t, c, c.As(t, "proxy", c.Namespace, other), map[string]string{"WATCH_NAMESPACES": c.Namespace + "," + other})
	p.awaitReady(t)
	owner, key := p.declared, credential("stripe", p.project, "cred_stripe")
	kubetest.Change(t, c, owner, func(o *v1alpha1.Project) { o.Spec.AllowedNamespaces = []string{other} })
	c.Create(t, secret("stripe", canary), key)
	used := p.third.endpoint("shop", p.project, "/a", "cred_stripe")
	used.Namespace = other
	c.Create(t, used)
	p.awaitSent(t, "/a", "", "")
	eventually.True(t, "the policy is current", func() bool { _, checks := p.ready(t); return checks["policy"] == "ok" })
	p.awaitRefused(t, "/a", "cred_stripe", "credential_not_allowed")
	kubetest.Change(t, c, key, func(k *v1alpha1.Credential) { k.Spec.AllowedNamespaces = []string{other} })
	p.awaitSent(t, "/a", "cred_stripe", canary)
	kubetest.Change(t, c, key, func(k *v1alpha1.Credential) { k.Spec.AllowedNamespaces = nil })
	p.awaitRefused(t, "/a", "cred_stripe", "credential_not_allowed")
	kubetest.Change(t, c, owner, func(o *v1alpha1.Project) { o.Spec.AllowedNamespaces = nil })
	p.awaitRefused(t, "/a", "", "origin_not_allowed")
	kubetest.Change(t, c, owner, func(o *v1alpha1.Project) { o.Spec.AllowedNamespaces = []string{"*"} })
	p.awaitSent(t, "/a", "", "")
	// A Project that is being deleted still says whose the project is.
	kubetest.Change(t, c, owner, func(o *v1alpha1.Project) {
		o.Finalizers, o.Spec.AllowedNamespaces = []string{"example.com/hold"}, nil
	})
	p.awaitRefused(t, "/a", "", "origin_not_allowed")
	c.Delete(t, owner)
	c.Create(t, p.third.endpoint("own", p.project, "/own"))
	p.awaitSent(t, "/own", "", "")
	p.awaitRefused(t, "/a", "", "destination_not_allowed")
	kubetest.Change(t, c, owner, func(o *v1alpha1.Project) { o.Finalizers = nil })
}

// The proxy uses only objects of the given namespaces.
func TestNamespaces(t *testing.T) {
	c := start(t)
	other := c.NewNamespace(t)
	p := startProxy(t, c, c.As(t, "proxy"), map[string]string{"WATCH_NAMESPACES": c.Namespace + ", " + other + ",never-made"})
	p.awaitReady(t)
	kubetest.Change(t, c, p.declared, func(o *v1alpha1.Project) { o.Spec.AllowedNamespaces = []string{"*"} })
	third := c.NewNamespace(t)
	for namespace, path := range map[string]string{c.Namespace: "/a", other: "/b", third: "/c"} {
		e, key, token := p.third.endpoint("shop", p.project, path, "cred_"+path[1:]), credential("key", p.project, "cred_"+path[1:]), secret("key", canary+path)
		e.Namespace, key.Namespace, token.Namespace = namespace, namespace, namespace
		c.Create(t, token, key, e)
	}
	p.awaitSent(t, "/a", "cred_a", canary+"/a")
	p.awaitSent(t, "/b", "cred_b", canary+"/b")
	p.awaitRefused(t, "/c", "", "destination_not_allowed")
}

// Objects of an undeclared project do not apply, unless that is allowed. A Project in conflict never declares its
// project, however old it is.
func TestUndeclaredProjects(t *testing.T) {
	c := start(t)
	rival := c.NewNamespace(t)
	p := startProxy(t, c, c.As(t, "proxy"), map[string]string{"WATCH_NAMESPACES": c.Namespace + "," + rival})
	p.awaitReady(t)
	waiting := declared("waiting", p.project)
	waiting.Namespace = rival
	c.Create(t, waiting)
	// As the operator writes it: the one that was there first declares the project, the other is in conflict.
	accepted := func(o *v1alpha1.Project, status metav1.ConditionStatus, reason string) {
		meta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionAccepted, Status: status, Reason: reason, ObservedGeneration: o.Generation, LastTransitionTime: metav1.Now(),
		})
		if err := c.Client.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	accepted(p.declared, metav1.ConditionTrue, v1alpha1.ReasonDeclared)
	accepted(waiting, metav1.ConditionFalse, v1alpha1.ReasonConflict)
	theirs := p.third.endpoint("theirs", p.project, "/theirs")
	theirs.Namespace = rival
	c.Create(t, theirs, p.third.endpoint("shop", p.project, "/a"))
	p.awaitSent(t, "/a", "", "")
	p.awaitRefused(t, "/theirs", "", "destination_not_allowed")
	c.Delete(t, p.declared)
	p.awaitRefused(t, "/a", "", "origin_not_allowed")
	p.awaitRefused(t, "/theirs", "", "origin_not_allowed")
	eventually.True(t, "the log says why", func() bool { return strings.Contains(p.log.String(), `no Project declares project \"`+p.project) })
	kubetest.AwaitYounger(t, waiting)
	c.Create(t, declared("anew", p.project))
	p.awaitSent(t, "/a", "", "")
	p.awaitRefused(t, "/theirs", "", "destination_not_allowed")
	kubetest.Change(t, c, waiting, func(o *v1alpha1.Project) { o.Spec.Title = "Another" })
	p.awaitRefused(t, "/a", "", "destination_not_allowed") // until the operator has accepted the other one
	p.awaitSent(t, "/theirs", "", "")
}

// With UNDECLARED_PROJECTS=allow, every namespace may use an undeclared project. Without WATCH_NAMESPACES, the proxy uses
// the objects of all.
func TestUndeclaredProjectsAllowed(t *testing.T) {
	c := start(t)
	p := startProxy(t, c, c.As(t, "proxy"), map[string]string{"UNDECLARED_PROJECTS": "allow", "WATCH_NAMESPACES": ""})
	p.awaitReady(t)
	c.Delete(t, p.declared)
	c.Create(t, p.third.endpoint("shop", p.project, "/a"))
	p.awaitSent(t, "/a", "", "")
}

// requests records the requests to the API server.
type requests struct {
	mu   sync.Mutex
	next http.RoundTripper
	all  []*http.Request
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.all = append(r.all, request)
	r.mu.Unlock()
	return r.next.RoundTrip(request)
}

// The proxy reads no Secret but the one that the operator writes. A change that does not affect the policy makes no new
// policy.
func TestAsksForLittle(t *testing.T) {
	c := start(t)
	seen := &requests{}
	kube := c.As(t, "proxy")
	kube.Wrap(func(next http.RoundTripper) http.RoundTripper { seen.next = next; return seen })
	p := startProxy(t, c, kube, nil)
	p.awaitReady(t)
	key := credential("used", p.project, "cred_used")
	c.Create(t, secret("unused", "some value that nobody refers to"), secret("used", canary), key, p.third.endpoint("shop", p.project, "/a", "cred_used"))
	p.awaitSent(t, "/a", "cred_used", canary)

	changes := p.metric(t, "lectern_proxy_policy_changes_total")
	token, other := secret("used", ""), secret("unused", "")
	token.Namespace, other.Namespace = c.Namespace, c.Namespace
	for i := range 20 {
		team := map[string]string{"team": strconv.Itoa(i)}
		kubetest.Change(t, c, key, func(k *v1alpha1.Credential) { k.Labels = team })
		kubetest.Change(t, c, token, func(s *corev1.Secret) { s.Labels = team })
		kubetest.Change(t, c, other, func(s *corev1.Secret) { s.Data["token"] = []byte("value " + team["team"] + " that nobody refers to") })
	}
	// Later changes make a policy again.
	c.Create(t, p.third.endpoint("last", p.project, "/last"))
	p.awaitSent(t, "/last", "", "")
	// Late events of the four objects from before may each make a policy. The last object makes one or two.
	if now := p.metric(t, "lectern_proxy_policy_changes_total"); now > changes+6 {
		t.Errorf("%v policies for one change that counts", now-changes)
	}

	seen.mu.Lock()
	defer seen.mu.Unlock()
	for _, r := range seen.all {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s: it only reads", r.Method, r.URL.Path)
		}
		one := r.URL.Path == "/api/v1/namespaces/"+c.Namespace+"/secrets" && r.URL.Query().Get("fieldSelector") == "metadata.name="+values(c).Name
		if strings.Contains(r.URL.Path, "/secrets") && !one {
			t.Errorf("it asked for %s", r.URL)
		}
	}
}

// No output contains a value.
func TestValuesShowNowhere(t *testing.T) {
	c := start(t)
	p := startProxy(t, c, c.As(t, "proxy"), nil)
	p.awaitReady(t)
	token := secret("stripe", canary)
	token.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"stringData":{"token":"` + canary + `"}}`}
	key := credential("stripe", p.project, "cred_stripe")
	c.Create(t, token, key, p.third.endpoint("shop", p.project, "/a", "cred_stripe"))
	p.awaitSent(t, "/a", "cred_stripe", canary)
	kubetest.Change(t, c, token, func(s *corev1.Secret) { s.Data["token"] = []byte(canary + "\nx") }) // no header can hold it
	p.awaitRefused(t, "/a", "cred_stripe", "credential_not_allowed")
	kubetest.Change(t, c, token, func(s *corev1.Secret) { s.Data["token"] = []byte(second) })
	p.awaitSent(t, "/a", "cred_stripe", second)
	kubetest.Change(t, c, key, func(k *v1alpha1.Credential) { k.Spec.ValueFrom.SecretKeyRef.Key = "missing" })
	p.awaitRefused(t, "/a", "cred_stripe", "credential_not_allowed")
	kubetest.Change(t, c, token, func(s *corev1.Secret) { s.Data["missing"] = []byte(canary + second) })
	p.awaitSent(t, "/a", "cred_stripe", canary+second)

	shown := map[string]string{"the log": p.log.String()}
	shown["metrics"], _ = p.get(t, p.internal+"/metrics")
	shown["readiness"], _ = p.get(t, p.internal+"/readyz")
	var events eventsv1.EventList
	if err := c.Client.List(t.Context(), &events); err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		shown["events"] += e.Note + e.Reason
	}
	for where, text := range shown {
		for _, value := range []string{canary, second} {
			if strings.Contains(text, value) || strings.Contains(text, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(value)), "=")) {
				t.Errorf("%s shows a value:\n%s", where, text)
			}
		}
	}
	if !strings.Contains(shown["the log"], "the operator has given no value") {
		t.Error("the log does not say what was wrong: it was not looked at")
	}
}
