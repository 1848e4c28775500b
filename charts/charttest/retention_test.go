package charttest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
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

// TestRetentionIsOff checks that by default nothing is removed, and no rights are granted for it.
func TestRetentionIsOff(t *testing.T) {
	for _, o := range render(t, "").objects {
		if strings.Contains(o.GetName(), "retention") {
			t.Errorf("%T %s is made", o, o.GetName())
		}
	}
}

// TestRetention checks that the CronJob runs the operator's image, one run at a time, for a bounded time, with one
// key.
func TestRetention(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		spec     batch.CronJobSpec // what is compared of it
		image    string
		env      map[string]string
		deadline int64
	}{
		{
			"by default", "retention: {enabled: true}",
			batch.CronJobSpec{Schedule: "17 3 * * *"}, "registry.example.com/lectern/operator:0.1.0",
			map[string]string{
				"WATCH_NAMESPACES": "lectern", "ENTRIES_INTERNAL_URL": "http://lectern-entries:9090", "RETENTION_DAYS": "0", "RETENTION_TIMEOUT": "3600s",
				"RETENTION_ADMIN_API_KEY": "lectern-keys/RETENTION_ADMIN_API_KEY", "LOG_LEVEL": "info", "LOG_FORMAT": "json", "GOMAXPROCS": "1", "GOMEMLIMIT": "117964KiB",
			}, 3660,
		},
		{
			"all values", `
retention: {enabled: true, days: 365, schedule: "0 1 * * 0", timeZone: Europe/Berlin, suspend: true, timeoutSeconds: 600, resources: {limits: {cpu: null, memory: null}}}
watchAllNamespaces: true
apiKeys: {existingSecret: mine, keys: {retention: purger}}
entries: {service: {internalPort: 9191}}
operator: {image: {repository: o, tag: v2}, tolerations: [{key: spot, operator: Exists}]}
`,
			batch.CronJobSpec{Schedule: "0 1 * * 0", TimeZone: new("Europe/Berlin"), Suspend: new(true)}, "registry.example.com/o:v2",
			map[string]string{
				"ENTRIES_INTERNAL_URL": "http://lectern-entries:9191", "RETENTION_DAYS": "365", "RETENTION_TIMEOUT": "600s",
				"RETENTION_ADMIN_API_KEY": "mine/purger", "LOG_LEVEL": "info", "LOG_FORMAT": "json",
			}, 660,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := one[*batch.CronJob](t, render(t, tt.in), "lectern-retention").Spec
			if spec.Schedule != tt.spec.Schedule || *spec.Suspend != (tt.spec.Suspend != nil) || (spec.TimeZone == nil) != (tt.spec.TimeZone == nil) {
				t.Errorf("schedule %q in %v, suspended %v", spec.Schedule, spec.TimeZone, *spec.Suspend)
			}
			if spec.ConcurrencyPolicy != batch.ForbidConcurrent || *spec.StartingDeadlineSeconds != 3600 || *spec.SuccessfulJobsHistoryLimit != 3 || *spec.FailedJobsHistoryLimit != 3 {
				t.Errorf("policy %s, %d and %d runs are kept", spec.ConcurrencyPolicy, *spec.SuccessfulJobsHistoryLimit, *spec.FailedJobsHistoryLimit)
			}
			job := spec.JobTemplate.Spec
			if *job.ActiveDeadlineSeconds != tt.deadline || *job.BackoffLimit != 2 {
				t.Errorf("a run may take %d s and is repeated %d times", *job.ActiveDeadlineSeconds, *job.BackoffLimit)
			}
			pod := job.Template.Spec
			if pod.RestartPolicy != core.RestartPolicyNever || *pod.EnableServiceLinks || !*pod.AutomountServiceAccountToken || pod.ServiceAccountName != "lectern-retention" {
				t.Errorf("the pod is %+v", pod)
			}
			c := pod.Containers[0]
			if c.Image != tt.image || !slices.Equal(c.Args, []string{"retention"}) {
				t.Errorf("it runs %s %q; want %s retention", c.Image, c.Args, tt.image)
			}
			if env := environmentOf(c); !maps.Equal(env, tt.env) {
				t.Errorf("environment %v; want %v", env, tt.env)
			}
		})
	}
	if _, err := tryRender(t, "retention: {enabled: true}\nentries: {enabled: false}"); err == nil || !strings.Contains(err.Error(), "allowed: both") {
		t.Errorf("without entries: %v", err)
	}
}

// TestRetentionRights checks that the job's account may list Projects in watched namespaces, and nothing else.
func TestRetentionRights(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string // namespaces; "*" is all
	}{
		{"by default", "", []string{"lectern"}},
		{"named", "watchNamespaces: [team-a, team-b]", []string{"team-a", "team-b"}},
		{"all", "watchAllNamespaces: true", []string{"*"}},
	} {
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
			if !slices.Equal(got, tt.want) {
				t.Errorf("in %q; want %q", got, tt.want)
			}
		})
	}
}

// TestDevelopmentRetentionKey checks that with dev.enabled the job's key is one of the services' admin keys.
func TestDevelopmentRetentionKey(t *testing.T) {
	r := render(t, "dev: {enabled: true}")
	keys := one[*core.Secret](t, r, "lectern-keys").StringData
	if key := keys["RETENTION_ADMIN_API_KEY"]; len(key) < 32 || !slices.Contains(strings.Split(keys["ADMIN_API_KEYS"], ","), "retention="+key) {
		t.Error("the key of the retention job is not among those of administrators")
	}
	admin, _ := variable(container(t, one[*apps.Deployment](t, r, "lectern-entries"), "entries"), "ADMIN_API_KEYS")
	if ref := admin.ValueFrom.SecretKeyRef; ref.Name != "lectern-keys" || ref.Key != "ADMIN_API_KEYS" || !*ref.Optional {
		t.Errorf("entries has ADMIN_API_KEYS from %v", ref)
	}
}
