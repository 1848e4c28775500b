package manifest_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/proxy/manifest"
	"github.com/lectern-dev/lectern/proxy/policy"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
)

const (
	canary = "canary-value-4711"

	secretYAML = `apiVersion: v1
kind: Secret
metadata:
  name: stripe
type: Opaque
data:
  token: Y2FuYXJ5LXZhbHVlLTQ3MTE=
stringData:
  short: abc
`
	credentialYAML = `apiVersion: lectern.dev/v1alpha1
kind: Credential
metadata:
  name: stripe
spec:
  projectId: pr_demo
  environment: prod
  id: cred_stripe
  valueFrom:
    secretKeyRef: {name: stripe, key: token}
  destinations:
    - domain: stripe.com
  places: [Header, Body]
`
	endpointYAML = `apiVersion: lectern.dev/v1alpha1
kind: ProxyEndpoint
metadata:
  name: web
spec:
  projectId: pr_demo
  environment: prod
  origins:
    - domain: example.com
  destinations:
    - domain: api.stripe.com
    - pattern: https://hooks\.example\.org(:8443)?/in/.*
  methods: [GET, POST]
  credentials: [cred_stripe]
  ports: [443, 8443]
  limits: {requestsPerSecond: 10, requestBytes: 1048576}
  timeouts: {headers: 1m30s}
`
)

