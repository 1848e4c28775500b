package operator

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/proxy/resource"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

const canary = "canary-value-4711-0815"

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func newSecret(meta metav1.ObjectMeta, values map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: meta, StringData: values}
}

func newCredential(meta metav1.ObjectMeta, project, id, secret string) *v1alpha1.Credential {
	return &v1alpha1.Credential{ObjectMeta: meta, Spec: resource.CredentialSpec{
		ProjectID: project, Environment: "prod", ID: id,
		ValueFrom: resource.ValueSource{SecretKeyRef: resource.SecretKeyRef{Name: secret, Key: "token"}},
	}}
}

func newEndpoint(meta metav1.ObjectMeta, project string, credentials ...string) *v1alpha1.ProxyEndpoint {
	return &v1alpha1.ProxyEndpoint{ObjectMeta: meta, Spec: resource.ProxyEndpointSpec{
		ProjectID: project, Environment: "prod", Access: resource.AccessByKey,
		Destinations: []resource.Rule{{Domain: "example.com"}}, Credentials: credentials,
	}}
}

func newProject(meta metav1.ObjectMeta, id string, allowed ...string) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: meta, Spec: resource.ProjectSpec{ProjectID: id, Title: "One", AllowedNamespaces: allowed}}
}

// The condition of a Credential names its faults, including those that a later change of its Secret causes.
func TestCredentialLife(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	o := start(t, c, nil, nil)
	cred := newCredential(named("stripe"), "pr_1", "cred_stripe", "stripe")
	c.Create(t, cred)
	condition := c.AwaitReady(t, cred, v1alpha1.ReasonSecretNotFound)
	if condition.Status != metav1.ConditionFalse || !strings.Contains(condition.Message, `there is no Secret "stripe"`) {
		t.Errorf("says %+v", condition)
	}
	c.AwaitEvent(t, cred, `Warning SecretNotFound: spec.valueFrom.secretKeyRef: there is no Secret "stripe"`)

	secret := newSecret(named("stripe"), map[string]string{"other": canary})
	c.Create(t, secret)
	c.AwaitReady(t, cred, v1alpha1.ReasonSecretKeyNotFound)
	kubetest.Change(t, c, secret, func(s *corev1.Secret) { s.Data["token"] = nil })
	c.AwaitReady(t, cred, v1alpha1.ReasonSecretValueInvalid)
	kubetest.Change(t, c, secret, func(s *corev1.Secret) { s.Data["token"] = []byte(canary) })
	condition = c.AwaitReady(t, cred, v1alpha1.ReasonValid)
	if condition.Status != metav1.ConditionTrue || condition.Message != `Its value is the key "token" of the Secret "stripe".` {
		t.Errorf("says %+v", condition)
	}
	c.AwaitEvent(t, cred, "Normal Valid: Its value is")
	kubetest.Change(t, c, secret, func(s *corev1.Secret) { s.Data["token"] = []byte("short\n") })
	eventually.True(t, "the value is called short", func() bool {
		said := c.AwaitReady(t, cred, v1alpha1.ReasonValid).Message
		return strings.Contains(said, "fewer than 8 bytes") && strings.Contains(said, "ends in a line break, which is left out")
	})
	c.AwaitEvent(t, cred, "Warning Valid: Its value is")

	// Faults that the schema cannot detect.
	kubetest.Change(t, c, cred, func(c *v1alpha1.Credential) {
		c.Spec.Destinations = []resource.Rule{{Domain: "co.uk"}, {Domain: "a..b"}}
	})
	condition = c.AwaitReady(t, cred, v1alpha1.ReasonInvalid)
	if !strings.Contains(condition.Message, `spec.destinations[0].domain: "co.uk" would allow every domain under it`) || !strings.Contains(condition.Message, "spec.destinations[1].domain") {
		t.Errorf("says %s", condition.Message)
	}
	kubetest.Change(t, c, cred, func(c *v1alpha1.Credential) { c.Spec.Destinations = nil })
	c.AwaitReady(t, cred, v1alpha1.ReasonValid)
	c.Delete(t, secret)
	c.AwaitReady(t, cred, v1alpha1.ReasonSecretNotFound)
	c.Delete(t, cred)
	c.Gone(t, cred)

	if strings.Contains(o.log.String(), canary) {
		t.Error("the log shows a value")
	}
	for _, event := range c.Events(t, cred) {
		if strings.Contains(event, canary) {
			t.Errorf("an event shows a value: %s", event)
		}
	}
}

