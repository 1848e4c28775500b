package manifests_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/manifest"
)

// fields lists the paths of all fields of a type, as JSON names them.
func fields(t reflect.Type, prefix string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[metav1.Duration]() {
		return []string{strings.TrimPrefix(prefix, ".")}
	}
	var all []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		all = append(all, fields(t.Field(i).Type, prefix+"."+name)...)
	}
	slices.Sort(all)
	return all
}

// A spec in a cluster has the fields of a spec in a folder of manifests, neither more nor fewer.
func TestSameFields(t *testing.T) {
	for name, tt := range map[string]struct{ cluster, folder reflect.Type }{
		"Project":       {reflect.TypeFor[v1alpha1.ProjectSpec](), reflect.TypeFor[manifest.ProjectSpec]()},
		"Credential":    {reflect.TypeFor[v1alpha1.CredentialSpec](), reflect.TypeFor[manifest.CredentialSpec]()},
		"ProxyEndpoint": {reflect.TypeFor[v1alpha1.ProxyEndpointSpec](), reflect.TypeFor[manifest.ProxyEndpointSpec]()},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(fields(tt.folder, ""), fields(tt.cluster, "")); diff != "" {
				t.Errorf("(-folder +cluster):\n%s", diff)
			}
		})
	}
}

// Every field is carried over: an object with all of them set says the same in both forms.
func TestEveryFieldIsCarriedOver(t *testing.T) {
	minute := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	rules := []v1alpha1.Rule{{Domain: "example.com"}, {Pattern: "https://.*"}}
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "x"}
	p := &v1alpha1.Project{ObjectMeta: meta, Spec: v1alpha1.ProjectSpec{
		ProjectID: "pr_1", Title: "One", Region: "Asia/Tokyo", DeletionPolicy: v1alpha1.DeleteOnDelete, RetentionDays: 30, AllowedNamespaces: []string{"*"},
	}}
	c := &v1alpha1.Credential{ObjectMeta: meta, Spec: v1alpha1.CredentialSpec{
		Project: "pr_1", Environment: "prod", ID: "cred_x", Destinations: rules, AllowedNamespaces: []string{"a"},
		ValueFrom: v1alpha1.CredentialValueSource{SecretKeyRef: v1alpha1.SecretKeyRef{Name: "s", Key: "k"}},
		Places:    []v1alpha1.CredentialPlace{v1alpha1.InURL, v1alpha1.InHeader},
		Headers:   []string{"Authorization"},
	}}
	e := &v1alpha1.ProxyEndpoint{ObjectMeta: meta, Spec: v1alpha1.ProxyEndpointSpec{
		Project: "pr_1", Environment: "prod", Access: v1alpha1.AccessByKey, Origins: rules[:1], Destinations: rules[1:], Methods: []string{"GET"},
		Credentials: []string{"cred_x"}, Ports: []int32{8443}, AllowHTTP: true, Scrub: v1alpha1.Scrub{Disabled: true, PassUnreadable: true}, CABundle: "pem",
		Limits:   v1alpha1.Limits{RequestsPerSecond: 1, Burst: 2, Concurrent: 3, RequestBytes: 4, ResponseBytes: 5},
		Timeouts: v1alpha1.Timeouts{Connect: minute(1), Headers: minute(2), Idle: minute(3), Total: minute(4)},
	}}
	for name, tt := range map[string]struct{ in, out any }{
		"Project":       {p.Spec, manifests.Project(p).Spec},
		"Credential":    {c.Spec, manifests.Credential(c).Spec},
		"ProxyEndpoint": {e.Spec, manifests.Endpoint(e).Spec},
	} {
		t.Run(name, func(t *testing.T) {
			if unset := zeros(reflect.ValueOf(tt.in), ""); len(unset) > 0 {
				t.Fatalf("the test sets no %v", unset)
			}
			if diff := cmp.Diff(generic(t, tt.in), generic(t, tt.out)); diff != "" {
				t.Errorf("(-object +manifest):\n%s", diff)
			}
		})
	}
	for _, m := range []manifest.Metadata{manifests.Project(p).Metadata, manifests.Credential(c).Metadata, manifests.Endpoint(e).Metadata, manifests.Secret(&corev1.Secret{ObjectMeta: meta}).Metadata} {
		if m.Namespace != "ns" || m.Name != "x" {
			t.Errorf("named %+v", m)
		}
	}
}

// zeros lists the fields that are not set, other than one of domain and pattern.
func zeros(v reflect.Value, path string) []string {
	if v.IsZero() {
		return []string{path}
	}
	var unset []string
	if v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[v1alpha1.Rule]() {
		for i := range v.NumField() {
			unset = append(unset, zeros(v.Field(i), path+"."+v.Type().Field(i).Name)...)
		}
	}
	return unset
}

func generic(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var g any
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestOlder(t *testing.T) {
	at := func(second int, namespace, name string) *v1alpha1.Project {
		return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.Unix(int64(second), 0)}}
	}
	want := []*v1alpha1.Project{at(1, "b", "b"), at(2, "a", "b"), at(2, "b", "a"), at(2, "b", "b"), at(3, "a", "a")}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, func(a, b *v1alpha1.Project) int { return manifests.Older(a, b) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
