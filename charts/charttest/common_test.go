package charttest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// allPods has the values for every kind of pod of the chart.
const allPods = `
dev: {enabled: true, collector: {enabled: true}}
retention: {enabled: true}
sync: {copies: {shop: {project: pr_1}}}
`

// podLabels are the labels of the chart's pods, by the name of the pod's owner.
func podLabels(r rendered) map[string]map[string]string {
	labels := map[string]map[string]string{}
	for name, d := range of[*apps.Deployment](r) {
		labels[name] = d.Spec.Template.Labels
	}
	for name, p := range of[*core.Pod](r) {
		labels[name] = p.Labels
	}
	for name, c := range of[*batch.CronJob](r) {
		labels[name] = c.Spec.JobTemplate.Spec.Template.Labels
	}
	for name, j := range of[*batch.Job](r) {
		labels[name] = j.Spec.Template.Labels
	}
	return labels
}

// TestPodValues checks that values for all pods reach every pod, including those of no component. A component's own
// value applies to it alone.
func TestPodValues(t *testing.T) {
	r := render(t, allPods+`
imagePullSecrets: [{name: regcred}]
defaults:
  dnsPolicy: None
  dnsConfig: {nameservers: [10.96.0.10], options: [{name: ndots, value: "2"}]}
  hostAliases: [{ip: 10.0.0.9, hostnames: [pg.example.com]}]
  nodeSelector: {pool: data}
entries: {dnsPolicy: Default}
`)
	specs := podSpecs(r)
	if want := len(components()) + 7; len(specs) != want {
		t.Fatalf("%d kinds of pods; want %d", len(specs), want)
	}
	for name, spec := range specs {
		policy := core.DNSNone
		if name == "lectern-entries" {
			policy = core.DNSDefault
		}
		if spec.DNSPolicy != policy || spec.DNSConfig == nil || !slices.Equal(spec.DNSConfig.Nameservers, []string{"10.96.0.10"}) || len(spec.DNSConfig.Options) != 1 {
			t.Errorf("%s asks DNS by %s, %+v", name, spec.DNSPolicy, spec.DNSConfig)
		}
		if !reflect.DeepEqual(spec.HostAliases, []core.HostAlias{{IP: "10.0.0.9", Hostnames: []string{"pg.example.com"}}}) {
			t.Errorf("%s knows the hosts %v", name, spec.HostAliases)
		}
		if !slices.Equal(spec.ImagePullSecrets, []core.LocalObjectReference{{Name: "regcred"}}) {
			t.Errorf("%s pulls with %v", name, spec.ImagePullSecrets)
		}
		if spec.NodeSelector["pool"] != "data" {
			t.Errorf("%s runs on nodes of %v", name, spec.NodeSelector)
		}
	}
}

// TestNamespaceOverride checks that all objects are in the namespace of that value or one of their own. Only the command of
// the notes that asks Helm for the release names the release's.
func TestNamespaceOverride(t *testing.T) {
	release := common.ReleaseOptions{Name: "lectern", Namespace: "records-of-helm", IsInstall: true, Revision: 1}
	values := strings.Replace(everything, "watchNamespaces: [team-a, team-b]", "namespaceOverride: elsewhere", 1)
	r, err := renderOn(t, values, release, installed())
	if err != nil {
		t.Fatal(err)
	}
	if i := strings.Index(r.text, release.Namespace); i >= 0 {
		t.Errorf("an object names the release's namespace: …%s", r.text[max(0, i-300):i+len(release.Namespace)])
	}
	if rest := strings.Replace(r.notes, "helm -n "+release.Namespace+" test", "", 1); rest == r.notes || strings.Contains(rest, release.Namespace) {
		t.Errorf("the notes do not name the release's namespace in helm test alone:\n%s", r.notes)
	}
	for _, o := range r.objects {
		if namespace := o.GetNamespace(); namespace != "" && namespace != "elsewhere" && namespace != "monitoring" {
			t.Errorf("%T %s is in %s", o, o.GetName(), namespace)
		}
	}
	if operator := environmentOf(container(t, one[*apps.Deployment](t, r, "lectern-operator"), "operator")); operator["WATCH_NAMESPACES"] != "elsewhere" {
		t.Errorf("the operator watches %q", operator["WATCH_NAMESPACES"])
	}
}

