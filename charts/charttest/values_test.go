package charttest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	policy "k8s.io/api/policy/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// components are the components of the chart.
func components() []string {
	return []string{"console", "edge", "embeddables", "entries", "experiments", "internal", "operator", "proxy", "region"}
}

// everything turns on every option.
const everything = `
dev: {enabled: true, collector: {enabled: true}}
publicUrl: https://api.example.com
caBundle: {configMap: company-ca, key: ca-bundle.crt}
trustedProxies: [10.0.0.0/8, "fd00::/8"]
watchNamespaces: [team-a, team-b]
commonLabels: {team: data}
commonAnnotations: {example.com/owner: data}
image: {registry: registry.example.com/lectern}
imagePullSecrets: [{name: regcred}]
defaults:
  autoscaling: {enabled: true, targetMemoryUtilizationPercentage: 80}
  config: {RATE_LIMIT: 500}
  extraEnv: [{name: GOGC, value: "200"}]
  extraEnvFrom: [{secretRef: {name: more}}]
  extraVolumes: [{name: ca, secret: {secretName: ca}}]
  extraVolumeMounts: [{name: ca, mountPath: /etc/ca, readOnly: true}]
  extraContainers: [{name: beside, image: beside:1}]
  extraInitContainers: [{name: before, image: before:1}]
  priorityClassName: high
  nodeSelector: {kubernetes.io/os: linux}
  tolerations: [{key: spot, operator: Exists}]
  affinity: {nodeAffinity: {}}
  dnsPolicy: None
  dnsConfig: {nameservers: [10.96.0.10]}
  hostAliases: [{ip: 10.0.0.9, hostnames: [pg.example.com]}]
  podAnnotations: {example.com/pod: "1"}
  podLabels: {tier: api}
  networkPolicy:
    extraIngress: [{from: [{ipBlock: {cidr: 10.1.0.0/16}}]}]
    extraEgress: [{to: [{ipBlock: {cidr: 10.2.0.0/16}}]}]
proxy: {manifests: {existingSecret: manifests}}
operator: {fetchCredentials: true, networkPolicy: {egress: [{to: [{ipBlock: {cidr: 10.9.0.0/16}}]}], extraEgress: []}}
retention: {enabled: true, days: 365, timeZone: Europe/Berlin}
tokens:
  issuers:
    - {url: "https://id.example.com:8443/realms/data", audiences: [lectern, console], groupsClaim: groups}
    - {url: "https://dex.example.com", audiences: [lectern], ca: {secret: dex, key: dex.crt}, egress: [{to: [{ipBlock: {cidr: 10.6.0.1/32}}]}]}
  cluster: {enabled: true, issuer: "https://kubernetes.default.svc.cluster.local"}
  internalIdentities: [{namespace: shop, serviceAccount: clock}, {issuer: "https://dex.example.com", subject: clock}]
sync:
  defaults: {extraEnv: [{name: AWS_REGION, value: eu-central-1}]}
  copies:
    warehouse:
      project: pr_1
      schema: shop
      softDelete: true
      columns: auto
      moved: true
      extraVolumes: [{name: ca, secret: {secretName: ca}}]
      extraVolumeMounts: [{name: ca, mountPath: /etc/ca, readOnly: true}]
    lake-of-16-chars: {project: pr_2, extraEnvFrom: [{secretRef: {name: aws}}]}
routing:
  hosts: [api.example.com, api.example.org]
  proxy: {hosts: [proxy.example.com]}
  gateway: {enabled: true, parentRefs: [{name: public, namespace: gateways, sectionName: https}]}
  ingress: {enabled: true, className: any, tls: [{hosts: [api.example.com], secretName: tls}]}
  traefik: {enabled: true, entryPoints: websecure, tls: [{hosts: [api.example.com], secretName: tls}]}
  nginx: {enabled: true, tls: [{hosts: [api.example.com], secretName: tls}]}
networkPolicy:
  publicFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress}}}]
  postgresTo: [{ipBlock: {cidr: 10.3.0.0/16}}]
  redisTo: [{ipBlock: {cidr: 10.4.0.0/16}}]
  apiServerTo: [{ipBlock: {cidr: 10.5.0.1/32}}]
metrics:
  serviceMonitor: {enabled: true}
  rules: {enabled: true, alertLabels: {team: data}, disabled: [LecternSlow]}
  dashboards: {enabled: true, namespace: monitoring}
rbac: {aggregate: true}
extraObjects:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: '{{ include "lectern.fullname" . }}-as-map', namespace: "{{ .Values.namespaceOverride | default .Release.Namespace }}", labels: {a: b}}
  - |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: {{ include "lectern.fullname" . }}-as-text, namespace: {{ .Values.namespaceOverride | default .Release.Namespace }}, labels: {a: b}}
`

