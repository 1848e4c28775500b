package charttest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestNotesNameMissingSecrets checks that the notes have a command for each missing Secret that a pod waits for, those of an
// APIKey object too. Without a cluster to ask, they name none.
func TestNotesNameMissingSecrets(t *testing.T) {
	release := common.ReleaseOptions{Name: "lectern", Namespace: "lectern", IsInstall: true, Revision: 1}
	const one = "defaults: {enabled: false}\nredis: {enabled: false}\nsync: {copies: {shop: {project: pr_1, url: \"https://api.example.com\"}}}\n"
	for _, tt := range []struct {
		name, values string
		cluster      []*unstructured.Unstructured
		want         map[string]map[string]bool
	}{
		{"a copy", one, installed(), map[string]map[string]bool{"lectern-sync-shop": {"LECTERN_SYNC_TO": true}, "lectern-sync-shop-key": {"api-key": true}}},
		{"development brings its own", "dev: {enabled: true}\nretention: {enabled: true}", installed(), map[string]map[string]bool{}},
		{"no cluster to ask", one, nil, map[string]map[string]bool{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := renderOn(tt.values, release, tt.cluster)
			if err != nil {
				t.Fatal(err)
			}
			if got := commandsFor(r.notes); !maps.EqualFunc(got, tt.want, maps.Equal) {
				t.Errorf("the notes name %v; want %v\n%s", got, tt.want, r.notes)
			}
			if said := strings.Contains(r.notes, "are missing"); said != (len(tt.want) > 0) {
				t.Errorf("the notes say that Secrets are missing: %v\n%s", said, r.notes)
			}
		})
	}
}