// The Secret for the proxy holds the values that Credentials name, each for as long as its Credential is there. A namespace
// cannot fill it, and cannot read it by a Credential.
func TestProxyValues(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	start(t, c, nil, nil)
	values := func() map[string]string {
		var s corev1.Secret
		err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "lectern-proxy-values"}, &s)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for name, value := range s.Data {
			if _, ref, present := strings.Cut(name, "_"); present {
				found[ref] = string(value)
			}
		}
		return found
	}
	await := func(what string, want map[string]string) {
		t.Helper()
		eventually.True(t, what, func() bool { return cmp.Equal(values(), want) })
	}
	secret := newSecret(named("s"), map[string]string{"token": canary, "unused": "x"})
	cred := newCredential(named("a"), "pr_1", "cred_a", "s")
	c.Create(t, secret, cred, newSecret(named("other"), map[string]string{"token": "y"}))
	await("the value is there, and no other", map[string]string{"s_token": canary})
	kubetest.Change(t, c, secret, func(s *corev1.Secret) { s.Data["token"] = []byte("changed") })
	await("the value has changed", map[string]string{"s_token": "changed"})
	c.Delete(t, &corev1.Secret{ObjectMeta: in(c.Namespace, "lectern-proxy-values")})
	await("the deleted Secret is made again", map[string]string{"s_token": "changed"})

	sly := newCredential(named("sly"), "pr_1", "cred_sly", "lectern-proxy-values")
	c.Create(t, sly)
	if message := c.AwaitReady(t, sly, v1alpha1.ReasonInvalid).Message; !strings.Contains(message, "values of all Credentials") {
		t.Errorf("says %s", message)
	}

	var large []client.Object
	for i := range 8 { // eight of them with their names have more than 128 KiB
		if i == 7 {
			kubetest.AwaitYounger(t, large[6]) // the youngest is left out
		}
		name := fmt.Sprintf("large-%d", i)
		large = append(large, newCredential(named(name), "pr_1", "cred_large_"+name, name))
		c.Create(t, newSecret(named(name), map[string]string{"token": strings.Repeat("x", 16<<10)}), large[i])
	}
	last := large[7]
	eventually.True(t, "the last one is said to be left out", func() bool {
		return strings.Contains(c.AwaitReady(t, last, v1alpha1.ReasonSecretValueInvalid).Message, "more than 131072 bytes together")
	})
	c.Delete(t, large[0])
	c.AwaitReady(t, last, v1alpha1.ReasonValid)
	c.Delete(t, cred)
	eventually.True(t, "the value of the deleted Credential is gone", func() bool { return values()["s_token"] == "" })
}