// TestRenders checks that all objects decode strictly, and have the chart's labels and a unique name, with the values of all
// examples too.
func TestRenders(t *testing.T) {
	for name, in := range valuesOfAll(t) {
		t.Run(name, func(t *testing.T) {
			r := render(t, in)
			names := map[string]bool{}
			for _, o := range r.objects {
				id := fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())
				if names[id] {
					t.Errorf("%s is made twice", id)
				}
				names[id] = true
				for _, label := range []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart"} {
					if o.GetLabels()[label] == "" && o.GetLabels()["a"] != "b" { // an extra object
						t.Errorf("%s has no label %s", id, label)
					}
				}
				if len(o.GetName()) > 63 {
					t.Errorf("%s: the name has %d letters, more than 63", id, len(o.GetName()))
				}
			}
			if again, err := renderAnew(in); err != nil || again.text != r.text && !strings.Contains(in, "dev:") { // whose passwords are new
				t.Errorf("another render differs, or ends with %v", err)
			}
			if !strings.Contains(r.notes, "helm -n lectern test lectern") {
				t.Errorf("the notes do not tell how to test:\n%s", r.notes)
			}
		})
	}
}

// valuesOfAll returns values that differ in their objects, and those of the examples, by name.
func valuesOfAll(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{
		"no values":        "",
		"everything":       everything,
		"development":      "dev: {enabled: true}",
		"a claim":          "dev: {enabled: true, postgres: {storage: {type: claim}}}",
		"collector alone":  "dev: {collector: {enabled: true}}",
		"no Redis":         "redis: {enabled: false}",
		"one service":      "defaults: {enabled: false}\nentries: {enabled: true}",
		"nothing optional": "defaults: {pdb: {enabled: false}, serviceAccount: {create: false}, migrate: {enabled: false}}\nnetworkPolicy: {enabled: false}\ncrds: {install: false}\nrbac: {create: false}\ntests: {enabled: false}",
		"all pods":         allPods,
		"other names":      "fullnameOverride: data\nnameOverride: reads",
		"definitions go":   "crds: {keep: false}",
		"of version 0.1.0": "uninstall: {enabled: false}",
	}
	files, err := filepath.Glob(filepath.Join(chartFolder, "examples", "values-*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 5 {
		t.Fatalf("%d examples of values; want 5 or more", len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = string(text)
	}
	return all
}

// TestSchemaRefuses checks that the schema refuses mistyped values and names them.
func TestSchemaRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"a component", "entires: {replicas: 3}", "entires"},
		{"a value of a component", "entries: {replica: 3}", "replica"},
		{"a value of all", "defaults: {resource: {}}", "resource"},
		{"deep within", "entries: {autoscaling: {maxReplica: 3}}", "maxReplica"},
		{"a variable", "entries: {config: {RATE_LIMITT: 1}}", "RATE_LIMITT"},
		{"another component's variable", "entries: {config: {EXPERIMENTS_AUTH: required}}", "EXPERIMENTS_AUTH"},
		{"a secret among variables", "entries: {config: {DATABASE_URL: postgres://}}", "DATABASE_URL"},
		{"a variable that the chart sets", "entries: {config: {DRAIN_TIMEOUT: 1h}}", "DRAIN_TIMEOUT"},
		{"an operation", "routing: {exclude: [listEntrys]}", "exclude"},
		{"a mode", "routing: {mode: regex}", "'edge', 'gateway'"},
		{"routing by its former name", "routes: {gateway: {enabled: true}}", "routes was given (gateway); allowed: routing"},
		{"a plain Ingress of patterns", "routing: {mode: gateway, ingress: {enabled: true}}", "routing.mode is gateway and routing.ingress.enabled is true"},
		{"a route to no edge", "edge: {enabled: false}\nrouting: {ingress: {enabled: true}}", "routing.mode is edge and routing.ingress.enabled is true, but edge.enabled"},
		{"a variable that the edge gets from the chart", "edge: {config: {EDGE_SERVICES: entries=x}}", "EDGE_SERVICES"},
		{"text for a number", "entries: {replicas: many}", "replicas"},
		{"an amount of memory", "entries: {resources: {limits: {memory: lots}}}", "memory"},
		{"a percentage", "entries: {pdb: {maxUnavailable: some}}", "maxUnavailable"},
		{"days", "retention: {days: 36501}", "days"},
		{"a copy's value", "sync: {copies: {shop: {projects: pr_1}}}", "projects"},
		{"a long name of a copy", "sync: {copies: {the-name-has-17-ch: {project: pr_1}}}", "the-name-has-17-ch"},
		{"a copy of no project", "sync: {copies: {shop: {}}}", "sync.copies.shop.project is empty"},
		{"a copy without entries", "sync: {copies: {shop: {project: pr_1}}}\nentries: {enabled: false}", "sync.copies.shop.url is empty and entries.enabled is false"},
		{"an issuer without TLS", "tokens: {issuers: [{url: \"http://id.example.com\", audiences: [lectern]}]}", "url"},
		{"tokens for everybody", "tokens: {issuers: [{url: \"https://id.example.com\"}]}", "audiences"},
		{"two CAs of an issuer", "tokens: {issuers: [{url: \"https://id.example.com\", audiences: [lectern], ca: {secret: a, configMap: b}}]}", "ca"},
		{"a cluster without its issuer", "tokens: {cluster: {enabled: true}}", "tokens.cluster.issuer is empty; allowed: the issuer of the API server, which this command prints: kubectl get --raw"},
		{"an account of no cluster", "tokens: {internalIdentities: [{namespace: shop, serviceAccount: clock}]}", "names a ServiceAccount and tokens.cluster.enabled is false"},
		{"an identity without a subject", "tokens: {internalIdentities: [{issuer: \"https://id.example.com\"}]}", "internalIdentities"},
		{"sign-in without a client", "console: {signIn: {issuer: \"https://id.example.com\"}}", "console.signIn.clientId is empty"},
		{"a run without end", "retention: {timeoutSeconds: 0}", "timeoutSeconds"},
		{"a DNS policy", "defaults: {dnsPolicy: Host}", "dnsPolicy"},
		{"a password's key", "entries: {database: {passwordKeys: [DATABASE_URL]}}", "passwordKeys"},
		{"a digest", "entries: {image: {digest: latest}}", "digest"},
		{"a URL", "publicUrl: api.example.com", "publicUrl"},
		{"a log level", "telemetry: {logLevel: loud}", "logLevel"},
		{"a duration", "metrics: {serviceMonitor: {interval: often}}", "interval"},
		{"the proxy's own elsewhere", "entries: {manifests: {existingSecret: x}}", "manifests"},
		{"no gateway", "routing: {gateway: {enabled: true}}", "parentRefs"},
		{"a value that an older chart lacks", "networkPolicy: {dnsPorts: null}", "the value networkPolicy.dnsPorts is missing. helm upgrade --reuse-values keeps"},
		{"no registry", "image: {registry: \"\"}", "names no registry, and image.registry is empty; allowed: image.registry or global.imageRegistry, such as"},
		{"all namespaces and some", "watchAllNamespaces: true\nwatchNamespaces: [team-a]", "watchNamespaces names team-a; allowed: one of the two"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tryRender(tt.in)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q: error %v; want one about %s", tt.in, err, tt.want)
			}
		})
	}
	release := common.ReleaseOptions{Name: "lectern", Namespace: "lectern", IsInstall: true, Revision: 1}
	for _, kind := range []string{"serviceMonitor", "rules"} {
		const none = ".enabled is true, and the cluster has no monitoring.coreos.com/v1"
		if _, err := renderWith("metrics: {"+kind+": {enabled: true}}", release, installed()); err == nil || !strings.Contains(err.Error(), "metrics."+kind+none) {
			t.Errorf("%s without its API: %v", kind, err)
		}
	}
	const key = "extraObjects: [{apiVersion: lectern.dev/v1alpha1, kind: APIKey, metadata: {name: a}}]"
	if _, err := renderWith(key, release, installed()); err == nil || !strings.Contains(err.Error(), "extraObjects has objects of lectern.dev, whose kinds the cluster gets with this installation") {
		t.Errorf("an APIKey before its kind: %v", err)
	}
}

