package config_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/proxy/manifest"
)

// Specs as people write them, in YAML, which the tests change.
const (
	project       = "projectId: pr_1\ntitle: One\n"
	apiKey        = "projectId: pr_1\n"
	account       = "identity: {serviceAccountRef: {name: a}}\n"
	credential    = "projectId: pr_1\nenvironment: prod\nid: cred_stripe\nvalueFrom: {secretKeyRef: {name: stripe, key: token}}\n"
	proxyEndpoint = "projectId: pr_1\nenvironment: prod\norigins: [{domain: example.com}]\ndestinations: [{domain: stripe.com}]\n"
)

// object returns an object with the spec in the YAML.
func object(t testing.TB, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("spec:\n  "+strings.ReplaceAll(strings.TrimSuffix(spec, "\n"), "\n", "\n  ")), &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind))
	return o
}

// Each rule has objects that it accepts, and objects that it refuses, with the message. Rules about changes are in
// TestImmutable.
func TestRules(t *testing.T) {
	c := kubetest.Start(t)
	with := func(base, more string) string { return base + more + "\n" }
	replaced := func(base, old, new string) string {
		if !strings.Contains(base, old) {
			t.Fatalf("no %q in %q", old, base)
		}
		return strings.Replace(base, old, new, 1)
	}
	many := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	numbered := func(n int, format string) string {
		var items []string
		for i := range n {
			items = append(items, fmt.Sprintf(format, i))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	type test struct {
		name, spec string
		want       string // part of the refusal; empty: it is taken
	}
	for kind, tests := range map[string][]test{
		"Project": {
			{"least", project, ""},
			{"all", with(project, "region: America/Argentina/Buenos_Aires\nallowedNamespaces: [team-a, '*']"), ""},
			{"id of all characters", "projectId: 0_a-B.c~d\ntitle: 日本\n", ""},
			{"id with a path", "projectId: ../pr x\ntitle: One\n", "projectId is ../pr x; allowed: letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo"},
			{"id that leads up", "projectId: ..\ntitle: One\n", "allowed: letters, digits and . _ ~ -, of which the first is a letter or digit"},
			{"id with a slash", "projectId: pr/1\ntitle: One\n", "allowed: letters, digits and . _ ~ -, of which the first is a letter or digit"},
			{"id in Unicode", "projectId: ü\ntitle: One\n", "allowed: letters, digits and . _ ~ -, of which the first is a letter or digit"},
			{"id with a line break", `projectId: "pr_1\n"` + "\ntitle: One\n", "projectId has letters, digits and . _ ~ -, of which the first is a letter or digit"},
			{"no id", "title: One\n", "spec.projectId: Required value"},
			{"no title", "projectId: pr_1\n", "spec.title: Required value"},
			{"empty title", "projectId: pr_1\ntitle: ''\n", "spec.title"},
			{"empty id", "projectId: ''\ntitle: One\n", "spec.projectId"},
			{"256 bytes", "projectId: " + strings.Repeat("x", 256) + "\ntitle: One\n", ""},
			{"257 bytes", "projectId: " + strings.Repeat("x", 257) + "\ntitle: One\n", "may not be more than 256"},
			{"NUL", `projectId: "a\u0000b"` + "\ntitle: One\n", "spec.projectId"},
			{"long title", "projectId: pr_1\ntitle: " + strings.Repeat("x", 1025) + "\n", "may not be more than 1024"},
			{"region", with(project, "region: Etc/GMT+12"), ""},
			{"region of the machine", with(project, "region: Local"), "region is Local; allowed: a zone of the tz database, such as Europe/Berlin"},
			{"region that leads out", with(project, "region: ../../etc/passwd"), "spec.region"},
			{"empty region", with(project, "region: ''"), "spec.region"},
			{"shortest retention", with(project, "retentionDays: 1"), ""},
			{"longest retention", with(project, "retentionDays: 36500"), ""},
			{"retention of no day", with(project, "retentionDays: 0"), "greater than or equal to 1"},
			{"retention of over a century", with(project, "retentionDays: 36501"), "less than or equal to 36500"},
			{"retention as a text", with(project, "retentionDays: 30d"), "spec.retentionDays"},
			{"namespace twice", with(project, "allowedNamespaces: [a, a]"), "Duplicate value"},
			{"namespaces by prefix", with(project, "allowedNamespaces: ['team-*']"), "spec.allowedNamespaces[0]"},
			{"257 namespaces", with(project, "allowedNamespaces: "+numbered(257, "n%d")), "must have at most 256 items"},
			{"unknown field", with(project, "tilte: One"), "unknown field"},
		},
		"APIKey": {
			{"least", apiKey, ""},
			{"all", with(apiKey, "scopes: [proxy:use]\nexpiresAt: 2030-01-01T00:00:00Z\nrate: 50\nrotation: {every: 720h, overlap: 24h}\nsecret: {name: my.secret, keys: {apiKey: KEY, projectId: PROJECT, url: URL}}\nurl: https://api.example.com/x"), ""},
			{"no project", "rate: 1\n", "spec.projectId: Required value"},
			{"long project", "projectId: " + strings.Repeat("x", 257) + "\n", "may not be more than 256"},
			{"project with a path", "projectId: ../pr x\n", "projectId is ../pr x; allowed: letters, digits and . _ ~ -"},
			{"no scope", with(apiKey, "scopes: []"), "spec.scopes"},
			{"unknown scope", with(apiKey, "scopes: [entries:write]"), "Unsupported value"},
			{"scope twice", with(apiKey, "scopes: [entries:read, entries:read]"), "Duplicate value"},
			{"expiry that is no time", with(apiKey, "expiresAt: tomorrow"), "spec.expiresAt"},
			{"rate 0", with(apiKey, "rate: 0"), "greater than or equal to 1"},
			{"greatest rate", with(apiKey, "rate: 1000000"), ""},
			{"rate of too much", with(apiKey, "rate: 1000001"), "less than or equal to 1000000"},
			{"overlap by default", with(apiKey, "rotation: {every: 2h}"), ""},
			{"overlap of none", with(apiKey, "rotation: {every: 2h, overlap: 0s}"), ""},
			{"overlap as long as the rotation", with(apiKey, "rotation: {every: 1h, overlap: 60m}"), "overlap is 60m and every is 1h; allowed: an overlap shorter than every"},
			{"overlap by default as long as the rotation", with(apiKey, "rotation: {every: 30m}"), "overlap is 1h and every is 30m; allowed: an overlap shorter than every (not set, overlap is 1h)"},
			{"no every", with(apiKey, "rotation: {overlap: 1h}"), "spec.rotation.every: Required value"},
			{"too often", with(apiKey, "rotation: {every: 59s, overlap: 1s}"), "; allowed: a duration from 1m to 87600h"},
			{"too seldom", with(apiKey, "rotation: {every: 87601h}"), "; allowed: a duration from 1m to 87600h"},
			{"beyond what a duration holds", with(apiKey, "rotation: {every: 99999999999999h}"), "; allowed: a duration from 1m to 87600h"},
			{"days", with(apiKey, "rotation: {every: 30d}"), `every is 30d; allowed: a duration from 1m to 87600h in h, m, s or ms, such as 720h for 30 days`},
			{"days of overlap", with(apiKey, "rotation: {every: 720h, overlap: 1d}"), `overlap is 1d; allowed: a duration from 0s to 87600h in h, m, s or ms, such as 24h for a day`},
			{"a number", with(apiKey, "rotation: {every: 3600}"), "spec.rotation.every"},
			{"negative overlap", with(apiKey, "rotation: {every: 1h, overlap: -1h}"), "spec.rotation.overlap"},
			{"long overlap", with(apiKey, "rotation: {every: 1h, overlap: 87601h}"), "; allowed: a duration from 0s to 87600h"},
			{"Secret with capitals", with(apiKey, "secret: {name: Mine}"), "spec.secret.name"},
			{"same names", with(apiKey, "secret: {keys: {apiKey: x, url: x}}"), "apiKey is x, projectId is project-id and url is x; allowed: three different names"},
			{"same name as a default", with(apiKey, "secret: {keys: {apiKey: url}}"), "apiKey is url, projectId is project-id and url is url; allowed: three different names"},
			{"name with a slash", with(apiKey, "secret: {keys: {apiKey: a/b}}"), "spec.secret.keys.apiKey"},
			{"URL of another kind", with(apiKey, "url: ftp://example.com"), "spec.url"},
			{"subject", with(apiKey, "identity: {issuer: https://id.example.com, subject: user-1}\nrate: 5\nexpiresAt: 2030-01-01T00:00:00Z"), ""},
			{"group", with(apiKey, "identity: {issuer: https://id.example.com, group: readers}"), ""},
			{"ServiceAccount", with(apiKey, "identity: {serviceAccountRef: {name: reports}}"), ""},
			{"ServiceAccount of another namespace", with(apiKey, "identity: {serviceAccountRef: {name: reports.v1, namespace: shop}}"), ""},
			{"empty identity", with(apiKey, "identity: {}"), "identity has exactly one of: issuer and subject; issuer and group; serviceAccountRef"},
			{"issuer alone", with(apiKey, "identity: {issuer: https://id.example.com}"), "identity has exactly one of"},
			{"subject alone", with(apiKey, "identity: {subject: user-1}"), "identity has exactly one of"},
			{"subject and group", with(apiKey, "identity: {issuer: https://id.example.com, subject: user-1, group: readers}"), "identity has exactly one of"},
			{"ServiceAccount and issuer", with(apiKey, "identity: {issuer: https://id.example.com, serviceAccountRef: {name: reports}}"), "identity has exactly one of"},
			{"ServiceAccount and group", with(apiKey, "identity: {group: readers, serviceAccountRef: {name: reports}}"), "identity has exactly one of"},
			{"issuer that is no URL", with(apiKey, "identity: {issuer: id.example.com, subject: user-1}"), "spec.identity.issuer"},
			{"empty subject", with(apiKey, "identity: {issuer: https://id.example.com, subject: ''}"), "spec.identity.subject"},
			{"ServiceAccount without a name", with(apiKey, "identity: {serviceAccountRef: {namespace: shop}}"), "spec.identity.serviceAccountRef.name: Required value"},
			{"ServiceAccount in a path", with(apiKey, "identity: {serviceAccountRef: {name: 'a:b'}}"), "spec.identity.serviceAccountRef.name"},
			{"identity with rotation", with(apiKey, "identity: {serviceAccountRef: {name: a}}\nrotation: {every: 720h}"), "rotation, secret and url have no meaning with identity"},
			{"identity with a Secret", with(apiKey, "identity: {serviceAccountRef: {name: a}}\nsecret: {name: mine}"), "rotation, secret and url have no meaning with identity"},
			{"identity with a Secret's keys", with(apiKey, "identity: {serviceAccountRef: {name: a}}\nsecret: {keys: {apiKey: KEY}}"), "rotation, secret and url have no meaning with identity"},
			{"identity with an address", with(apiKey, "identity: {serviceAccountRef: {name: a}}\nurl: https://api.example.com"), "rotation, secret and url have no meaning with identity"},
		},
		"Credential": {
			{"least", credential, ""},
			{"all", with(credential, "destinations: [{domain: stripe.com}, {pattern: 'https://a\\.example/.*'}]\nplaces: [Header, URL, Body]\nheaders: [Authorization, X-Api-Key]\nallowedNamespaces: [web]"), ""},
			{"headers alone", with(credential, "headers: [Authorization]"), ""},
			{"no header's name", with(credential, "headers: ['X Key']"), "spec.headers[0]"},
			{"headers without their place", with(credential, "headers: [Authorization]\nplaces: [URL]"), "headers has no meaning, because places has no Header"},
			{"no id", replaced(credential, "id: cred_stripe\n", ""), "spec.id: Required value"},
			{"no prefix", replaced(credential, "cred_stripe", "stripe"), "id is stripe; allowed: cred_ and 1 to 64 letters, digits, _ or -"},
			{"prefix alone", replaced(credential, "cred_stripe", "cred_"), "id is cred_; allowed: cred_ and 1 to 64 letters, digits, _ or -"},
			{"another sign", replaced(credential, "cred_stripe", "cred_a.b"), "id is cred_a.b; allowed: cred_ and 1 to 64 letters, digits, _ or -"},
			{"line break", replaced(credential, "cred_stripe", `"cred_a\n"`), "id is cred_ and 1 to 64 letters, digits, _ or -"},
			{"longest id", replaced(credential, "cred_stripe", "cred_"+strings.Repeat("a", 64)), ""},
			{"longer id", replaced(credential, "cred_stripe", "cred_"+strings.Repeat("a", 65)), "may not be more than 69"},
			{"long project", replaced(credential, "pr_1", strings.Repeat("x", 257)), "may not be more than 256"},
			{"project with a path", replaced(credential, "pr_1", "../pr x"), "projectId is ../pr x; allowed: letters, digits and . _ ~ -"},
			{"long environment", replaced(credential, "prod", strings.Repeat("ü", 129)), "environment has 1 to 256 bytes of UTF-8"},
			{"no environment", replaced(credential, "environment: prod\n", ""), "spec.environment: Required value"},
			{"no Secret", replaced(credential, "valueFrom: {secretKeyRef: {name: stripe, key: token}}\n", ""), "spec.valueFrom: Required value"},
			{"no key", replaced(credential, ", key: token", ""), "spec.valueFrom.secretKeyRef.key: Required value"},
			{"Secret of another namespace", replaced(credential, "name: stripe", "name: other/stripe"), "spec.valueFrom.secretKeyRef.name"},
			{"value written down", with(credential, "value: sk_live"), "unknown field"},
			{"place", with(credential, "places: [cookie]"), "Unsupported value"},
			{"place twice", with(credential, "places: [URL, URL]"), "Duplicate value"},
			{"destination that crosses the host", with(credential, "destinations: [{pattern: 'https://.*\\.stripe\\.com/.*'}]"), "the host in a pattern has to match no slash"},
			{"bad rule", with(credential, "destinations: [{}]"), "exactly one of domain and pattern is to be set"},
			{"257 destinations", with(credential, "destinations: "+many(257, "{domain: a.example}")), "must have at most 256 items"},
		},
		"ProxyEndpoint": {
			{"least", proxyEndpoint, ""},
			{"by key", "projectId: pr_1\nenvironment: prod\naccess: Key\ndestinations: [{domain: stripe.com}]\n", ""},
			{"all", with(proxyEndpoint, "methods: [GET, X-MY.METHOD]\ncredentials: [cred_a, cred_b]\nports: [443, 8443]\nallowHTTP: true\nscrub: {disabled: true, passUnreadable: true}\ncaBundle: '-----BEGIN CERTIFICATE-----'\nlimits: {requestsPerSecond: 1000000, burst: 1, concurrent: 1, requestBytes: 1125899906842624, responseBytes: 1}\ntimeouts: {connect: 1m, headers: 1h, idle: 24h, total: 168h}"), ""},
			{"no origin", replaced(proxyEndpoint, "[{domain: example.com}]", "[]"), "origins has at least one rule with access: Origin; access: Key may go without"},
			{"no origins", replaced(proxyEndpoint, "origins: [{domain: example.com}]\n", ""), "origins has at least one rule with access: Origin; access: Key may go without"},
			{"no destination", replaced(proxyEndpoint, "[{domain: stripe.com}]", "[]"), "destinations has at least one rule, such as {domain: example.com}"},
			{"no destinations", replaced(proxyEndpoint, "destinations: [{domain: stripe.com}]\n", ""), "spec.destinations: Required value"},
			{"access", with(proxyEndpoint, "access: all"), "Unsupported value"},
			{"long project", replaced(proxyEndpoint, "pr_1", strings.Repeat("x", 257)), "may not be more than 256"},
			{"project with a path", replaced(proxyEndpoint, "pr_1", "../pr x"), "projectId is ../pr x; allowed: letters, digits and . _ ~ -"},
			{"long environment", replaced(proxyEndpoint, "prod", strings.Repeat("ü", 129)), "environment has 1 to 256 bytes of UTF-8"},
			{"domain and pattern", replaced(proxyEndpoint, "{domain: stripe.com}", "{domain: stripe.com, pattern: x}"), "exactly one of domain and pattern is to be set"},
			{"neither", replaced(proxyEndpoint, "{domain: stripe.com}", "{}"), "exactly one of domain and pattern is to be set"},
			{"IDN", replaced(proxyEndpoint, "stripe.com", "bücher.example"), ""},
			{"domain with scheme", replaced(proxyEndpoint, "domain: stripe.com", "domain: 'https://stripe.com'"), "domain is https://stripe.com; allowed: a name such as example.com, without scheme, port, path or wildcard"},
			{"domain with port", replaced(proxyEndpoint, "domain: stripe.com", "domain: 'stripe.com:443'"), "; allowed: a name such as example.com"},
			{"domain with path", replaced(proxyEndpoint, "domain: stripe.com", "domain: stripe.com/v1"), "; allowed: a name such as example.com"},
			{"wildcard", replaced(proxyEndpoint, "domain: stripe.com", "domain: '*.stripe.com'"), "; allowed: a name such as example.com"},
			{"blank in a domain", replaced(proxyEndpoint, "domain: stripe.com", "domain: 'stripe .com'"), "; allowed: a name such as example.com"},
			{"address in brackets", replaced(proxyEndpoint, "domain: stripe.com", "domain: '[fe80.]'"), "; allowed: a name such as example.com"},
			{"one label", replaced(proxyEndpoint, "domain: stripe.com", "domain: localhost"), "; allowed: a name such as example.com"},
			{"pattern", replaced(proxyEndpoint, "domain: stripe.com", `pattern: 'https://api\.stripe\.com/v1/charges(/[A-Za-z0-9_]+)?'`), ""},
			{"pattern of subdomains", replaced(proxyEndpoint, "domain: stripe.com", `pattern: 'https://[^/]+\.stripe\.com(:[0-9]+)?/v1/.*'`), ""},
			{"pattern of several hosts", replaced(proxyEndpoint, "domain: stripe.com", `pattern: '(?i)https?://(a|b)\.stripe\.com/.*'`), ""},
			{"pattern with a dot in a class", replaced(proxyEndpoint, "domain: stripe.com", `pattern: 'https://[a-z.]+\.stripe\.com/.*'`), ""},
			{"pattern with a quoted host", replaced(proxyEndpoint, "domain: stripe.com", `pattern: '\Qhttps://api.stripe.com/\E.*'`), ""},
			{"pattern that crosses the host", replaced(proxyEndpoint, "domain: stripe.com", `pattern: 'https://.*\.stripe\.com/.*'`), `the host in a pattern has to match no slash, or the pattern allows other hosts too: write it without . for any character, such as https://[^/]+\.example\.com/.*`},
			{"pattern of everything", replaced(proxyEndpoint, "domain: stripe.com", `pattern: 'https://.*'`), "the host in a pattern has to match no slash"},
			{"pattern without a path", replaced(proxyEndpoint, "domain: stripe.com", `pattern: 'https://api\.stripe\.com.*'`), "the host in a pattern has to match no slash"},
			{"pattern that crosses in a group", replaced(proxyEndpoint, "domain: stripe.com", `pattern: 'https://(a|.+)\.stripe\.com/'`), "the host in a pattern has to match no slash"},
			{"pattern without a scheme", replaced(proxyEndpoint, "domain: stripe.com", `pattern: '.*stripe\.com/x'`), "the host in a pattern has to match no slash"},
			{"pattern of an origin", replaced(proxyEndpoint, "domain: example.com", `pattern: 'https://.*\.example\.com'`), ""},
			{"pattern that does not compile", replaced(proxyEndpoint, "domain: stripe.com", "pattern: 'https://(x'"), "pattern is a regular expression of RE2 syntax"},
			{"pattern with a look-ahead", replaced(proxyEndpoint, "domain: stripe.com", "pattern: '(?=x)'"), "pattern is a regular expression of RE2 syntax"},
			{"pattern that ends its group", replaced(proxyEndpoint, "domain: stripe.com", "pattern: 'x)|(?:.*'"), "pattern is a regular expression of RE2 syntax"},
			{"long pattern", replaced(proxyEndpoint, "domain: stripe.com", "pattern: "+strings.Repeat("x", 1025)), "may not be more than 1024"},
			{"pattern of long signs", replaced(proxyEndpoint, "domain: stripe.com", "pattern: "+strings.Repeat("ü", 513)), "pattern has 1 to 1024 bytes"},
			{"CONNECT", with(proxyEndpoint, "methods: [GET, CONNECT]"), "methods are such as GET or POST; CONNECT is never allowed"},
			{"method with a blank", with(proxyEndpoint, "methods: ['GET /']"), "spec.methods[0]"},
			{"method twice", with(proxyEndpoint, "methods: [GET, GET]"), "Duplicate value"},
			{"credential", with(proxyEndpoint, "credentials: [stripe]"), "a credential is stripe; allowed: ids, which are cred_ and 1 to 64 letters, digits, _ or -"},
			{"port 0", with(proxyEndpoint, "ports: [0]"), "greater than or equal to 1"},
			{"port 65536", with(proxyEndpoint, "ports: [65536]"), "less than or equal to 65535"},
			{"no certificate", with(proxyEndpoint, "caBundle: none"), "caBundle holds at least one certificate in PEM"},
			{"negative rate", with(proxyEndpoint, "limits: {requestsPerSecond: -1}"), "greater than or equal to 0"},
			{"rate of too much", with(proxyEndpoint, "limits: {requestsPerSecond: 1000001}"), "less than or equal to 1000000"},
			{"bytes of too much", with(proxyEndpoint, "limits: {requestBytes: 1125899906842625}"), "less than or equal to 1125899906842624"},
			{"connect", with(proxyEndpoint, "timeouts: {connect: 61s}"), "; allowed: a duration from 0s to 1m"},
			{"headers", with(proxyEndpoint, "timeouts: {headers: 61m}"), "; allowed: a duration from 0s to 1h"},
			{"idle", with(proxyEndpoint, "timeouts: {idle: 25h}"), "; allowed: a duration from 0s to 24h"},
			{"total", with(proxyEndpoint, "timeouts: {total: 169h}"), "; allowed: a duration from 0s to 168h"},
			{"negative", with(proxyEndpoint, "timeouts: {total: -1s}"), "spec.timeouts.total"},
			{"256 of each", replaced(replaced(proxyEndpoint, "[{domain: example.com}]", many(256, "{pattern: 'https://.*'}")), "[{domain: stripe.com}]", many(256, "{pattern: 'https://[^/]+/.*'}")), ""},
			{"257 origins", replaced(proxyEndpoint, "[{domain: example.com}]", many(257, "{domain: a.example}")), "must have at most 256 items"},
		},
	} {
		for _, tt := range tests {
			t.Run(kind+" "+tt.name, func(t *testing.T) {
				o := object(t, kind, tt.spec)
				o.SetNamespace(c.Namespace)
				o.SetGenerateName("x-")
				err := c.Client.Create(t.Context(), o, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
				switch {
				case tt.want == "" && err != nil:
					t.Errorf("refused: %v", err)
				case tt.want != "" && err == nil:
					t.Errorf("was taken; want a refusal with %q", tt.want)
				case err != nil && strings.Contains(err.Error(), "protobuf"):
					t.Errorf("speaks of what CEL is made of:\n%v", err)
				case tt.want != "" && !strings.Contains(err.Error(), tt.want):
					t.Errorf("says:\n%v\nwant: %s", err, tt.want)
				}
				if takenByProxy, asked := proxyTakes(t, kind, tt.spec); asked && (takenByProxy != (tt.want == "")) != differs[kind+" "+tt.name] {
					t.Errorf("the proxy takes it from a folder: %v; the API server: %v", takenByProxy, tt.want == "")
				}
			})
		}
	}
}

// differs lists the specs about which the API server and the proxy's folder of manifests differ on purpose:
//   - Lists with a value twice, which server-side apply forbids.
//   - Names that only Kubernetes restricts.
//   - References of an endpoint, which the proxy resolves.
//   - Certificates, which CEL cannot read.
//   - The characters of a project's id: a folder accepts those that the API accepts.
var differs = map[string]bool{
	"Credential place twice":                 true,
	"Credential Secret of another namespace": true,
	"Credential project with a path":         true,
	"ProxyEndpoint project with a path":      true,
	"ProxyEndpoint method twice":             true,
	"ProxyEndpoint credential":               true,
	"ProxyEndpoint all":                      true,
}

// proxyTakes reports whether the proxy accepts a spec in a folder of manifests, and whether it reads that kind.
func proxyTakes(t *testing.T, kind, spec string) (taken, asked bool) {
	t.Helper()
	if kind != "Credential" && kind != "ProxyEndpoint" {
		return false, false
	}
	text := "apiVersion: lectern.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: x}\nspec:\n  " +
		strings.ReplaceAll(strings.TrimSuffix(spec, "\n"), "\n", "\n  ") + "\n"
	var o manifest.Objects
	if err := manifest.Parse(&o, "x.yaml", []byte(text)); err != nil {
		return false, true
	}
	_, faults, _ := manifest.BuildEach(o)
	for _, f := range faults {
		if f.Cause == manifest.Invalid {
			return false, true
		}
	}
	return true, true
}

// Some fields are immutable and others are not.
func TestImmutable(t *testing.T) {
	c := kubetest.Start(t)
	for _, tt := range []struct {
		kind, name, spec string
		path             []string
		to               any
		want             string // part of the refusal; empty: it is taken
	}{
		{"Project", "id", project, []string{"projectId"}, "pr_2", "projectId is immutable: make another Project for another id"},
		{"Project", "title", project, []string{"title"}, "Two", ""},
		{"APIKey", "project", apiKey, []string{"projectId"}, "pr_2", "projectId is immutable: make another APIKey for another project"},
		{"APIKey", "Secret", apiKey + "secret: {name: a}\n", []string{"secret", "name"}, "b", "secret.name is immutable: make another APIKey for another Secret"},
		{"APIKey", "Secret given a name", apiKey, []string{"secret", "name"}, "b", "secret.name is immutable: make another APIKey for another Secret"},
		{"APIKey", "Secret's keys", apiKey + "secret: {name: a}\n", []string{"secret", "keys", "apiKey"}, "KEY", ""},
		{"APIKey", "identity", apiKey + account, []string{"identity", "serviceAccountRef", "name"}, "b", "identity is immutable: make another APIKey for another identity, or for a key"},
		{"APIKey", "identity given to a key", apiKey, []string{"identity"}, map[string]any{"serviceAccountRef": map[string]any{"name": "a"}}, "identity is immutable"},
		{"APIKey", "identity taken away", apiKey + account, []string{"identity"}, nil, "identity is immutable"},
		{"APIKey", "rate of an identity", apiKey + account, []string{"rate"}, int64(7), ""},
		{"APIKey", "rate", apiKey, []string{"rate"}, int64(7), ""},
		{"Credential", "project", credential, []string{"projectId"}, "pr_2", "projectId is immutable: make another Credential for another project"},
		{"Credential", "environment", credential, []string{"environment"}, "test", ""},
		{"ProxyEndpoint", "project", proxyEndpoint, []string{"projectId"}, "pr_2", "projectId is immutable: make another ProxyEndpoint for another project"},
		{"ProxyEndpoint", "access", proxyEndpoint, []string{"access"}, "Key", ""},
	} {
		t.Run(tt.kind+" "+tt.name, func(t *testing.T) {
			o := object(t, tt.kind, tt.spec)
			o.SetGenerateName("x-")
			c.Create(t, o)
			if err := unstructured.SetNestedField(o.Object, tt.to, append([]string{"spec"}, tt.path...)...); err != nil {
				t.Fatal(err)
			}
			err := c.Client.Update(t.Context(), o)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("says: %v\nwant: %s", err, tt.want)
			}
		})
	}
}
