package charttest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podSpecs are the chart's pods, by the name of the pod's owner.
func podSpecs(r rendered) map[string]core.PodSpec {
	specs := map[string]core.PodSpec{}
	for name, d := range of[*apps.Deployment](r) {
		specs[name] = d.Spec.Template.Spec
	}
	for name, p := range of[*core.Pod](r) {
		specs[name] = p.Spec
	}
	for name, c := range of[*batch.CronJob](r) {
		specs[name] = c.Spec.JobTemplate.Spec.Template.Spec
	}
	for name, j := range of[*batch.Job](r) {
		specs[name] = j.Spec.Template.Spec
	}
	return specs
}

// TestPodsAreRestricted checks that all pods meet the Pod Security Standard "restricted" and have a read-only root
// file system.
func TestPodsAreRestricted(t *testing.T) {
	for _, values := range []string{"", "dev: {enabled: true, collector: {enabled: true}}\nretention: {enabled: true}\nsync: {copies: {shop: {project: pr_1}}}"} {
		for name, spec := range podSpecs(render(t, values)) {
			fault := func(format string, args ...any) { t.Errorf("%s: %s", name, fmt.Sprintf(format, args...)) }
			if spec.HostNetwork || spec.HostPID || spec.HostIPC {
				fault("shares namespaces of the node")
			}
			for _, v := range spec.Volumes {
				if v.ConfigMap == nil && v.Secret == nil && v.EmptyDir == nil && v.Projected == nil && v.PersistentVolumeClaim == nil {
					fault("volume %s is of a kind that is not allowed", v.Name)
				}
			}
			pod := spec.SecurityContext
			if pod == nil || pod.RunAsNonRoot == nil || !*pod.RunAsNonRoot || pod.RunAsUser == nil || *pod.RunAsUser == 0 {
				fault("may run as root")
			}
			if pod == nil || pod.SeccompProfile == nil || pod.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
				fault("has no seccomp profile")
			}
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				s := c.SecurityContext
				switch {
				case s == nil:
					fault("%s has no security context", c.Name)
				case s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation:
					fault("%s may gain privileges", c.Name)
				case s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || len(s.Capabilities.Add) > 0:
					fault("%s has capabilities", c.Name)
				case s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem:
					fault("%s may write its root file system", c.Name)
				case s.Privileged != nil && *s.Privileged:
					fault("%s is privileged", c.Name)
				}
				for _, p := range c.Ports {
					if p.HostPort != 0 {
						fault("%s takes the node's port %d", c.Name, p.HostPort)
					}
				}
			}
		}
	}
}

// TestPodsKnowTheirLimits checks that every container has requests and limits, and variables that pass them to Go.
func TestPodsKnowTheirLimits(t *testing.T) {
	r := render(t, "dev: {enabled: true, collector: {enabled: true}}\nretention: {enabled: true}\nsync: {copies: {shop: {project: pr_1}}}")
	for name, spec := range podSpecs(r) {
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			for _, n := range []core.ResourceName{core.ResourceCPU, core.ResourceMemory, core.ResourceEphemeralStorage} {
				request, limit := c.Resources.Requests[n], c.Resources.Limits[n]
				if request.IsZero() || limit.Cmp(request) < 0 {
					t.Errorf("%s/%s: %s from %s to %s; want both, in that order", name, c.Name, n, request.String(), limit.String())
				}
			}
		}
	}
	for _, component := range components() {
		c := container(t, one[*apps.Deployment](t, r, "lectern-"+component), component)
		text, _ := variable(c, "GOMEMLIMIT")
		memory, err := resource.ParseQuantity(strings.TrimSuffix(text.Value, "B"))
		if err != nil {
			t.Errorf("%s: GOMEMLIMIT=%q: %v", component, text.Value, err)
			continue
		}
		limit := c.Resources.Limits.Memory().Value()
		if part := float64(memory.Value()) / float64(limit); part < 0.89 || part > 0.9 {
			t.Errorf("%s: GOMEMLIMIT is %.3f of the limit; want nine tenths", component, part)
		}
		procs, _ := variable(c, "GOMAXPROCS")
		if want := strconv.FormatInt(c.Resources.Limits.Cpu().Value(), 10); procs.Value != want {
			t.Errorf("%s: GOMAXPROCS=%q; want %s", component, procs.Value, want)
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
				c := container(t, d, component)
				if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.Sleep == nil || c.Lifecycle.PreStop.Sleep.Seconds < 3 {
					t.Errorf("%s: goes before kube-proxy knows", component)
				}
			}
		})
	}
}

