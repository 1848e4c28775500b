package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/proxy/manifest"
	"github.com/lectern-dev/lectern/proxy/resource"
)

// The API server fills in the defaults, and the Go types return them as stored.
func TestDefaults(t *testing.T) {
	c := kubetest.Start(t)
	for kind, tt := range map[string]struct{ in, want string }{
		"Project": {project, "projectId: pr_1\ntitle: One\n"},
		"APIKey": {apiKey + "rotation: {every: 720h}\n", `
projectId: pr_1
scopes: [entries:read, embeddables:read, experiments:read]
rotation: {every: 720h, overlap: 1h}
secret: {keys: {apiKey: api-key, projectId: project-id, url: url}}
`},
		"Credential": {credential, credential},
		"ProxyEndpoint": {proxyEndpoint, proxyEndpoint + `
access: Origin
limits: {concurrent: 256}
timeouts: {connect: 10s, headers: 10m, idle: 5m}
`},
	} {
		t.Run(kind, func(t *testing.T) {
			o := object(t, kind, tt.in)
			o.SetGenerateName("x-")
			c.Create(t, o)
			var want map[string]any
			if err := yaml.Unmarshal([]byte(tt.want), &want); err != nil {
				t.Fatal(err)
			}
			got, _, err := unstructured.NestedMap(o.Object, "spec")
			if err != nil {
				t.Fatal(err)
			}
			// Numbers as both readers make them.
			text, err := yaml.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			got = nil
			if err := yaml.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The defaults of the schema equal the proxy's own.
func TestDefaultsAreTheProxys(t *testing.T) {
	c := kubetest.Start(t)
	blank := resource.ProxyEndpointSpec{
		ProjectID: "pr_1", Environment: "prod", Access: resource.AccessByKey, Destinations: []resource.Rule{{Domain: "example.com"}},
	}
	stored := &v1alpha1.ProxyEndpoint{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: blank}
	c.Create(t, stored)
	build := func(e *v1alpha1.ProxyEndpoint) any {
		s, faults, _ := manifest.BuildEach(manifest.Objects{Endpoints: []manifest.ProxyEndpoint{manifests.Endpoint(e)}})
		if len(faults) > 0 {
			t.Fatal(faults[0])
		}
		e0 := s.Endpoints()[0]
		return []any{e0.Access, e0.Limits, e0.Timeouts, e0.Ports, e0.Methods}
	}
	unset := &v1alpha1.ProxyEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "x"}, Spec: blank}
	if diff := cmp.Diff(build(unset), build(stored)); diff != "" {
		t.Errorf("(-what the proxy takes for unset +what the schema says):\n%s", diff)
	}
}

// Reading returns all fields of all kinds as they were stored.
func TestRoundTrip(t *testing.T) {
	c := kubetest.Start(t)
	at := metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC).Local())
	rules := []resource.Rule{{Domain: "example.com"}, {Pattern: `https://a\.example/.*`}}
	for name, o := range map[string]client.Object{
		"Project": &v1alpha1.Project{Spec: resource.ProjectSpec{
			ProjectID: "a.B_c~1-", Title: "日", Region: "Europe/Berlin", RetentionDays: 30, AllowedNamespaces: []string{"a", "*"},
		}},
		"APIKey": &v1alpha1.APIKey{Spec: v1alpha1.APIKeySpec{
			ProjectID: "pr_1", Scopes: []v1alpha1.Scope{"proxy:use"}, ExpiresAt: &at, Rate: 7, URL: "https://api.example.com",
			Rotation: &v1alpha1.APIKeyRotation{Every: metav1.Duration{Duration: 36 * time.Hour}, Overlap: metav1.Duration{Duration: 90 * time.Second}},
			Secret:   v1alpha1.APIKeySecret{Name: "s", Keys: v1alpha1.APIKeySecretKeys{APIKey: "A", ProjectID: "B", URL: "C"}},
		}},
		"Credential": &v1alpha1.Credential{Spec: resource.CredentialSpec{
			ProjectID: "pr_1", Environment: "prod", ID: "cred_x", Destinations: rules, AllowedNamespaces: []string{"web"},
			ValueFrom: resource.ValueSource{SecretKeyRef: resource.SecretKeyRef{Name: "s", Key: "k"}},
			Places:    []resource.Place{resource.InHeader, resource.InBody},
			Headers:   []string{"Authorization"},
		}},
		"ProxyEndpoint": &v1alpha1.ProxyEndpoint{Spec: resource.ProxyEndpointSpec{
			ProjectID: "pr_1", Environment: "prod", Access: resource.AccessByKey, Origins: rules, Destinations: rules, Methods: []string{"GET"},
			Credentials: []string{"cred_x"}, Ports: []int32{443}, AllowHTTP: true, Scrub: resource.Scrub{Disabled: true, PassUnreadable: true},
			CABundle: "-----BEGIN CERTIFICATE-----",
			Limits:   resource.Limits{RequestsPerSecond: 1, Burst: 2, Concurrent: 3, RequestBytes: 1 << 40, ResponseBytes: 5},
			Timeouts: resource.Timeouts{Connect: "1.5s", Headers: "1h", Idle: "1h", Total: "1h"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o.SetName("round-trip")
			want := o.DeepCopyObject().(client.Object)
			c.Create(t, o)
			got := want.DeepCopyObject().(client.Object)
			if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(o), got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(spec(want), spec(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func spec(o client.Object) any {
	switch o := o.(type) {
	case *v1alpha1.Project:
		return o.Spec
	case *v1alpha1.APIKey:
		return o.Spec
	case *v1alpha1.Credential:
		return o.Spec
	case *v1alpha1.ProxyEndpoint:
		return o.Spec
	}
	return nil
}