// TestRuntime checks the runtime class and the user namespaces of all pods, and the IP families of Services. By default, the
// cluster decides.
func TestRuntime(t *testing.T) {
	plain, set := render(t, allPods), render(t, allPods+"defaults: {runtimeClassName: gvisor, hostUsers: false, service: {ipFamilyPolicy: PreferDualStack}}")
	for name, spec := range podSpecs(set) {
		if spec.RuntimeClassName == nil || *spec.RuntimeClassName != "gvisor" || spec.HostUsers == nil || *spec.HostUsers {
			t.Errorf("%s has the runtime class %v, host users %v", name, spec.RuntimeClassName, spec.HostUsers)
		}
	}
	for name, spec := range podSpecs(plain) {
		if spec.RuntimeClassName != nil || spec.HostUsers != nil {
			t.Errorf("%s has a runtime class or host users by default", name)
		}
	}
	for _, name := range append(components(), "sync-shop") {
		policy := one[*core.Service](t, set, "lectern-"+name).Spec.IPFamilyPolicy
		if policy == nil || *policy != core.IPFamilyPolicyPreferDualStack || one[*core.Service](t, plain, "lectern-"+name).Spec.IPFamilyPolicy != nil {
			t.Errorf("%s has the IP families %v", name, policy)
		}
	}
}

// TestCommonLabels checks that the common labels are on every object and pod. They select nothing, so that they can
// change.
func TestCommonLabels(t *testing.T) {
	r := render(t, everything+"\n") // with commonLabels: {team: data}
	for _, o := range r.objects {
		if o.GetLabels()["team"] != "data" {
			t.Errorf("%T %s has the labels %v", o, o.GetName(), o.GetLabels())
		}
	}
	for name, labels := range podLabels(r) {
		if labels["team"] != "data" {
			t.Errorf("the pods of %s have the labels %v", name, labels)
		}
	}
	for name, c := range of[*batch.CronJob](r) {
		if labels := c.Spec.JobTemplate.Labels; labels["team"] != "data" {
			t.Errorf("the Jobs of %s have the labels %v", name, labels)
		}
	}
	selectors := map[string]map[string]string{}
	for name, d := range of[*apps.Deployment](r) {
		selectors["Deployment "+name] = d.Spec.Selector.MatchLabels
	}
	for name, s := range of[*core.Service](r) {
		selectors["Service "+name] = s.Spec.Selector
	}
	for name, b := range of[*policy.PodDisruptionBudget](r) {
		selectors["PodDisruptionBudget "+name] = b.Spec.Selector.MatchLabels
	}
	for name, p := range of[*networking.NetworkPolicy](r) {
		selectors["NetworkPolicy "+name] = p.Spec.PodSelector.MatchLabels
	}
	for name, selector := range selectors {
		if _, ok := selector["team"]; ok || len(selector) == 0 {
			t.Errorf("%s selects %v", name, selector)
		}
	}
}

// TestDevelopmentServersStay checks that an upgrade to another version of the chart does not replace Postgres, whose data
// may be in its pod.
func TestDevelopmentServersStay(t *testing.T) {
	for name, labels := range podLabels(render(t, allPods)) {
		if !strings.HasPrefix(name, "lectern-dev-") {
			continue
		}
		for _, label := range []string{"helm.sh/chart", "app.kubernetes.io/version"} {
			if version, ok := labels[label]; ok {
				t.Errorf("the pods of %s have %s=%s", name, label, version)
			}
		}
	}
}