// TestRefusesWithoutSecrets checks that an installation and an upgrade fail if Secrets are missing that pods need, and that the
// error has a command for each. Without a cluster, nothing is refused.
func TestRefusesWithoutSecrets(t *testing.T) {
	object := func(kind, namespace, name string, keys ...string) *unstructured.Unstructured {
		data := map[string]any{}
		for _, key := range keys {
			data[key] = "eA=="
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name}, "data": data,
		}}
	}
	namespace := object("ServiceAccount", "lectern", "default") // which every namespace has
	var secrets []*unstructured.Unstructured
	for _, service := range []string{"entries", "embeddables", "experiments", "region"} {
		secrets = append(secrets, object("Secret", "lectern", "lectern-"+service+"-database", "DATABASE_URL", "MIGRATE_DATABASE_URL"))
	}
	secrets = append(secrets, object("Secret", "lectern", "lectern-auth", "AUTH_DATABASE_URL", "AUTH_ADMIN_DATABASE_URL"), object("Secret", "lectern", "lectern-redis", "REDIS_URL"))
	keys := object("Secret", "lectern", "lectern-keys", "EDGE_KEYS", "INGEST_API_KEYS")
	const copies = "sync: {copies: {shop: {project: pr_1}}}\n"
	for _, tt := range []struct {
		name, values string
		cluster      []*unstructured.Unstructured
		want         []string                   // parts of the error; none if nothing is refused
		commands     map[string]map[string]bool // the keys that its commands make, by Secret; nil is not compared
	}{
		{"no namespace", "", nil, []string{"kubectl create namespace lectern\n", "create secret generic lectern-redis", "with your own values"}, nil},
		{"a Secret", "", append(slices.Clone(secrets), namespace), []string{"are missing in the namespace lectern"},
			map[string]map[string]bool{"lectern-keys": {"EDGE_KEYS": true, "INGEST_API_KEYS": true, "ADMIN_API_KEYS": true, "INTERNAL_API_KEYS": true}}},
		{"a key", "retention: {enabled: true}\n", append(slices.Clone(secrets), namespace, keys), []string{"patch secret lectern-keys"},
			map[string]map[string]bool{"lectern-keys": {"RETENTION_ADMIN_API_KEY": true}}},
		{"passwords", "redis: {passwordKeys: [REDIS_PASSWORD]}\nentries: {database: {passwordKeys: [INGEST_DATABASE_PASSWORD, MIGRATE_DATABASE_PASSWORD]}}\n",
			append(slices.Clone(secrets), namespace, keys), []string{"patch secret lectern-redis", "patch secret lectern-entries-database"},
			map[string]map[string]bool{"lectern-redis": {"REDIS_PASSWORD": true}, "lectern-entries-database": {"INGEST_DATABASE_PASSWORD": true, "MIGRATE_DATABASE_PASSWORD": true}}},
		{"the destination of a copy, whose API key an APIKey makes later", copies, append(slices.Clone(secrets), namespace, keys), []string{"create secret generic lectern-sync-shop"},
			map[string]map[string]bool{"lectern-sync-shop": {"LECTERN_SYNC_TO": true}}},
		{"another name, and no edge", "routing: {mode: gateway}\ninternal: {enabled: false}\nredis: {enabled: false}\nentries: {database: {existingSecret: mine}}\n", append(slices.Clone(secrets), namespace, keys), []string{"create secret generic mine"},
			map[string]map[string]bool{"mine": {"DATABASE_URL": true, "MIGRATE_DATABASE_URL": true}}},
		{"only what an APIKey makes", copies, append(slices.Clone(secrets), namespace, keys, object("Secret", "lectern", "lectern-sync-shop", "LECTERN_SYNC_TO")), nil, nil},
		{"nothing", "", append(slices.Clone(secrets), namespace, keys), nil, nil},
		{"what development brings", "dev: {enabled: true}\n", nil, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := append(installed(), tt.cluster...)
			for _, release := range []common.ReleaseOptions{
				{Name: "lectern", Namespace: "lectern", IsInstall: true, Revision: 1},
				{Name: "lectern", Namespace: "lectern", IsUpgrade: true, Revision: 2},
			} {
				_, err := renderOn(tt.values+"requireSecrets: true", release, all)
				if len(tt.want) == 0 {
					if err != nil {
						t.Errorf("refused: %v", err)
					}
					continue
				}
				if err == nil {
					t.Fatal("not refused")
				}
				for _, part := range tt.want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("says %v; want %q", err, part)
					}
				}
				if tt.name != "no namespace" && strings.Contains(err.Error(), "create namespace") {
					t.Errorf("asks for the namespace, which exists: %v", err)
				}
				if got := commandsFor(err.Error()); tt.commands != nil && !maps.EqualFunc(got, tt.commands, maps.Equal) {
					t.Errorf("names %v; want %v\n%v", got, tt.commands, err)
				}
			}
		})
	}
	release := common.ReleaseOptions{Name: "lectern", Namespace: "lectern", IsInstall: true, Revision: 1}
	if _, err := renderOn("requireSecrets: true\nnetworkPolicy: {enabled: false}", release, nil); err != nil {
		t.Errorf("without a cluster: %v", err)
	}
	lectern, err := loadChart()
	if err != nil {
		t.Fatal(err)
	}
	if got := lectern.Values["requireSecrets"]; got != true {
		t.Errorf("by default, requireSecrets is %v; want true", got)
	}
}

var (
	makesSecret   = regexp.MustCompile(`create secret generic (\S+)`)
	patchesSecret = regexp.MustCompile(`patch secret (\S+) --type=merge -p "(.*)"$`)
	literal       = regexp.MustCompile(`--from-literal=(\S+)="\S*\$\S.*"`)
	patched       = regexp.MustCompile(`\\"([^"\\]+)\\": \\"\$\S`)
)

// commandsFor returns the keys that the commands of the notes create, by Secret.
func commandsFor(notes string) map[string]map[string]bool {
	found := map[string]map[string]bool{}
	secret, continued := "", false
	for line := range strings.Lines(notes) {
		line = strings.TrimRight(line, "\n")
		if m := makesSecret.FindStringSubmatch(line); m != nil {
			secret = m[1]
			found[secret] = map[string]bool{}
		}
		if m := literal.FindStringSubmatch(line); m != nil && continued {
			found[secret][m[1]] = true
		}
		if m := patchesSecret.FindStringSubmatch(line); m != nil {
			found[m[1]] = map[string]bool{}
			for _, key := range patched.FindAllStringSubmatch(m[2], -1) {
				found[m[1]][key[1]] = true
			}
		}
		continued = strings.HasSuffix(line, "\\")
	}
	return found
}