// awaitFormer waits until the Secret for the proxy has a list of former values and uses. An element of want has the
// Credential, the value or use, and the hours that are left.
func awaitFormer(t *testing.T, c *kubetest.Cluster, now func() time.Time, names map[types.UID]string, want ...string) {
	t.Helper()
	eventually.Succeeds(t, "the former values are "+strings.Join(want, ", "), func() error {
		var s corev1.Secret
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "lectern-proxy-values"}, &s); err != nil {
			return err
		}
		var got []string
		for _, f := range manifests.FormerOf(s.Data) {
			got = append(got, fmt.Sprintf("%s: %s%s %.0f", names[f.Credential], f.Value, strings.TrimPrefix(f.Endpoint, c.Namespace), f.Until.Sub(now()).Hours()))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
}

// TestFormerValues checks which former values, and endpoints of before, the operator keeps for the proxy. It keeps them over
// its own restart, and finds there what has changed meanwhile.
func TestFormerValues(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	var now clock
	o := start(t, c, nil, now.set)
	secret, a, b := newSecret(named("s"), map[string]string{"token": "value-one"}), newCredential(named("a"), "pr_1", "cred_a", "s"), newCredential(named("b"), "pr_1", "cred_b", "other")
	web := newEndpoint(named("web"), "pr_1", "cred_a", "cred_b")
	c.Create(t, secret, newSecret(named("other"), map[string]string{"token": "value-two"}), a, b, web)
	names := map[types.UID]string{a.UID: "a", b.UID: "b"}
	await := func(want ...string) {
		t.Helper()
		awaitFormer(t, c, now.now, names, want...)
	}
	c.AwaitReady(t, web, v1alpha1.ReasonValid)
	o.quiet(t)
	kubetest.Change(t, c, secret, func(s *corev1.Secret) { s.Data["token"] = []byte("value-three") })
	await("a: value-one 24")
	if err := o.Stop(); err != nil {
		t.Fatal(err)
	}
	kubetest.Change(t, c, secret, func(s *corev1.Secret) { s.Data["token"] = []byte("value-four") })
	now.ahead.Add(int64(time.Hour))
	o = start(t, c, nil, now.set)
	await("a: value-one 23", "a: value-three 24")
	o.quiet(t)
	kubetest.Change(t, c, web, func(e *v1alpha1.ProxyEndpoint) { e.Spec.Credentials = []string{"cred_b"} })
	await("a: /web 24", "a: value-one 23", "a: value-three 24")
	c.Delete(t, b)
	await("a: /web 24", "a: value-one 23", "a: value-three 24", "b: /web 24", "b: value-two 24")
	now.ahead.Add(int64(23 * time.Hour))
	kubetest.Change(t, c, secret, func(s *corev1.Secret) { s.Data["token"] = []byte("value-one") })
	await("a: /web 1", "a: value-four 24", "a: value-three 1", "b: /web 1", "b: value-two 1")

	// The operator keeps 64 values of a Credential, and of a namespace no more than fit in addition to its present values.
	var list, want []string
	add := func(namespace, id, value string, hours int) {
		list = append(list, fmt.Sprintf(`{"namespace":%q,"credential":%q,"value":%q,"until":%q}`,
			namespace, id, base64.StdEncoding.EncodeToString([]byte(value)), now.now().Add(time.Duration(hours)*time.Hour).Format(time.RFC3339Nano)))
	}
	names["many"], names["large"] = "many", "large"
	for i := range 70 {
		add("elsewhere", "many", fmt.Sprintf("value-%d", i), i+1)
		if i >= 6 {
			want = append(want, fmt.Sprintf("many: value-%d %d", i, i+1))
		}
	}
	for i := range 8 {
		large := strings.Repeat("x", 13<<10) + fmt.Sprint(i)
		add("third", "large", large, i+1)
		if i >= 1 {
			want = append(want, fmt.Sprintf("large: %s %d", large, i+1))
		}
	}
	kubetest.Change(t, c, newSecret(in(c.Namespace, "lectern-proxy-values"), nil), func(s *corev1.Secret) {
		s.Data[manifests.FormerKey] = []byte("[" + strings.Join(list, ",") + "]")
	})
	slices.Sort(want)
	await(want...)
}

// Of two Credentials with the same id, the older one prevails until it is deleted.
func TestCredentialConflict(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	start(t, c, nil, nil)
	c.Create(t, newSecret(named("s"), map[string]string{"token": canary}))
	first := newCredential(named("a"), "pr_1", "cred_x", "s")
	c.Create(t, first)
	c.AwaitReady(t, first, v1alpha1.ReasonValid)
	second := newCredential(named("b"), "pr_1", "cred_x", "s")
	c.Create(t, second)
	condition := c.AwaitReady(t, second, v1alpha1.ReasonConflict)
	if want := `spec.id: is "cred_x", as is that of Credential/a in the same project and environment`; condition.Message != want {
		t.Errorf("says %s", condition.Message)
	}
	if got := c.AwaitReady(t, first, v1alpha1.ReasonValid); got.Status != metav1.ConditionTrue {
		t.Errorf("the older one: %+v", got)
	}
	elsewhere := newCredential(named("c"), "pr_1", "cred_x", "s")
	elsewhere.Spec.Environment = "test"
	c.Create(t, elsewhere)
	c.AwaitReady(t, elsewhere, v1alpha1.ReasonValid)
	c.Delete(t, first)
	c.AwaitReady(t, second, v1alpha1.ReasonValid)
}

// An endpoint is valid if it and the objects that it refers to are valid.
func TestProxyEndpointLife(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	start(t, c, nil, nil)
	endpoint := newEndpoint(named("web"), "pr_1", "cred_x", "cred_y")
	c.Create(t, endpoint)
	condition := c.AwaitReady(t, endpoint, v1alpha1.ReasonCredentialNotFound)
	if want := `spec.credentials[0]: there is no Credential with the id "cred_x" in project "pr_1", environment "prod" that this namespace may use; spec.credentials[1]: there is no Credential with the id "cred_y" in project "pr_1", environment "prod" that this namespace may use`; condition.Message != want {
		t.Errorf("says %s", condition.Message)
	}
	x, y := newCredential(named("x"), "pr_1", "cred_x", "s"), newCredential(named("y"), "pr_1", "cred_y", "s")
	c.Create(t, x, y)
	condition = c.AwaitReady(t, endpoint, v1alpha1.ReasonCredentialNotReady)
	eventually.True(t, "both are said to lack their Secret", func() bool {
		return strings.Count(c.AwaitReady(t, endpoint, v1alpha1.ReasonCredentialNotReady).Message, "is not in force (SecretNotFound)") == 2
	})
	secret := newSecret(named("s"), map[string]string{"token": canary})
	c.Create(t, secret)
	if condition = c.AwaitReady(t, endpoint, v1alpha1.ReasonValid); condition.Status != metav1.ConditionTrue {
		t.Errorf("%+v", condition)
	}
	// The referred object changes later.
	kubetest.Change(t, c, y, func(c *v1alpha1.Credential) { c.Spec.Environment = "test" })
	c.AwaitReady(t, endpoint, v1alpha1.ReasonCredentialNotFound)
	kubetest.Change(t, c, y, func(c *v1alpha1.Credential) { c.Spec.Environment = "prod" })
	c.AwaitReady(t, endpoint, v1alpha1.ReasonValid)
	kubetest.Change(t, c, secret, func(s *corev1.Secret) { delete(s.Data, "token") })
	c.AwaitReady(t, endpoint, v1alpha1.ReasonCredentialNotReady)
	kubetest.Change(t, c, secret, func(s *corev1.Secret) { s.Data = map[string][]byte{"token": []byte(canary)} })
	c.AwaitReady(t, endpoint, v1alpha1.ReasonValid)
	c.Delete(t, x)
	c.AwaitReady(t, endpoint, v1alpha1.ReasonCredentialNotFound)
	c.AwaitEvent(t, endpoint, `Warning CredentialNotFound: spec.credentials[0]`)
	kubetest.Change(t, c, endpoint, func(e *v1alpha1.ProxyEndpoint) { e.Spec.Credentials = nil })
	c.AwaitReady(t, endpoint, v1alpha1.ReasonValid)

	kubetest.Change(t, c, endpoint, func(e *v1alpha1.ProxyEndpoint) {
		e.Spec.CABundle = "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n"
	})
	if got := c.AwaitReady(t, endpoint, v1alpha1.ReasonInvalid).Message; got != "spec.caBundle: holds no certificate in PEM" {
		t.Errorf("says %s", got)
	}
	c.Delete(t, endpoint)
	c.Gone(t, endpoint)
}

// No object refers to objects of another namespace without a grant.
func TestGrants(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	other := c.NewNamespace(t)
	start(t, c, map[string]string{"WATCH_NAMESPACES": c.Namespace + "," + other}, nil)
	const id = "pr_granted"
	project := newProject(named("one"), id)
	c.Create(t, project, newSecret(named("s"), map[string]string{"token": canary}), newSecret(in(other, "s"), map[string]string{"token": canary}))

	// A Credential and an endpoint of a project that is another namespace's.
	stranger := newCredential(in(other, "mine"), id, "cred_mine", "s")
	endpoint := newEndpoint(in(other, "web"), id, "cred_shared")
	c.Create(t, stranger, endpoint)
	for _, condition := range []metav1.Condition{c.AwaitReady(t, stranger, v1alpha1.ReasonNotGranted), c.AwaitReady(t, endpoint, v1alpha1.ReasonNotGranted)} {
		if !strings.Contains(condition.Message, "belongs to another namespace") || strings.Contains(condition.Message, c.Namespace) {
			t.Errorf("says %s", condition.Message)
		}
	}
	kubetest.Change(t, c, project, func(p *v1alpha1.Project) { p.Spec.AllowedNamespaces = []string{other} })
	c.AwaitReady(t, stranger, v1alpha1.ReasonValid)
	c.AwaitReady(t, endpoint, v1alpha1.ReasonCredentialNotFound)

	// A Credential of another namespace.
	shared := newCredential(named("shared"), id, "cred_shared", "s")
	c.Create(t, shared)
	c.AwaitReady(t, shared, v1alpha1.ReasonValid)
	kubetest.Change(t, c, shared, func(c *v1alpha1.Credential) { c.Spec.AllowedNamespaces = []string{"*"} })
	c.AwaitReady(t, endpoint, v1alpha1.ReasonValid)
	kubetest.Change(t, c, shared, func(c *v1alpha1.Credential) { c.Spec.AllowedNamespaces = nil })
	// The message does not reveal a Credential of others: it is the one for a Credential that does not exist.
	notGranted := c.AwaitReady(t, endpoint, v1alpha1.ReasonCredentialNotFound).Message
	c.Delete(t, shared)
	c.Gone(t, shared)
	kubetest.Change(t, c, endpoint, func(e *v1alpha1.ProxyEndpoint) { e.Spec.Methods = []string{"GET"} })
	eventually.True(t, "the endpoint is looked at again", func() bool {
		return c.AwaitReady(t, endpoint, v1alpha1.ReasonCredentialNotFound).ObservedGeneration == endpoint.Generation
	})
	if missing := c.AwaitReady(t, endpoint, v1alpha1.ReasonCredentialNotFound).Message; missing != notGranted {
		t.Errorf("of a Credential that is not granted: %s\nof one that does not exist: %s", notGranted, missing)
	}

	// A namespace without a right to the project cannot keep a credential id from the namespaces that have one.
	kubetest.Change(t, c, project, func(p *v1alpha1.Project) { p.Spec.AllowedNamespaces = nil })
	c.AwaitReady(t, stranger, v1alpha1.ReasonNotGranted)
	kubetest.AwaitYounger(t, stranger)
	own := newCredential(named("own"), id, "cred_mine", "s")
	c.Create(t, own)
	c.AwaitReady(t, own, v1alpha1.ReasonValid)
	// Also where they may be of the project, the id means to each namespace what is its own.
	kubetest.Change(t, c, project, func(p *v1alpha1.Project) { p.Spec.AllowedNamespaces = []string{"*"} })
	c.AwaitReady(t, stranger, v1alpha1.ReasonValid)
	c.AwaitReady(t, own, v1alpha1.ReasonValid)

	// A project that no Project declares is nobody's.
	c.Delete(t, project)
	for _, condition := range []metav1.Condition{
		c.AwaitReady(t, own, v1alpha1.ReasonNotDeclared), c.AwaitReady(t, stranger, v1alpha1.ReasonNotDeclared), c.AwaitReady(t, endpoint, v1alpha1.ReasonNotDeclared),
	} {
		if !strings.HasPrefix(condition.Message, `spec.projectId: no Project declares project "pr_granted"; one is required`) {
			t.Errorf("says %s", condition.Message)
		}
	}
}

// With UNDECLARED_PROJECTS=allow, every namespace may use an undeclared project.
func TestUndeclaredProjectsAllowed(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	start(t, c, map[string]string{"UNDECLARED_PROJECTS": "allow"}, nil)
	cred, endpoint := newCredential(named("x"), "pr_nobodys", "cred_x", "s"), newEndpoint(named("web"), "pr_nobodys", "cred_x")
	c.Create(t, newSecret(named("s"), map[string]string{"token": canary}), cred, endpoint)
	c.AwaitReady(t, cred, v1alpha1.ReasonValid)
	c.AwaitReady(t, endpoint, v1alpha1.ReasonValid)
}

// An endpoint for any host gets no credential that may go anywhere.
func TestCredentialForAnyHost(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	start(t, c, nil, nil)
	cred, endpoint := newCredential(named("x"), "pr_1", "cred_x", "s"), newEndpoint(named("web"), "pr_1", "cred_x")
	endpoint.Spec.Destinations = []resource.Rule{{Pattern: "https://[^/]+/.*"}}
	c.Create(t, newSecret(named("s"), map[string]string{"token": canary}), cred, endpoint)
	want := `spec.credentials[0]: a destination of the endpoint matches any host, and the Credential with the id "cred_x" names no destinations: its value could be sent anywhere`
	if got := c.AwaitReady(t, endpoint, v1alpha1.ReasonInvalid).Message; !strings.HasPrefix(got, want) {
		t.Errorf("says %s", got)
	}
	kubetest.Change(t, c, cred, func(c *v1alpha1.Credential) { c.Spec.Destinations = []resource.Rule{{Domain: "example.com"}} })
	c.AwaitReady(t, endpoint, v1alpha1.ReasonValid)
}

// The operator writes nothing if nothing changes, even after a restart, or after writes without a change.
func TestSteadyState(t *testing.T) {
	c := kubetest.Start(t)
	first := start(t, c, nil, nil)
	c.Create(t, newSecret(named("s"), map[string]string{"token": canary}))
	var creds []*v1alpha1.Credential
	var endpoints []*v1alpha1.ProxyEndpoint
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		cred, endpoint := newCredential(named(name), "pr_1", "cred_"+name, "s"), newEndpoint(named(name), "pr_1", "cred_"+name)
		c.Create(t, cred, endpoint)
		creds, endpoints = append(creds, cred), append(endpoints, endpoint)
	}
	missing := newCredential(named("missing"), "pr_1", "cred_missing", "none")
	c.Create(t, missing)
	for i := range creds {
		c.AwaitReady(t, creds[i], v1alpha1.ReasonValid)
		c.AwaitReady(t, endpoints[i], v1alpha1.ReasonValid)
	}
	c.AwaitReady(t, missing, v1alpha1.ReasonSecretNotFound)
	first.quiet(t)
	before := versions(t, c)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := start(t, c, nil, nil)
	eventually.True(t, "the second one acts", func() bool {
		return strings.Contains(metricsOf(t, second.URL), `controller_runtime_reconcile_total{controller="credential",result="success"}`)
	})
	if n := second.quiet(t); n != 0 {
		t.Errorf("%d writes where nothing changed: %v", n, second.Requests.All())
	}
	if diff := cmp.Diff(before, versions(t, c)); diff != "" {
		t.Errorf("objects changed (-before +after):\n%s", diff)
	}
	// A Secret that is touched is looked at again, to no effect.
	secret := newSecret(in(c.Namespace, "s"), nil)
	kubetest.Change(t, c, secret, func(s *corev1.Secret) { s.Labels = map[string]string{"touched": "yes"} })
	eventually.True(t, "the Secret is read", func() bool {
		return second.Requests.All()["GET /api/v1/namespaces/"+c.Namespace+"/secrets/s"] >= 2
	})
	if n := second.quiet(t); n != 0 {
		t.Errorf("%d writes where nothing changed: %v", n, second.Requests.All())
	}
}

// versions returns the resourceVersions of the namespace's objects.
func versions(t testing.TB, c *kubetest.Cluster) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, kind := range []string{"ProjectList", "CredentialList", "ProxyEndpointList"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind))
		if err := c.Client.List(t.Context(), list, inNamespace(c.Namespace)); err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			found[kind+"/"+o.Name] = o.ResourceVersion
		}
	}
	return found
}
