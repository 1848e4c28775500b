package charttest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestSyncIsOff checks that nothing of sync is installed without a named copy.
func TestSyncIsOff(t *testing.T) {
	for _, o := range render(t, "metrics: {serviceMonitor: {enabled: true}}").objects {
		if strings.Contains(o.GetName(), "-sync") {
			t.Errorf("%T %s is made", o, o.GetName())
		}
	}
}

// TestSync checks that each copy is one pod of the command line's image that follows its project, with its own
// Secrets.
func TestSync(t *testing.T) {
	for _, tt := range []struct {
		name, in, copy string
		image          string
		args           []string
		env            map[string]string
		account        string
	}{
		{
			"by default", "sync: {copies: {shop: {project: pr_1}}}", "shop", "registry.example.com/lectern/cli:0.1.0",
			[]string{"sync", "--follow", "--retries=1000"},
			map[string]string{
				"LECTERN_URL": "http://lectern-entries.lectern:80", "LECTERN_PROJECT_ID": "pr_1", "LECTERN_METRICS_ADDRESS": ":9090",
				"LECTERN_API_KEY": "lectern-sync-shop-key/api-key", "LECTERN_SYNC_TO": "lectern-sync-shop/LECTERN_SYNC_TO",
				"GOMAXPROCS": "1", "GOMEMLIMIT": "176947KiB",
			}, "lectern-sync-shop",
		},
		{
			"all values", `
cli: {image: {repository: c, tag: v2}}
entries: {service: {port: 8080}}
sync:
  defaults: {schema: copies, softDelete: true, retries: 5}
  copies:
    other: {project: pr_2}
    shop:
      project: pr_1
      url: https://api.example.com
      moved: true
      softDelete: false
      columns: auto
      apiKey: {existingSecret: mine, key: token}
      to: {existingSecret: cluster-app, key: uri}
      extraEnv: [{name: AWS_REGION, value: eu-central-1}]
      resources: {limits: {cpu: null, memory: null}}
      serviceAccount: {create: false, name: reader}
`, "shop", "registry.example.com/c:v2",
			[]string{"sync", "--follow", "--retries=5", "--schema=copies", "--columns=auto", "--moved"},
			map[string]string{
				"LECTERN_URL": "https://api.example.com", "LECTERN_PROJECT_ID": "pr_1", "LECTERN_METRICS_ADDRESS": ":9090",
				"LECTERN_API_KEY": "mine/token", "LECTERN_SYNC_TO": "cluster-app/uri", "AWS_REGION": "eu-central-1",
			}, "reader",
		},
		{
			"shared values", `
entries: {service: {port: 8080}}
sync:
  defaults: {schema: copies, softDelete: true}
  copies:
    shop: {project: pr_1, softDelete: false}
    other: {project: pr_2}
`, "other", "registry.example.com/lectern/cli:0.1.0",
			[]string{"sync", "--follow", "--retries=1000", "--schema=copies", "--soft-delete"},
			map[string]string{
				"LECTERN_URL": "http://lectern-entries.lectern:8080", "LECTERN_PROJECT_ID": "pr_2", "LECTERN_METRICS_ADDRESS": ":9090",
				"LECTERN_API_KEY": "lectern-sync-other-key/api-key", "LECTERN_SYNC_TO": "lectern-sync-other/LECTERN_SYNC_TO",
				"GOMAXPROCS": "1", "GOMEMLIMIT": "176947KiB",
			}, "lectern-sync-other",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := render(t, tt.in)
			d := one[*apps.Deployment](t, r, "lectern-sync-"+tt.copy)
			if *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != apps.RecreateDeploymentStrategyType {
				t.Errorf("%d pods, replaced by %s; want one that ends before the next starts", *d.Spec.Replicas, d.Spec.Strategy.Type)
			}
			for label, value := range d.Spec.Selector.MatchLabels {
				if d.Spec.Template.Labels[label] != value {
					t.Errorf("its pods have no %s=%s", label, value)
				}
			}
			spec := d.Spec.Template.Spec
			if *spec.EnableServiceLinks || *spec.AutomountServiceAccountToken || spec.ServiceAccountName != tt.account {
				t.Errorf("the pod is %+v", spec)
			}
			if _, made := of[*core.ServiceAccount](r)[tt.account]; made != strings.HasPrefix(tt.account, "lectern-") {
				t.Errorf("the account %s is made: %v", tt.account, made)
			}
			c := container(t, d, "sync")
			if c.Image != tt.image || !slices.Equal(c.Args, tt.args) {
				t.Errorf("it runs %s %q; want %s %q", c.Image, c.Args, tt.image, tt.args)
			}
			if env := environmentOf(c); !maps.Equal(env, tt.env) {
				t.Errorf("environment %v; want %v", env, tt.env)
			}
			for path, probe := range map[string]*core.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
				if probe == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != "internal" {
					t.Errorf("probe %v; want one of %s on the internal port", probe, path)
				}
			}
			service := one[*core.Service](t, r, "lectern-sync-"+tt.copy)
			if !maps.Equal(service.Spec.Selector, d.Spec.Selector.MatchLabels) || service.Spec.Ports[0].TargetPort.StrVal != "internal" {
				t.Errorf("the Service selects %v, port %v", service.Spec.Selector, service.Spec.Ports)
			}
		})
	}
}

// TestSyncExamples checks that the manifests of an example make the Secrets that its copy reads, with the keys that it
// reads.
func TestSyncExamples(t *testing.T) {
	for _, name := range []string{"postgres", "s3"} {
		t.Run(name, func(t *testing.T) {
			values, err := os.ReadFile(filepath.Join(chartFolder, "examples", "values-sync-"+name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			read := map[string]string{} // the key of each Secret; empty for all
			for object, spec := range podSpecs(render(t, string(values))) {
				if !strings.HasPrefix(object, "lectern-sync-") {
					continue
				}
				for _, e := range spec.Containers[0].Env {
					if e.ValueFrom != nil {
						read[e.ValueFrom.SecretKeyRef.Name] = e.ValueFrom.SecretKeyRef.Key
					}
				}
				for _, from := range spec.Containers[0].EnvFrom {
					read[from.SecretRef.Name] = ""
				}
			}
			text, err := os.ReadFile(filepath.Join(chartFolder, "examples", "sync-"+name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			made := map[string]string{}
			for document := range strings.SplitSeq("\n"+string(text), "\n---") {
				var m struct {
					manifest
					Spec struct {
						Scopes []string
						Secret struct{ Name string }
					}
				}
				if err := yaml.Unmarshal([]byte(document), &m); err != nil {
					t.Fatal(err)
				}
				switch m.Kind {
				case "APIKey":
					made[m.Spec.Secret.Name] = "api-key"
					if !slices.Equal(m.Spec.Scopes, []string{"entries:read"}) {
						t.Errorf("the key may %q; want entries:read alone", m.Spec.Scopes)
					}
				case "Secret":
					made[m.Metadata.Name] = ""
					if _, ok := m.StringData["LECTERN_SYNC_TO"]; ok {
						made[m.Metadata.Name] = "LECTERN_SYNC_TO"
					}
				}
			}
			if len(read) < 2 || !maps.Equal(read, made) {
				t.Errorf("the copy reads %v, and the manifests make %v", read, made)
			}
		})
	}
}