// TestEverySecretIsNamed checks that each Secret that a container needs is made by dev.enabled, and otherwise named by the notes.
func TestEverySecretIsNamed(t *testing.T) {
	const pods = "\nretention: {enabled: true}\ntests: {enabled: false}"
	made := map[string]map[string]bool{}
	development := render(t, "dev: {enabled: true}"+pods)
	for name, secret := range of[*core.Secret](development) {
		made[name] = map[string]bool{}
		for key := range secret.StringData {
			made[name][key] = true
		}
	}
	own := render(t, "sync: {copies: {shop: {project: pr_1}}}"+pods)
	for _, tt := range []struct {
		r    rendered
		made map[string]map[string]bool
	}{{development, made}, {own, commandsFor(own.notes)}} {
		for name, spec := range podSpecs(tt.r) {
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				for _, e := range c.Env {
					if e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil {
						continue
					}
					ref := e.ValueFrom.SecretKeyRef
					if optional := ref.Optional != nil && *ref.Optional; !optional && !tt.made[ref.Name][ref.Key] {
						t.Errorf("%s/%s waits for %s of %s, which nothing makes or names", name, c.Name, ref.Key, ref.Name)
					}
				}
			}
		}
	}
}

// TestForwardingHeadersAreBelieved checks that services know the edge by its key if there is an edge. Otherwise they
// know the gateway by its addresses.
func TestForwardingHeadersAreBelieved(t *testing.T) {
	services := []string{"entries", "embeddables", "experiments", "region", "proxy", "console"}
	for _, tt := range []struct {
		name, in string
		byKey    []string
		byRange  []string
	}{
		{"edge", "{}", append([]string{"edge", "internal"}, services...), []string{"edge"}},
		{"edge, the proxy on its own host", "{proxy: {hosts: [p.example.com]}}", append([]string{"edge", "internal"}, services...), []string{"edge", "proxy"}},
		{"gateway", "{mode: gateway}", []string{"internal", "entries", "embeddables", "experiments", "region"}, services},
		{"gateway, before a switch", "{mode: gateway}\nedge: {enabled: true}", append([]string{"edge", "internal"}, services...), append([]string{"edge"}, services...)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := render(t, "trustedProxies: [10.0.0.0/8]\nrouting: "+tt.in)
			for name, d := range podSpecs(r) {
				name = strings.TrimPrefix(name, "lectern-")
				var key, trusted core.EnvVar
				for _, e := range d.Containers[0].Env {
					switch e.Name {
					case "EDGE_KEYS":
						key = e
					case "TRUSTED_PROXIES":
						trusted = e
					}
				}
				if got, want := key.ValueFrom != nil, slices.Contains(tt.byKey, name); got != want {
					t.Errorf("%s knows the edge's key: %v; want %v", name, got, want)
				}
				if got, want := trusted.Value == "10.0.0.0/8", slices.Contains(tt.byRange, name); got != want {
					t.Errorf("%s believes addresses %q; want that: %v", name, trusted.Value, want)
				}
			}
		})
	}
}

// TestTrustedProxies checks whom the edge believes by default, and its limits.
// TestLongOneClientLeavesRoom of the edge runs with these settings.
func TestTrustedProxies(t *testing.T) {
	for _, tt := range []struct{ values, want string }{
		{"", "private"},
		{"edge: {service: {type: LoadBalancer}}", ""},
		{"edge: {service: {type: NodePort}}", ""},
		{"edge: {service: {type: LoadBalancer}}\ntrustedProxies: private", "private"},
		{"trustedProxies: []", ""},
		{"trustedProxies: [10.0.0.0/8, \"fd00::/8\"]", "10.0.0.0/8,fd00::/8"},
	} {
		t.Run(tt.values, func(t *testing.T) {
			got := ""
			for _, e := range podSpecs(render(t, tt.values))["lectern-edge"].Containers[0].Env {
				switch e.Name {
				case "TRUSTED_PROXIES":
					got = e.Value
				case "MAX_IN_FLIGHT":
					if e.Value != "4096" {
						t.Errorf("MAX_IN_FLIGHT is %s", e.Value)
					}
				case "MAX_WAITING", "READ_TIMEOUT", "WRITE_TIMEOUT":
					t.Errorf("the chart sets %s", e.Name)
				}
			}
			if got != tt.want {
				t.Errorf("TRUSTED_PROXIES is %q; want %q", got, tt.want)
			}
		})
	}
	for _, values := range []string{"trustedProxies: [private]", "trustedProxies: all"} {
		if _, err := tryRender(values); err == nil {
			t.Errorf("%s is accepted", values)
		}
	}
}
