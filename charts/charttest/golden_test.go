package charttest

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/lectern-dev/lectern/shared/testing/golden"
)

// passwords are the random ones of dev.enabled.
var passwords = regexp.MustCompile(`\b[A-Za-z0-9]{32}\b`)

// withoutTwins leaves out the components whose objects differ little from those of entries.
const withoutTwins = "embeddables: {enabled: false}\nexperiments: {enabled: false}\nregion: {enabled: false}\nconsole: {enabled: false}\n"

// TestGolden compares whole renders with files, so that a change of the chart shows all that it does. Custom resources, dashboards
// and alerts have sources of their own, and are left out.
func TestGolden(t *testing.T) {
	for name, values := range map[string]string{
		"default":    withoutTwins,
		"everything": withoutTwins + "internal: {enabled: false}\nproxy: {enabled: false, manifests: {existingSecret: manifests}}\n" + strings.Replace(everything, "proxy: {manifests: {existingSecret: manifests}}\n", "", 1),
	} {
		t.Run(name, func(t *testing.T) {
			r := render(t, values)
			objects := slices.DeleteFunc(slices.Clone(r.objects), func(o object) bool {
				kind := kindOf(o)
				return kind == "CustomResourceDefinition" || kind == "PrometheusRule" || strings.Contains(o.GetName(), "-dashboard-")
			})
			slices.SortFunc(objects, func(a, b object) int {
				return cmp.Or(cmp.Compare(kindOf(a), kindOf(b)), cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetNamespace(), b.GetNamespace()))
			})
			var text strings.Builder
			text.WriteString("# Written by: go test ./charts/charttest -run Golden -update\n")
			for _, o := range objects {
				body, err := yaml.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				// Every object has these lines, some of them empty.
				for _, line := range []string{"status: {}\n", "status:\n  loadBalancer: {}\n", "    app.kubernetes.io/managed-by: Helm\n", "    app.kubernetes.io/part-of: lectern\n", "    app.kubernetes.io/version: 0.0.1\n", "    helm.sh/chart: lectern-0.0.1\n"} {
					body = []byte(strings.Replace(string(body), line, "", 1))
				}
				fmt.Fprintf(&text, "---\n%s", passwords.ReplaceAll(body, []byte("RANDOM")))
			}
			golden.Check(t, filepath.Join("testdata", name+".yaml"), text.String())
		})
	}
}

// TestGoldenSecrets compares a file with the Secrets that each container and each account can read. None gets one that it
// does not need.
func TestGoldenSecrets(t *testing.T) {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	r := render(t, `
retention: {enabled: true}
sync: {copies: {shop: {project: pr_1}, hook: {project: pr_1, push: {enabled: true, headers: true}}}}
watchNamespaces: [team-a, team-b]
auth: {passwordKeys: [AUTH_DATABASE_PASSWORD, AUTH_ADMIN_DATABASE_PASSWORD, AUTH_MIGRATE_DATABASE_PASSWORD]}
redis: {passwordKeys: [REDIS_PASSWORD]}
defaults: {database: {passwordKeys: [DATABASE_PASSWORD, READ_DATABASE_PASSWORD, INGEST_DATABASE_PASSWORD, REMOVE_DATABASE_PASSWORD, MIGRATE_DATABASE_PASSWORD]}}
`)
	for name, spec := range podSpecs(r) {
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			for _, e := range c.Env {
				if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
					add("container %s/%s: %s/%s", name, c.Name, e.ValueFrom.SecretKeyRef.Name, e.ValueFrom.SecretKeyRef.Key)
				}
			}
			for path, secret := range secretFiles(t, spec, c) {
				add("container %s/%s: %s as a file", name, c.Name, secret)
				variable := func(e core.EnvVar) bool { return e.Value == path && e.Name == filepath.Base(path)+"_FILE" }
				if !slices.ContainsFunc(c.Env, variable) && !slices.Contains(c.Args, "--header-file="+path) {
					t.Errorf("container %s/%s is not told of %s", name, c.Name, path)
				}
			}
		}
	}
	for name, s := range of[*core.Secret](r) {
		add("made by the chart: %s, with %d keys", name, len(s.Data)+len(s.StringData))
	}
	for _, r := range []rendered{r, render(t, ""), render(t, "watchAllNamespaces: true")} {
		for account, secrets := range readsSecrets(t, r) {
			for _, s := range secrets {
				add("account %s: %s", account, s)
			}
		}
	}
	slices.Sort(lines)
	golden.Check(t, "testdata/secrets.txt", strings.Join(slices.Compact(lines), "\n")+"\n")
}

// secretFiles returns the keys of Secrets that a container gets as files, by path. The kubelet must update the files, and the
// container's user alone may read them.
func secretFiles(t *testing.T, spec core.PodSpec, c core.Container) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, m := range c.VolumeMounts {
		v := spec.Volumes[slices.IndexFunc(spec.Volumes, func(v core.Volume) bool { return v.Name == m.Name })]
		if v.Projected == nil {
			continue
		}
		if !m.ReadOnly || m.SubPath != "" || *v.Projected.DefaultMode != 0o440 {
			t.Errorf("the mount %+v of %+v", m, v)
		}
		for _, source := range v.Projected.Sources {
			for _, item := range source.Secret.Items {
				files[filepath.Join(m.MountPath, item.Path)] = source.Secret.Name + "/" + item.Key
			}
		}
	}
	return files
}

// readsSecrets returns where each account may read Secrets: a namespace, a namespace and the name of one Secret, or "*" for
// the whole cluster.
func readsSecrets(t *testing.T, r rendered) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	grant := func(subject, namespace string, rules []rbac.PolicyRule) {
		for _, rule := range rules {
			if slices.Contains(rule.Resources, "secrets") {
				found[subject] = append(found[subject], strings.Join(append([]string{namespace}, rule.ResourceNames...), "/"))
			}
		}
	}
	for _, o := range r.objects {
		switch binding := o.(type) {
		case *rbac.ClusterRoleBinding:
			grant(binding.Subjects[0].Name, "*", one[*rbac.ClusterRole](t, r, binding.RoleRef.Name).Rules)
		case *rbac.RoleBinding:
			for _, role := range r.objects {
				role, ok := role.(*rbac.Role)
				if ok && binding.RoleRef.Kind == "Role" && role.Name == binding.RoleRef.Name && role.Namespace == binding.Namespace {
					grant(binding.Subjects[0].Name, binding.Namespace, role.Rules)
				}
			}
		}
	}
	return found
}
