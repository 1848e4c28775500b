package charttest

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// allPods has the values for every kind of pod of the chart.
const allPods = `
dev: {enabled: true, collector: {enabled: true}}
retention: {enabled: true}
sync: {copies: {shop: {project: pr_1}}}
`

// pods are the chart's pods, by the name of the pod's owner.
func pods(r rendered) map[string]core.PodTemplateSpec {
	all := map[string]core.PodTemplateSpec{}
	for name, d := range of[*apps.Deployment](r) {
		all[name] = d.Spec.Template
	}
	for name, p := range of[*core.Pod](r) {
		all[name] = core.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}
	}
	for name, c := range of[*batch.CronJob](r) {
		all[name] = c.Spec.JobTemplate.Spec.Template
	}
	return all
}

// podSpecs are the specs of pods.
func podSpecs(r rendered) map[string]core.PodSpec {
	specs := map[string]core.PodSpec{}
	for name, p := range pods(r) {
		specs[name] = p.Spec
	}
	return specs
}

// environmentOf returns the plain variables of a container, and the keys of Secrets of the others as "secret/key".
func environmentOf(c core.Container) map[string]string {
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			env[e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
		}
	}
	return env
}

// TestPodsAreRestricted checks that all pods meet the Pod Security Standard "restricted" and have a read-only root file system.
// All pods have requests and limits, and get no variables of service links. No pod sets a user where the platform assigns users.
func TestPodsAreRestricted(t *testing.T) {
	const assigned = "defaults: {podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: null}}"
	for _, values := range []string{allPods, allPods + assigned} {
		for name, spec := range podSpecs(render(t, values)) {
			pod := spec.SecurityContext
			if spec.HostNetwork || spec.HostPID || spec.HostIPC || pod.RunAsNonRoot == nil || !*pod.RunAsNonRoot ||
				pod.SeccompProfile == nil || pod.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s is not restricted: %+v", name, pod)
			}
			if has, want := pod.RunAsUser != nil || pod.RunAsGroup != nil || pod.FSGroup != nil, values == allPods; has != want {
				t.Errorf("%s sets a user: %v; want %v", name, has, want)
			}
			if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
				t.Errorf("%s has the variables of service links", name)
			}
			for _, v := range spec.Volumes {
				if v.ConfigMap == nil && v.Secret == nil && v.EmptyDir == nil && v.Projected == nil && v.PersistentVolumeClaim == nil {
					t.Errorf("%s: the volume %s is of a kind that is not allowed", name, v.Name)
				}
			}
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				s := c.SecurityContext
				if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.Privileged != nil || s.RunAsUser != nil || s.RunAsGroup != nil ||
					s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 ||
					s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
					t.Errorf("%s/%s is not restricted: %+v", name, c.Name, s)
				}
				for _, n := range []core.ResourceName{core.ResourceCPU, core.ResourceMemory, core.ResourceEphemeralStorage} {
					request, limit := c.Resources.Requests[n], c.Resources.Limits[n]
					if request.IsZero() || limit.Cmp(request) < 0 {
						t.Errorf("%s/%s: %s from %s to %s; want both, in that order", name, c.Name, n, request.String(), limit.String())
					}
					// The LimitRange of a shared namespace may allow ten.
					if component := strings.TrimPrefix(name, "lectern-"); n != core.ResourceEphemeralStorage && !slices.Contains(components(), component) && !strings.HasPrefix(component, "dev-") &&
						limit.AsApproximateFloat64() > 10*request.AsApproximateFloat64() {
						t.Errorf("%s/%s: %s from %s to %s is more than ten times as much", name, c.Name, n, request.String(), limit.String())
					}
				}
			}
		}
	}
}

