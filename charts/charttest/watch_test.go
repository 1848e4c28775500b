package charttest

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	networking "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestUpgradeKeepsWatching checks that the chart refuses an upgrade that would stop watching a namespace with
// objects. The error names the value to set.
func TestUpgradeKeepsWatching(t *testing.T) {
	deployment := func(watched ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "lectern", "name": "lectern-operator"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "operator", "env": watched}}}}},
		}}
	}
	watches := func(namespaces string) any { return map[string]any{"name": "WATCH_NAMESPACES", "value": namespaces} }
	object := func(kind, namespace string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "lectern.dev/v1alpha1", "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": "x"},
		}}
	}
	objects := []*unstructured.Unstructured{object("APIKey", "team-a"), object("ProxyEndpoint", "team-b"), object("Project", "lectern")}
	for _, tt := range []struct {
		name, values string
		before       *unstructured.Unstructured
		want         string // part of the refusal; "" for none
	}{
		{"all before, its own now", "", deployment(), "set watchNamespaces={lectern,team-a,team-b} or watchAllNamespaces=true"},
		{"all before, all now", "watchAllNamespaces: true", deployment(), ""},
		{"all before, those with objects now", "watchNamespaces: [lectern, team-a, team-b]", deployment(), ""},
		{"all before, some of those with objects now", "watchNamespaces: [lectern, team-a]", deployment(), "hold objects of lectern.dev: team-b; set watchNamespaces={lectern,team-a,team-b}"},
		{"others watch them", "", deployment(watches("lectern")), ""},
		{"one fewer", "watchNamespaces: [lectern]", deployment(watches("lectern,team-b,team-c")), "hold objects of lectern.dev: team-b; set watchNamespaces={lectern,team-b}"},
		{"one fewer, without objects", "watchNamespaces: [lectern, team-b]", deployment(watches("lectern,team-b,team-c")), ""},
		{"no operator before", "", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := append(installed(), objects...)
			if tt.before != nil {
				all = append(all, tt.before)
			}
			_, err := renderOn(tt.values, common.ReleaseOptions{Name: "lectern", Namespace: "lectern", IsUpgrade: true, Revision: 2}, all)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("says %v; want %s", err, tt.want)
			}
		})
	}
}