func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		// Renames the file into the folder, so that no reader sees half of it.
		if err := os.WriteFile(filepath.Join(folder, "."+name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(folder, "."+name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLoad(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{"a.yaml": "# first\n---\n" + endpointYAML + "---\n" + credentialYAML + "---\n", "b.yml": secretYAML, "readme.txt": "no: {{", ".hidden.yaml": "{"})
	s, warnings, err := manifest.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings: %v", warnings)
	}
	e := s.Endpoints()[0]
	if e.Name != "web" || e.Access != policy.ByOrigin || e.Limits.Burst != 20 || e.Limits.Concurrent != policy.DefaultConcurrent ||
		e.Timeouts.Headers != 90*time.Second || e.Timeouts.Connect != policy.DefaultConnectTimeout || e.Timeouts.Idle != policy.DefaultIdleTimeout {
		t.Errorf("read as %+v", e)
	}
	v := s.Scope("pr_demo", "prod").Decide(&policy.Request{
		Origin: "https://app.example.com", Method: "POST", Scheme: "https", Port: 443, URL: "https://api.stripe.com/v1",
		Uses: []policy.Use{{ID: "cred_stripe", Place: policy.InHeader}},
	})
	if v.Fault != policy.None || string(v.Credentials[0].Value.Reveal()) != canary {
		t.Errorf("decided: %v", v)
	}
}

func TestFaultsNameFileAndLine(t *testing.T) {
	edit := func(text, old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("no %q in the manifest", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	for _, tt := range []struct {
		name, file string
		want       []string
	}{
		{"not YAML", edit(endpointYAML, "spec:", "spec: ["), []string{"a.yaml:"}},
		{"unknown field", edit(endpointYAML, "methods:", "method:"), []string{`a.yaml:13: ProxyEndpoint: there is no field "method" here`}},
		{"unknown field in a rule", edit(endpointYAML, "- domain: example.com", "- host: example.com"), []string{`a.yaml:9: ProxyEndpoint: there is no field "host" here`}},
		{"field twice", endpointYAML + "  methods: [GET]\n", []string{"a.yaml:18:"}},
		{"wrong type", edit(endpointYAML, "ports: [443, 8443]", "ports: [https]"), []string{"a.yaml:15: ProxyEndpoint: "}},
		{"wrong duration", edit(endpointYAML, "1m30s", "soon"), []string{`a.yaml:17: ProxyEndpoint/web: spec.timeouts.headers: "soon" is not a duration such as 1m30s`}},
		{"unknown kind", edit(endpointYAML, "kind: ProxyEndpoint", "kind: Endpoint"), []string{`a.yaml:2: apiVersion "lectern.dev/v1alpha1", kind "Endpoint"; allowed:`}},
		{"bad domain", edit(endpointYAML, "domain: api.stripe.com", "domain: api..com"), []string{`a.yaml:11: ProxyEndpoint/web: spec.destinations[0].domain: "api..com" is not a domain`}},
		{"domain of everybody", edit(endpointYAML, "domain: api.stripe.com", "domain: co.uk"), []string{"a.yaml:11:", "would allow every domain under it"}},
		{"bad pattern", edit(endpointYAML, `https://hooks\.example\.org(:8443)?/in/.*`, "'https://(x'"), []string{"a.yaml:12: ProxyEndpoint/web: spec.destinations[1].pattern: the pattern does not compile"}},
		{"pattern that ends the group", edit(endpointYAML, `https://hooks\.example\.org(:8443)?/in/.*`, "'x)|(?:.*'"), []string{"a.yaml:12:", "does not compile"}},
		{"domain and pattern", edit(endpointYAML, "domain: api.stripe.com", "{domain: a.example, pattern: x}"), []string{"a.yaml:11:", "exactly one"}},
		{"no destination", edit(edit(endpointYAML, "    - domain: api.stripe.com\n", ""), "    - pattern: https://hooks\\.example\\.org(:8443)?/in/.*\n", ""), []string{"a.yaml:10:", "at least one"}},
		{"no origin", edit(endpointYAML, "    - domain: example.com\n", ""), []string{"a.yaml:8:", "at least one is required with access Origin"}},
		{"unknown access", edit(endpointYAML, "  origins:", "  access: all\n  origins:"), []string{`a.yaml:8: ProxyEndpoint/web: spec.access: is "all"; allowed: Origin, Key`}},
		{"unknown credential", edit(endpointYAML, "[cred_stripe]", "[cred_other]"), []string{`a.yaml:14:`, `no Credential with the id "cred_other"`}},
		{"bad id", edit(credentialYAML, "id: cred_stripe", "id: stripe"), []string{`b.yaml:8: Credential/stripe: spec.id: is "stripe"; allowed: cred_`}},
		{"bad place", edit(credentialYAML, "[Header, Body]", "[Header, cookie]"), []string{`b.yaml:13:`, `is "cookie"; allowed: Header, URL, Body`}},
		{"bad header", edit(credentialYAML, "[Header, Body]", "[Header, Body]\n  headers: [Authorization, X Key]"), []string{`b.yaml:14: Credential/stripe: spec.headers[1]: is "X Key"; allowed: the name of a header`}},
		{"headers without their place", edit(credentialYAML, "[Header, Body]", "[Body]\n  headers: [Authorization]"), []string{`b.yaml:14: Credential/stripe: spec.headers: has no meaning, because spec.places has no Header`}},
		{"no Secret", edit(credentialYAML, "name: stripe, key", "name: other, key"), []string{`b.yaml:10:`, `there is no Secret "other"`}},
		{"no key", edit(credentialYAML, "key: token", "key: other"), []string{`b.yaml:10:`, `has no key "other"`}},
		{"a fetched value", edit(credentialYAML, "secretKeyRef: {name: stripe, key: token}", "oauth2: {tokenURL: 'https://login.example.com/', grant: ClientCredentials, clientId: a}"), []string{
			`b.yaml:10: Credential/stripe: spec.valueFrom.oauth2: works in a Kubernetes cluster alone, whose operator fetches the token; allowed in a folder of manifests: secretKeyRef`,
		}},
		{"another namespace", edit(credentialYAML, "  name: stripe\nspec", "  name: stripe\n  namespace: b\nspec"), []string{`there is no Secret "stripe"`}},
		{"bad base64", edit(secretYAML, "Y2FuYXJ5LXZhbHVlLTQ3MTE=", "'"+canary+"!'"), []string{`c.yaml:6: Secret/stripe: data: the value of "token" is not base64`}},
		{"list for a value", edit(secretYAML, "token: Y2FuYXJ5LXZhbHVlLTQ3MTE=", "token: ["+canary+"]"), []string{"c.yaml:7: Secret: "}},
		{"value as anchor", edit(secretYAML, "Y2FuYXJ5LXZhbHVlLTQ3MTE=", "*"+canary), []string{"c.yaml:"}},
		{"value outside of data", edit(secretYAML, "type: Opaque", canary+": x"), []string{"c.yaml:"}},
		{"a document that is a list", "- a\n", []string{"a.yaml:1:"}},
		{"a second one of the name", endpointYAML + "---\n" + endpointYAML, []string{"a.yaml:22:", "two ProxyEndpoints of this name"}},
		{"a second one of the id", edit(credentialYAML, "name: stripe", "name: again") + "---\n" + credentialYAML, []string{"b.yaml:22:", "as is that of Credential/again"}},
		{"bad certificate", endpointYAML + "  caBundle: none\n", []string{"a.yaml:18:", "no certificate"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"a.yaml": endpointYAML, "b.yaml": credentialYAML, "c.yaml": secretYAML}
			switch {
			case strings.Contains(tt.file, "kind: Credential"):
				files["b.yaml"] = tt.file
			case strings.Contains(tt.file, "kind: Secret"):
				files["c.yaml"] = tt.file
			default:
				files["a.yaml"] = tt.file
			}
			folder := t.TempDir()
			write(t, folder, files)
			_, _, err := manifest.Load(folder)
			if err == nil {
				t.Fatal("was taken")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got:\n%v\nwant: %s", err, want)
				}
			}
			for n := 6; n <= len(canary); n++ {
				if strings.Contains(err.Error(), canary[:n]) || strings.Contains(err.Error(), "Y2FuYXJ5") {
					t.Fatalf("shows the value: %v", err)
				}
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{
		"a.yaml": endpointYAML, "b.yaml": strings.Replace(credentialYAML, "key: token", "key: short", 1),
		"c.yaml": strings.Replace(secretYAML, "short: abc", `short: "abc\n"`, 1),
	})
	_, warnings, err := manifest.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.Error())
	}
	want := []string{
		`b.yaml:10: Credential/stripe: spec.valueFrom.secretKeyRef: the key "short" of the Secret "stripe" ends in a line break, which is left out`,
		"a.yaml:14: ProxyEndpoint/web: spec.credentials[0]: the value of cred_stripe has fewer than 8 bytes, and so cannot be used where answers are scrubbed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFolderFollowsChangesAndKeepsTheLastGoodState(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{"a.yaml": endpointYAML, "b.yaml": credentialYAML, "c.yaml": secretYAML})
	var (
		store policy.Store
		out   logtest.Buffer
	)
	f, err := manifest.NewFolder(folder, &store, time.Millisecond, slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { f.Run(ctx); close(ended) }()
	defer func() { cancel(); <-ended }()

	write(t, folder, map[string]string{"a.yaml": strings.Replace(endpointYAML, "name: web", "name: renamed", 1)})
	name := func() string { return store.Current().Endpoints()[0].Name }
	eventually.True(t, "the new name", func() bool { return name() == "renamed" })
	write(t, folder, map[string]string{"z.yaml": "kind: ["})
	eventually.True(t, "a refusal that names the file", func() bool { return strings.Contains(out.String(), "z.yaml:1") })
	if _, refused := f.Loads(); refused != 1 {
		t.Errorf("%d refusals counted, want 1", refused)
	}
	if name() != "renamed" || f.Healthy() == nil {
		t.Errorf("a bad file took effect: %s, %v", name(), f.Healthy())
	}
	// A good change is refused together with the bad file, which has another fault by now.
	write(t, folder, map[string]string{"a.yaml": endpointYAML})
	write(t, folder, map[string]string{"z.yaml": "\nkind: ["})
	eventually.True(t, "another refusal", func() bool { return strings.Contains(out.String(), "z.yaml:2") })
	if name() != "renamed" {
		t.Error("a good file took effect next to a bad one")
	}
	if err := os.Remove(filepath.Join(folder, "z.yaml")); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the old name", func() bool { return name() == "web" && f.Healthy() == nil })
	if strings.Contains(out.String(), canary) {
		t.Error("the log shows a value")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(endpointYAML + "---\n" + credentialYAML + "---\n" + secretYAML))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("---\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var o manifest.Objects
		if err := manifest.Parse(&o, "f.yaml", text); err != nil {
			return
		}
		_, _, _ = manifest.Build(o)
	})
}