// TestPodValues checks that values for all pods reach every pod, including those of no component. A component's own
// value applies to it alone.
func TestPodValues(t *testing.T) {
	r := render(t, `
dev: {enabled: true, collector: {enabled: true}}
imagePullSecrets: [{name: regcred}]
global: {imagePullSecrets: [umbrella, {name: regcred}]}
defaults:
  dnsPolicy: None
  dnsConfig: {nameservers: [10.96.0.10], options: [{name: ndots, value: "2"}]}
  hostAliases: [{ip: 10.0.0.9, hostnames: [pg.example.com]}]
  nodeSelector: {pool: data}
  runtimeClassName: gvisor
  hostUsers: false
  podLabels: {mesh: "on"}
  podAnnotations: {example.com/mesh: "on"}
entries: {dnsPolicy: Default}
retention: {enabled: true, podLabels: {mesh: own}, podAnnotations: {example.com/mesh: own}}
tests: {podLabels: {mesh: own}, podAnnotations: {example.com/mesh: own}}
sync: {copies: {shop: {project: pr_1, podLabels: {mesh: own}, podAnnotations: {example.com/mesh: own}}}}
`)
	all := pods(r)
	if want := len(components()) + 6; len(all) != want {
		t.Fatalf("%d kinds of pods; want %d", len(all), want)
	}
	class, users := "gvisor", false
	for name, p := range all {
		spec, mesh := p.Spec, "on"
		switch {
		case slices.Contains([]string{"lectern-retention", "lectern-test", "lectern-sync-shop"}, name):
			mesh = "own"
		case strings.HasPrefix(name, "lectern-dev-"):
			mesh = "" // a change would replace the pods, which may hold data
		}
		if p.Labels["mesh"] != mesh || p.Annotations["example.com/mesh"] != mesh {
			t.Errorf("%s has the labels %v and the annotations %v; want %q", name, p.Labels, p.Annotations, mesh)
		}
		want := core.PodSpec{
			DNSPolicy: core.DNSNone, HostAliases: []core.HostAlias{{IP: "10.0.0.9", Hostnames: []string{"pg.example.com"}}},
			ImagePullSecrets: []core.LocalObjectReference{{Name: "umbrella"}, {Name: "regcred"}}, NodeSelector: map[string]string{"pool": "data"},
			RuntimeClassName: &class, HostUsers: &users,
		}
		if name == "lectern-entries" {
			want.DNSPolicy = core.DNSDefault
		}
		got := core.PodSpec{
			DNSPolicy: spec.DNSPolicy, HostAliases: spec.HostAliases, ImagePullSecrets: spec.ImagePullSecrets, NodeSelector: spec.NodeSelector,
			RuntimeClassName: spec.RuntimeClassName, HostUsers: spec.HostUsers,
		}
		if !reflect.DeepEqual(got, want) || spec.DNSConfig == nil || len(spec.DNSConfig.Options) != 1 {
			t.Errorf("%s has %+v; want %+v", name, got, want)
		}
	}
}

// TestPodsKnowTheirLimits checks that Go gets nine tenths of a memory limit, and the CPU limit.
func TestPodsKnowTheirLimits(t *testing.T) {
	for limit, want := range map[string][2]string{
		"{memory: 256Mi, cpu: 2}":       {"235929KiB", "2"},
		"{memory: 1Gi, cpu: 1500m}":     {"943718KiB", "2"},
		"{memory: 100000000, cpu: 0.5}": {"87890KiB", "1"},
		"{memory: null, cpu: null}":     {"", ""},
	} {
		env := environmentOf(container(t, one[*apps.Deployment](t, render(t, "entries: {resources: {limits: "+limit+"}}"), "lectern-entries"), "entries"))
		if got := [2]string{env["GOMEMLIMIT"], env["GOMAXPROCS"]}; got != want {
			t.Errorf("%s: GOMEMLIMIT and GOMAXPROCS are %q; want %q", limit, got, want)
		}
	}
}

// TestPodsStopInTime checks that a pod is killed only after the longest time that its stop may take.
func TestPodsStopInTime(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     int64
		other    map[string]int64 // of components that do not wait for exports
	}{
		{"by default", "", 50, map[string]int64{"operator": 45, "edge": 95, "internal": 95}},
		{"long exports", "defaults: {drain: {timeoutSeconds: 600}}", 620, map[string]int64{"operator": 45, "console": 50}},
		{"long exports of one service", "entries: {drain: {timeoutSeconds: 600}}", 50, map[string]int64{"operator": 45, "entries": 620, "edge": 620, "internal": 620}},
		{"given", "defaults: {terminationGracePeriodSeconds: 90}", 90, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := render(t, tt.in)
			for _, component := range components() {
				d := one[*apps.Deployment](t, r, "lectern-"+component)
				want := tt.want
				if other, ok := tt.other[component]; ok {
					want = other
				}
				if got := *d.Spec.Template.Spec.TerminationGracePeriodSeconds; got != want {
					t.Errorf("%s: %d s until it is killed; want %d", component, got, want)
				}
			}
		})
	}
}