// TestMissingNamespaces checks that an install names the watched namespaces and the one of the objects, if they do not
// exist. An upgrade makes no role in one that is gone or being deleted.
func TestMissingNamespaces(t *testing.T) {
	namespace := func(name, deleted string) *unstructured.Unstructured {
		meta := map[string]any{"name": name}
		if deleted != "" {
			meta["deletionTimestamp"] = deleted
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": meta}}
	}
	all := append(installed(), namespace("team-a", ""), namespace("team-b", "2026-01-01T00:00:00Z"))
	const values = "watchNamespaces: [lectern, team-a, team-b, team-c]"
	install := common.ReleaseOptions{Name: "lectern", Namespace: "lectern", IsInstall: true, Revision: 1}
	if _, err := renderOn(values, install, all); err == nil || !strings.Contains(err.Error(), "do not exist: team-b, team-c; make them first") {
		t.Errorf("an install says %v", err)
	}
	for _, more := range []string{"", "\nrbac: {create: false}", "\nwatchAllNamespaces: true", "\nwatchNamespaces: [team-a]"} {
		if _, err := renderOn("namespaceOverride: elsewhere"+more, install, all); err == nil || !strings.Contains(err.Error(), "do not exist: elsewhere; make them first") {
			t.Errorf("an install into a namespace that does not exist, with %q, says %v", more, err)
		}
	}
	r, err := renderOn(values, common.ReleaseOptions{Name: "lectern", Namespace: "lectern", IsUpgrade: true, Revision: 2}, all)
	if err != nil {
		t.Fatal(err)
	}
	var in []string
	for _, o := range r.objects {
		if role, ok := o.(*rbac.Role); ok && role.Name == "lectern-operator-watch" {
			in = append(in, role.Namespace)
		}
	}
	if want := []string{"lectern", "team-a"}; !slices.Equal(in, want) {
		t.Errorf("after an upgrade, roles are in %q; want %q", in, want)
	}
}

// TestAPIServerAddresses checks that policies name the API server by the addresses that the cluster returns.
func TestAPIServerAddresses(t *testing.T) {
	blocks := func(r rendered) (cidrs []string) {
		for _, rule := range one[*networking.NetworkPolicy](t, r, "lectern-proxy").Spec.Egress {
			for _, port := range rule.Ports {
				if port.Port.IntValue() != 6443 {
					continue
				}
				for _, to := range rule.To {
					cidrs = append(cidrs, to.IPBlock.CIDR)
				}
			}
		}
		return cidrs
	}
	if got, want := blocks(render(t, "")), []string{"172.20.0.2/32", "10.96.0.1/32", "fd00:10:96::1/128"}; !slices.Equal(got, want) {
		t.Errorf("the API server is at %q; want %q", got, want)
	}
	if got, want := blocks(render(t, "networkPolicy: {apiServerTo: [{ipBlock: {cidr: 10.0.0.0/28}}]}")), []string{"10.0.0.0/28"}; !slices.Equal(got, want) {
		t.Errorf("the API server is at %q; want %q", got, want)
	}
	release := common.ReleaseOptions{Name: "lectern", Namespace: "lectern", IsInstall: true, Revision: 1}
	if _, err := renderOn("", release, nil); err == nil || !strings.Contains(err.Error(), "networkPolicy.apiServerTo is empty, and there is no cluster to ask") {
		t.Errorf("without a cluster: %v", err)
	}
	if _, err := renderOn("networkPolicy: {enabled: false}", release, nil); err != nil {
		t.Errorf("without a cluster, and without policies: %v", err)
	}
}

// TestNamespaceAdmin checks what an installation looks up: with networkPolicy.apiServerTo only objects of its own namespace, and
// with lookups=false nothing. A refusal by the cluster names that value.
func TestNamespaceAdmin(t *testing.T) {
	release := common.ReleaseOptions{Name: "lectern", Namespace: ownAlone, IsInstall: true, Revision: 1}
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": ownAlone, "name": "lectern-redis"}}}
	cluster := append(installed(), secret)
	const (
		named = "networkPolicy: {apiServerTo: [{ipBlock: {cidr: 10.0.0.1/32}}]}\n"
		admin = named + "crds: {install: false}\nrbac: {create: false}\n"
		dev   = "dev: {enabled: true}\n"
	)
	for _, tt := range []struct {
		name, values string
		upgrade      bool
		want         string // part of the error; "" for none
	}{
		{"an installation", admin, false, ""},
		{"an upgrade", admin, true, ""},
		{"a missing Secret", admin + "requireSecrets: true", false, "patch secret lectern-redis"},
		{"the API server's addresses", "", false, "(set lookups=false to ask nothing)"},
		{"the class of dev's volume", named + dev, false, "(set lookups=false to ask nothing)"},
		{"another namespace", named + "watchNamespaces: [team-a]", false, "(set lookups=false to ask nothing)"},
		{"nothing asked", named + dev + "watchNamespaces: [team-a]\nrequireSecrets: true\nlookups: false", false, ""},
		{"nothing asked, and no addresses", "lookups: false", false, "networkPolicy.apiServerTo is empty, and there is no cluster to ask for the API server's addresses, or lookups is false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			release.IsInstall, release.IsUpgrade = !tt.upgrade, tt.upgrade
			r, err := renderOn(tt.values, release, cluster)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("says %v; want %s", err, tt.want)
			case strings.HasPrefix(tt.values, admin) && err == nil:
				for _, o := range r.objects {
					if o.GetNamespace() != ownAlone {
						t.Errorf("%T %s is not of the namespace", o, o.GetName())
					}
				}
			}
		})
	}
}

// TestWarnings checks that the notes warn of accidental openings.
func TestWarnings(t *testing.T) {
	for _, tt := range []struct {
		name, values, text string
		want               bool
	}{
		{"a route, and no trusted proxies", "routing: {nginx: {enabled: true}}\ntrustedProxies: []", "WARNING: trustedProxies is empty", true},
		{"a route, and trusted proxies by default", "routing: {nginx: {enabled: true}}", "WARNING", false},
		{"a route, and no public URL", "routing: {nginx: {enabled: true}}", "publicUrl is not set", true},
		{"a route, and a public URL", "routing: {nginx: {enabled: true}}\npublicUrl: https://api.example.com", "publicUrl is not set", false},
		{"a route, and trusted proxies", "routing: {nginx: {enabled: true}}\ntrustedProxies: [10.0.0.0/8]", "WARNING", false},
		{"no route", "", "WARNING", false},
		{"undeclared projects", "undeclaredProjects: allow", "WARNING: undeclaredProjects is allow", true},
		{"all namespaces", "watchAllNamespaces: true", "may read every Secret of the cluster", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if notes := render(t, tt.values).notes; strings.Contains(notes, tt.text) != tt.want {
				t.Errorf("%q among the notes: %v; want %v:\n%s", tt.text, !tt.want, tt.want, notes)
			}
		})
	}
}