// TestDevelopmentData checks that the data of the development Postgres are in a claim if the cluster can have one. The
// first installation decides, so that no upgrade separates Postgres from its data.
func TestDevelopmentData(t *testing.T) {
	object := func(apiVersion, kind, namespace, name string, annotations map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name, "annotations": annotations},
		}}
	}
	class := object("storage.k8s.io/v1", "StorageClass", "", "standard", map[string]any{"storageclass.kubernetes.io/is-default-class": "true"})
	other := object("storage.k8s.io/v1", "StorageClass", "", "slow", map[string]any{})
	running := object("apps/v1", "Deployment", "lectern", "lectern-dev-postgres", map[string]any{})
	claim := object("v1", "PersistentVolumeClaim", "lectern", "lectern-dev-postgres", map[string]any{})
	for _, tt := range []struct {
		name, in string
		cluster  []*unstructured.Unstructured
		class    string // "-": no claim
	}{
		{"no class", "", nil, "-"},
		{"no default class", "", []*unstructured.Unstructured{other}, "-"},
		{"a default class", "", []*unstructured.Unstructured{other, class}, ""},
		{"runs without a claim", "", []*unstructured.Unstructured{class, running}, "-"},
		{"runs with a claim", "", []*unstructured.Unstructured{running, claim}, ""},
		{"a class that is named", "storageClass: slow", nil, "slow"},
		{"asked for", "type: claim", nil, ""},
		{"not wanted", "type: emptyDir", []*unstructured.Unstructured{class}, "-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			release := common.ReleaseOptions{Name: "lectern", Namespace: "lectern", IsInstall: true, Revision: 1}
			r, err := renderOn(t, "dev: {enabled: true, postgres: {storage: {"+tt.in+"}}}", release, append(installed(), tt.cluster...))
			if err != nil {
				t.Fatal(err)
			}
			volume := one[*apps.Deployment](t, r, "lectern-dev-postgres").Spec.Template.Spec.Volumes[0]
			if tt.class == "-" {
				if volume.EmptyDir == nil || len(of[*core.PersistentVolumeClaim](r)) > 0 {
					t.Errorf("data lie in %+v", volume)
				}
				return
			}
			made := one[*core.PersistentVolumeClaim](t, r, "lectern-dev-postgres").Spec
			if volume.PersistentVolumeClaim == nil || volume.PersistentVolumeClaim.ClaimName != "lectern-dev-postgres" {
				t.Errorf("data lie in %+v", volume)
			}
			if got := made.StorageClassName; (got == nil) != (tt.class == "") || got != nil && *got != tt.class {
				t.Errorf("the claim is of the class %v; want %q", got, tt.class)
			}
			if size := made.Resources.Requests.Storage().String(); size != "2Gi" {
				t.Errorf("the claim is for %s", size)
			}
		})
	}
}

// TestAssignedUsers checks that no pod sets a user where the platform assigns users. All pods stay restricted
// otherwise.
func TestAssignedUsers(t *testing.T) {
	r := render(t, allPods+"defaults: {podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: null}}")
	for name, spec := range podSpecs(r) {
		pod := spec.SecurityContext
		if pod.RunAsUser != nil || pod.RunAsGroup != nil || pod.FSGroup != nil {
			t.Errorf("%s runs as %v, %v, with the group %v; want what the platform assigns", name, pod.RunAsUser, pod.RunAsGroup, pod.FSGroup)
		}
		if pod.RunAsNonRoot == nil || !*pod.RunAsNonRoot || pod.SeccompProfile == nil {
			t.Errorf("%s is not restricted any more: %+v", name, pod)
		}
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			if s := c.SecurityContext; s.RunAsUser != nil || s.RunAsGroup != nil {
				t.Errorf("%s/%s runs as %v, %v", name, c.Name, s.RunAsUser, s.RunAsGroup)
			}
		}
	}
	// Of one component alone.
	one := podSpecs(render(t, "entries: {podSecurityContext: {runAsUser: null}}"))
	if one["lectern-entries"].SecurityContext.RunAsUser != nil || one["lectern-region"].SecurityContext.RunAsUser == nil {
		t.Error("entries has a user, or region has none")
	}
}

// TestExtraObjects checks that extra objects appear as given, as maps or text, with their templates filled in.
func TestExtraObjects(t *testing.T) {
	r := render(t, `
extraObjects:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: '{{ include "lectern.fullname" . }}-notes'}
    data: {namespace: "{{ .Release.Namespace }}"}
  - |
    apiVersion: v1
    kind: Secret
    metadata:
      name: ca
    {{- if .Values.redis.enabled }}
    stringData: {redis: "yes"}
    {{- end }}
`)
	if got := one[*core.ConfigMap](t, r, "lectern-notes").Data; !maps.Equal(got, map[string]string{"namespace": "lectern"}) {
		t.Errorf("the ConfigMap has %v", got)
	}
	if got := one[*core.Secret](t, r, "ca").StringData; fmt.Sprint(got) != "map[redis:yes]" {
		t.Errorf("the Secret has %v", got)
	}
}

// TestMonitorsNeedTheirAPI checks that values for objects of Prometheus' operator are refused, by name, if the
// cluster lacks its kinds.
func TestMonitorsNeedTheirAPI(t *testing.T) {
	release := common.ReleaseOptions{Name: "lectern", Namespace: "lectern", IsInstall: true, Revision: 1}
	for _, kind := range []string{"serviceMonitor", "rules"} {
		values := "metrics: {" + kind + ": {enabled: true}}"
		if _, err := renderWith(t, values, release, installed()); err == nil || !strings.Contains(err.Error(), "metrics."+kind+".enabled is true, and the cluster has no monitoring.coreos.com/v1") {
			t.Errorf("%s without its API: %v", kind, err)
		}
		if _, err := renderWith(t, values, release, installed(), "monitoring.coreos.com/v1"); err != nil {
			t.Errorf("%s with its API: %v", kind, err)
		}
	}
}