// TestSchemaIsClosed checks that objects of the schema with named properties accept no others, and that values.yaml
// shows each property.
func TestSchemaIsClosed(t *testing.T) {
	var schema map[string]any
	readYAML(t, filepath.Join(chartFolder, "values.schema.json"), &schema)
	var walk func(path string, node any)
	walk = func(path string, node any) {
		switch n := node.(type) {
		case map[string]any:
			if _, ok := n["properties"].(map[string]any); ok && n["additionalProperties"] != false {
				t.Errorf("%s takes properties that it does not name", path)
			}
			for key, below := range n {
				walk(path+"/"+key, below)
			}
		case []any:
			for i, below := range n {
				walk(fmt.Sprint(path, "/", i), below)
			}
		}
	}
	walk("", schema)

	var values map[string]any
	readYAML(t, filepath.Join(chartFolder, "values.yaml"), &values)
	shown := func(of, in map[string]any) (missing []string) {
		for key := range of["properties"].(map[string]any) {
			if _, ok := in[key]; !ok {
				missing = append(missing, key)
			}
		}
		slices.Sort(missing)
		return missing
	}
	if missing := shown(schema, values); !slices.Equal(missing, []string{"enabled", "global", "routes", "uninstall"}) {
		t.Errorf("values.yaml does not show %q; want only those of umbrella charts and former ones missing", missing)
	}
	component := schema["definitions"].(map[string]any)["component"].(map[string]any)
	if missing := shown(component, values["defaults"].(map[string]any)); len(missing) > 0 {
		t.Errorf("defaults in values.yaml does not show %q", missing)
	}
	for _, name := range components() {
		of := schema["properties"].(map[string]any)[name].(map[string]any)["properties"].(map[string]any)
		for key := range component["properties"].(map[string]any) {
			if _, ok := of[key]; !ok {
				t.Errorf("%s does not take %s, as defaults does", name, key)
			}
		}
	}
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestComponentOverrides checks that a component's values apply to it alone, including false, zero and empty values.
func TestComponentOverrides(t *testing.T) {
	r := render(t, `
defaults:
  replicas: 3
  autoscaling: {enabled: true}
  pdb: {enabled: true}
  tolerations: [{operator: Exists}]
  config: {RATE_LIMIT: "500"}
entries:
  replicas: 0
  autoscaling: {enabled: false}
  pdb: {enabled: false}
  tolerations: []
  config: {RATE_LIMIT: "9", MAX_LIMIT: 1000}
`)
	entries := one[*apps.Deployment](t, r, "lectern-entries")
	if got := entries.Spec.Replicas; got == nil || *got != 0 {
		t.Errorf("entries has replicas %v; want 0", got)
	}
	if got := entries.Spec.Template.Spec.Tolerations; len(got) != 0 {
		t.Errorf("entries tolerates %v; want nothing", got)
	}
	for name, want := range map[string]string{"RATE_LIMIT": "9", "MAX_LIMIT": "1000"} {
		if got, _ := variable(container(t, entries, "entries"), name); got.Value != want {
			t.Errorf("entries has %s=%q; want %q", name, got.Value, want)
		}
	}
	if _, ok := of[*policy.PodDisruptionBudget](r)["lectern-entries"]; ok {
		t.Error("entries has a budget; want none")
	}
	if _, ok := of[*autoscaling.HorizontalPodAutoscaler](r)["lectern-entries"]; ok {
		t.Error("entries is scaled; want it not")
	}
	region := one[*apps.Deployment](t, r, "lectern-region")
	if region.Spec.Replicas != nil {
		t.Errorf("region has replicas %d beside an autoscaler; want none", *region.Spec.Replicas)
	}
	if got, _ := variable(container(t, region, "region"), "RATE_LIMIT"); got.Value != "500" {
		t.Errorf("region has RATE_LIMIT=%q; want 500", got.Value)
	}
	if got := slices.Sorted(maps.Keys(of[*policy.PodDisruptionBudget](r))); len(got) != len(components())-1 {
		t.Errorf("budgets for %q; want all but entries", got)
	}
}

// TestImages checks that a digest overrides a tag, and that a component's values override those of all images.
func TestImages(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for _, tt := range []struct{ name, in, want string }{
		{"registry", "image: {registry: r.example.com/x/}", "r.example.com/x/lectern/entries:0.0.1"},
		{"registry of an umbrella chart", "enabled: true\nx-anchors: {a: 1}\nglobal: {imageRegistry: mirror.example.com/y, other: 1}", "mirror.example.com/y/lectern/entries:0.0.1"},
		{"tag of all", "image: {tag: v1}", "registry.example.com/lectern/entries:v1"},
		{"tag", "image: {tag: v1}\nentries: {image: {tag: v2}}", "registry.example.com/lectern/entries:v2"},
		{"digest", "entries: {image: {tag: v2, digest: " + digest + "}}", "registry.example.com/lectern/entries@" + digest},
		{"repository", "entries: {image: {repository: e/f}}", "registry.example.com/e/f:0.0.1"},
		{"whole reference", "image: {tag: v1}\nentries: {image: {repository: 127.0.0.1:5000/e:v3@" + digest + "}}", "127.0.0.1:5000/e:v3@" + digest},
		{"repository with its registry", "image: {registry: r.example.com}\nentries: {image: {repository: 127.0.0.1:5000/e}}", "127.0.0.1:5000/e:0.0.1"},
		{"as scripts/images prints it", "image: {registry: \"\"}\ndefaults: {enabled: false}\ntests: {enabled: false}\nentries: {enabled: true, image: {repository: r.example.com/lectern/entries, digest: \"" + digest + "\"}}", "r.example.com/lectern/entries@" + digest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := one[*apps.Deployment](t, render(t, tt.in), "lectern-entries")
			for _, c := range []string{"entries", "migrate"} {
				if got := container(t, d, c).Image; got != tt.want {
					t.Errorf("%s has image %s; want %s", c, got, tt.want)
				}
			}
		})
	}
}

// TestDefinitionsStay checks that helm uninstall leaves the custom resources, and with them all objects, unless a value says
// otherwise.
func TestDefinitionsStay(t *testing.T) {
	for in, want := range map[string]string{"": "keep", "crds: {keep: false}": ""} {
		all := of[*apiextensions.CustomResourceDefinition](render(t, in))
		if len(all) != 4 {
			t.Errorf("%d definitions; want 4", len(all))
		}
		for name, crd := range all {
			if got := crd.Annotations["helm.sh/resource-policy"]; got != want {
				t.Errorf("%q: %s has the policy %q; want %q", in, name, got, want)
			}
		}
	}
}