// TestNamespaceOverride checks that all objects are in the namespace of that value or one of their own. Only the command of
// the notes that asks Helm for the release names the release's.
func TestNamespaceOverride(t *testing.T) {
	release := common.ReleaseOptions{Name: "lectern", Namespace: "records-of-helm", IsInstall: true, Revision: 1}
	values := strings.Replace(everything, "watchNamespaces: [team-a, team-b]", "namespaceOverride: elsewhere", 1)
	r, err := renderOn(values, release, append(installed(), namespaceOf("elsewhere")))
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
			r, err := renderOn("dev: {enabled: true, postgres: {storage: {"+tt.in+"}}}", release, append(installed(), tt.cluster...))
			if err != nil {
				t.Fatal(err)
			}
			volume, got := one[*apps.Deployment](t, r, "lectern-dev-postgres").Spec.Template.Spec.Volumes[0], "-"
			for made := range maps.Values(of[*core.PersistentVolumeClaim](r)) {
				got = ""
				if made.Spec.StorageClassName != nil {
					got = *made.Spec.StorageClassName
				}
			}
			if paused := one[*apps.Deployment](t, r, "lectern-dev-postgres").Spec.Paused; paused != (tt.name == "runs without a claim") {
				t.Errorf("an upgrade replaces the pod: %t", !paused)
			}
			if got != tt.class || (volume.EmptyDir != nil) != (tt.class == "-") {
				t.Errorf("data lie in %+v, of the class %q; want %q", volume, got, tt.class)
			}
		})
	}
}

// TestSmallExample checks that the requests of all pods of the small installation fit 1 CPU and 1 GiB. They also fit
// while an upgrade runs each pod twice. Their memory fits 1 GiB even if each takes its limit, and their pools fit the
// usual max_connections.
func TestSmallExample(t *testing.T) {
	values, err := os.ReadFile(filepath.Join(chartFolder, "examples", "values-small.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cpu, memory, most resource.Quantity
	connections := 0
	deployments := of[*apps.Deployment](render(t, string(values)))
	if len(deployments) != len(components()) {
		t.Fatalf("%d Deployments; want one for each of %d components", len(deployments), len(components()))
	}
	for name, d := range deployments {
		c := d.Spec.Template.Spec.Containers[0]
		for _, init := range d.Spec.Template.Spec.InitContainers {
			if init.Resources.Requests.Memory().Cmp(*c.Resources.Requests.Memory()) > 0 || init.Resources.Limits.Memory().Cmp(*c.Resources.Limits.Memory()) > 0 {
				t.Errorf("%s/%s has more memory than its service", name, init.Name)
			}
		}
		cpu.Add(*c.Resources.Requests.Cpu())
		memory.Add(*c.Resources.Requests.Memory())
		most.Add(*c.Resources.Limits.Memory())
		// A pool for each URL. Standbys are other servers.
		for _, e := range c.Env {
			if strings.HasSuffix(e.Name, "DATABASE_URL") && e.Name != "READ_DATABASE_URL" {
				size, err := strconv.Atoi(environmentOf(c)["DATABASE_MAX_CONNS"])
				if err != nil {
					t.Errorf("%s has no size of its pools: %v", name, err)
				}
				connections += size
			}
		}
	}
	cpu.Mul(2)
	memory.Mul(2)
	for what, sum := range map[string]struct{ got, want resource.Quantity }{
		"the CPU requests, twice":    {cpu, resource.MustParse("1")},
		"the memory requests, twice": {memory, resource.MustParse("1Gi")},
		"the memory limits":          {most, resource.MustParse("1Gi")},
	} {
		if sum.got.IsZero() || sum.got.Cmp(sum.want) > 0 {
			t.Errorf("%s are %s; want at most %s", what, &sum.got, &sum.want)
		}
	}
	const usual, reserved = 100, 3 // Postgres' defaults
	if connections == 0 || 2*connections > usual-reserved {
		t.Errorf("the pools open %d connections; want at most half of %d", connections, usual-reserved)
	}
	t.Logf("requests, twice: %s CPU, %s; limits: %s; connections: %d", &cpu, &memory, &most, connections)
}