// TestPods checks the other rules for the pods of every component.
func TestPods(t *testing.T) {
	r := render(t, "")
	for _, component := range components() {
		d := one[*apps.Deployment](t, r, "lectern-"+component)
		spec := d.Spec.Template.Spec
		if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
			t.Errorf("%s: has the variables of service links", component)
		}
		asks := component == "operator" || component == "proxy"
		if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken != asks {
			t.Errorf("%s: a token of the API server: %v; want %v", component, spec.AutomountServiceAccountToken, asks)
		}
		if spec.ServiceAccountName != "lectern-"+component {
			t.Errorf("%s: runs as %s", component, spec.ServiceAccountName)
		}
		c := container(t, d, component)
		for name, probe := range map[string]*core.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
			if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != name || probe.HTTPGet.Port.StrVal != "internal" {
				t.Errorf("%s: probe %v; want one of %s on the internal port", component, probe, name)
			}
		}
		if c.StartupProbe == nil {
			t.Errorf("%s: no startup probe", component)
		}
		if len(spec.TopologySpreadConstraints) != 2 {
			t.Errorf("%s: %d constraints of spread; want 2", component, len(spec.TopologySpreadConstraints))
		}
		for _, s := range spec.TopologySpreadConstraints {
			if s.LabelSelector == nil || s.LabelSelector.MatchLabels["app.kubernetes.io/component"] != component {
				t.Errorf("%s: is spread among pods of %v", component, s.LabelSelector)
			}
		}
		for label, value := range d.Spec.Selector.MatchLabels {
			if d.Spec.Template.Labels[label] != value {
				t.Errorf("%s: its pods have no %s=%s", component, label, value)
			}
		}
		if u := d.Spec.Strategy.RollingUpdate; u == nil || u.MaxUnavailable.IntValue() != 0 {
			t.Errorf("%s: an upgrade takes pods away before others are there", component)
		}
	}
}

// TestMigrations checks that a component with a database migrates it before it starts, with its own image.
func TestMigrations(t *testing.T) {
	r := render(t, "")
	for _, component := range components() {
		d := one[*apps.Deployment](t, r, "lectern-"+component)
		inits := d.Spec.Template.Spec.InitContainers
		if component == "proxy" || component == "console" || component == "edge" || component == "internal" {
			if len(inits) > 0 {
				t.Errorf("%s has init containers, and no database", component)
			}
			continue
		}
		if len(inits) != 1 || !slices.Equal(inits[0].Args, []string{"migrate"}) {
			t.Errorf("%s: init containers %v; want one that migrates", component, inits)
		}
	}
	off := one[*apps.Deployment](t, render(t, "entries: {migrate: {enabled: false}}"), "lectern-entries")
	if n := len(off.Spec.Template.Spec.InitContainers); n != 0 {
		t.Errorf("%d init containers with migrate.enabled false", n)
	}
}

// TestDefinitions checks that the chart has the custom resources, and that they stay after it unless a value says otherwise.
func TestDefinitions(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"kept", "", "keep"},
		{"not kept", "crds: {keep: false}", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := of[*apiextensions.CustomResourceDefinition](render(t, tt.in))
			for _, name := range []string{"apikeys", "credentials", "projects", "proxyendpoints"} {
				crd, ok := all[name+".lectern.dev"]
				if !ok {
					t.Errorf("%s is not defined", name)
					continue
				}
				if got := crd.Annotations["helm.sh/resource-policy"]; got != tt.want {
					t.Errorf("%s has the policy %q; want %q", name, got, tt.want)
				}
			}
		})
	}
	if all := of[*apiextensions.CustomResourceDefinition](render(t, "crds: {install: false}")); len(all) > 0 {
		t.Errorf("%d definitions with crds.install false", len(all))
	}
}
