package charttest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
)

// TestUninstallJob checks that the objects of the uninstall job exist only during helm uninstall. The job gets the
// namespaces and the Lease of the operator, and no Secret.
func TestUninstallJob(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		env      map[string]string
	}{
		{"by default", "", map[string]string{"WATCH_NAMESPACES": "lectern", "LEASE_NAME": "lectern-operator"}},
		{"named", "watchNamespaces: [team-a, team-b]\nfullnameOverride: data", map[string]string{"WATCH_NAMESPACES": "team-a,team-b", "LEASE_NAME": "data-operator"}},
		{"all", "watchAllNamespaces: true", map[string]string{"LEASE_NAME": "lectern-operator"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var kinds []string
			for _, o := range render(t, tt.in).objects {
				if o.GetLabels()["app.kubernetes.io/component"] != "uninstall" {
					continue
				}
				a := o.GetAnnotations()
				if a["helm.sh/hook"] != "post-delete" || !strings.Contains(a["helm.sh/hook-delete-policy"], "hook-succeeded") {
					t.Errorf("%T %s has the annotations %v", o, o.GetName(), a)
				}
				switch o := o.(type) {
				case *batch.Job:
					kinds = append(kinds, "Job")
					c := o.Spec.Template.Spec.Containers[0]
					want := maps.Clone(tt.env)
					maps.Copy(want, map[string]string{"LOG_LEVEL": "info", "LOG_FORMAT": "json", "GOMAXPROCS": "1", "GOMEMLIMIT": "117964KiB"})
					if env := environmentOf(c); !maps.Equal(env, want) || !slices.Equal(c.Args, []string{"uninstall"}) || c.Image != "registry.example.com/lectern/operator:0.0.1" {
						t.Errorf("it runs %s %q with %v; want %v", c.Image, c.Args, env, want)
					}
					if *o.Spec.ActiveDeadlineSeconds > 300 {
						t.Errorf("it may take %d s, longer than helm waits", *o.Spec.ActiveDeadlineSeconds)
					}
					continue
				case *core.ServiceAccount:
					kinds = append(kinds, "ServiceAccount")
				case *rbac.ClusterRole:
					kinds = append(kinds, "ClusterRole")
					if len(o.Rules) != 1 || !slices.Equal(o.Rules[0].APIGroups, []string{"lectern.dev"}) || slices.Contains(o.Rules[0].Verbs, "delete") {
						t.Errorf("may %v in the whole cluster", o.Rules)
					}
				case *rbac.Role:
					kinds = append(kinds, "Role")
				}
				if a["helm.sh/hook-weight"] != "-1" {
					t.Errorf("%T %s is not made before the job", o, o.GetName())
				}
				if !strings.Contains(a["helm.sh/hook-delete-policy"], "hook-failed") {
					t.Errorf("%T %s stays after a failure", o, o.GetName())
				}
			}
			slices.Sort(kinds)
			if !slices.Equal(kinds, []string{"ClusterRole", "Job", "Role", "ServiceAccount"}) {
				t.Errorf("there are %q", kinds)
			}
		})
	}
	for _, in := range []string{"uninstall: {enabled: false}", "operator: {enabled: false}\nproxy: {enabled: false}", "rbac: {create: false}"} {
		if jobs := of[*batch.Job](render(t, in)); len(jobs) > 0 {
			t.Errorf("%s: there is a job", in)
		}
	}
}
