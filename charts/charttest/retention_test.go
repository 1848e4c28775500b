package charttest

import (
	"slices"
	"testing"

	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
)

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

// TestRetentionRights checks that the job's account may list Projects, and nothing else.
func TestRetentionRights(t *testing.T) {
	want := []string{"*"} // namespaces; "*" is all
	for _, tt := range []struct{ name, in string }{{"named", "watchNamespaces: [team-a, team-b]"}, {"all", "watchAllNamespaces: true"}} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			check := func(rules []rbac.PolicyRule) {
				if len(rules) != 1 || !slices.Equal(rules[0].Resources, []string{"projects"}) || !slices.Equal(rules[0].Verbs, []string{"list"}) {
					t.Errorf("may %v", rules)
				}
			}
			for _, o := range render(t, tt.in+"\nretention: {enabled: true}").objects {
				if o.GetLabels()["app.kubernetes.io/component"] != "retention" {
					continue
				}
				switch o := o.(type) {
				case *rbac.Role:
					check(o.Rules)
				case *rbac.ClusterRole:
					check(o.Rules)
				case *rbac.RoleBinding:
					got = append(got, o.Namespace)
					if o.Subjects[0].Name != "lectern-retention" {
						t.Errorf("%s binds %v", o.Name, o.Subjects)
					}
				case *rbac.ClusterRoleBinding:
					got = append(got, "*")
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("in %q; want %q", got, want)
			}
		})
	}
}
