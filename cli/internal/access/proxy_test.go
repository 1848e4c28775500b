package access_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

const proxyManifests = `apiVersion: lectern.dev/v1alpha1
kind: ProxyEndpoint
metadata: {name: web}
spec:
  projectId: pr_1
  environment: prod
  origins: [{domain: example.com}]
  destinations: [{pattern: 'https://api\.stripe\.com/v1/.*'}]
  methods: [GET, POST]
  credentials: [cred_stripe]
---
apiVersion: lectern.dev/v1alpha1
kind: ProxyEndpoint
metadata: {name: server}
spec:
  projectId: pr_1
  environment: prod
  access: Key
  destinations: [{domain: example.org}]
  credentials: [cred_stripe, cred_short]
---
apiVersion: lectern.dev/v1alpha1
kind: Credential
metadata: {name: stripe}
spec:
  projectId: pr_1
  environment: prod
  id: cred_stripe
  valueFrom: {secretKeyRef: {name: values, key: stripe}}
---
apiVersion: lectern.dev/v1alpha1
kind: Credential
metadata: {name: short}
spec:
  projectId: pr_1
  environment: prod
  id: cred_short
  valueFrom: {secretKeyRef: {name: values, key: short}}
---
apiVersion: v1
kind: Secret
metadata: {name: values}
stringData: {stripe: canary-of-stripe, short: canary}
`

func manifestsIn(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	clitest.Write(t, filepath.Join(folder, "all.yaml"), text)
	return folder
}

func TestProxyCheck(t *testing.T) {
	t.Parallel()
	folder := manifestsIn(t, proxyManifests)
	body := clitest.File(t, "body.json", `{"password": "{{ cred_stripe }}"}`)
	const origin, bearer, charges = "--origin=https://app.example.com", "--header=Authorization: Bearer {{ cred_stripe }}", "https://api.stripe.com/v1/charges"
	for _, tt := range []struct {
		name  string
		stdin string
		in    []string
		code  int
		want  string // in the result
	}{
		{"allowed", "", []string{origin, bearer, charges}, shell.ExitOK, "allowed by endpoint web\nmatched: " + charges + "\ncredentials: cred_stripe\nadvice: cred_stripe may stand anywhere in a body"},
		{"of another origin", "", []string{"--origin=https://example.com.evil.tld", charges}, shell.ExitFailure, "refused: origin_not_allowed"},
		{"to elsewhere", "", []string{origin, "https://api.stripe.com.evil.tld/v1/charges"}, shell.ExitFailure, "refused: destination_not_allowed"},
		{"by another method", "", []string{origin, "-X", "DELETE", charges}, shell.ExitFailure, "web: the method is not allowed"},
		{"with another credential", "", []string{origin, "-H", "X-Token: {{cred_short}}", charges}, shell.ExitFailure, "refused: credential_not_allowed"},
		{"in another environment", "", []string{"--environment=staging", origin, charges}, shell.ExitFailure, "refused: origin_not_allowed"},
		{"without its key", "", []string{"https://example.org/"}, shell.ExitFailure, "refused: unauthorized"},
		{"with a key", "", []string{"--with-key", bearer, "https://example.org/"}, shell.ExitOK, "allowed by endpoint server"},
		{"a preflight", "", []string{origin, "-X", "OPTIONS", "-H", "Access-Control-Request-Method: POST", charges}, shell.ExitOK, "granted"},
		{"a body", "", []string{origin, "-X", "POST", "-H", "Content-Type: application/json", "--body-template", body, charges}, shell.ExitOK, "credentials: cred_stripe"},
		{"a body from standard input", "a={{ cred_other }}", []string{origin, "-X", "POST", "-H", "Content-Type: text/plain", "--body-template", "-", charges}, shell.ExitFailure, "refused: credential_not_allowed"},
		{"a body of no type", "", []string{origin, "-X", "POST", "--body-template", body, charges}, shell.ExitFailure, "refused: unsupported_media_type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"proxy", "check", "-o", "table", "--manifests", folder, "--project", "pr_1", "--environment", "prod"}, tt.in...)
			r := clitest.Run(t, tt.stdin, nil, args...)
			if r.Code != tt.code || !strings.Contains(r.Out, tt.want) {
				t.Errorf("exit code %d, want %d; printed\n%s\nwant %q", r.Code, tt.code, r.Out, tt.want)
			}
			if refused := strings.HasPrefix(r.Out, "refused"); refused != (r.Code == shell.ExitFailure) || refused != strings.Contains(r.Err, "the request is refused") {
				t.Errorf("exit code %d, standard error %q, printed\n%s", r.Code, r.Err, r.Out)
			}
			if !strings.Contains(r.Err, "warning: all.yaml:20: ProxyEndpoint/server: spec.credentials[1]: the value of cred_short has fewer than 8 bytes") {
				t.Errorf("no warning of the short value: %s", r.Err)
			}
			if strings.Contains(r.Out+r.Err, "canary") {
				t.Errorf("shows a value: %+v", r)
			}
		})
	}
}

func TestProxyCheckAsJSON(t *testing.T) {
	t.Parallel()
	folder := manifestsIn(t, proxyManifests)
	r := clitest.Run(t, "", map[string]string{"PROXY_MANIFESTS": folder, "LECTERN_PROJECT_ID": "pr_1", "LECTERN_ENVIRONMENT": "prod"},
		"proxy", "check", "--quiet", "-o", "json", "--origin", "https://example.com", "https://evil.tld/")
	if r.Code != shell.ExitFailure {
		t.Errorf("%+v", r)
	}
	got := map[string]any{}
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
		t.Fatalf("%v: %s", err, r.Out)
	}
	delete(got, "message") // texts for people
	delete(got, "why")
	want := map[string]any{
		"allowed": false, "code": "destination_not_allowed", "endpoint": "web", "target": "https://evil.tld/", "credentials": []any{},
		"verdicts": []any{"web: the destination is not allowed", "server: the origin is not allowed"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(r.Err, "warning") {
		t.Errorf("not quiet: %s", r.Err)
	}
}

func TestProxyCheckRefusesToGuess(t *testing.T) {
	t.Parallel()
	folder := manifestsIn(t, proxyManifests)
	broken := manifestsIn(t, strings.Replace(proxyManifests, "access: Key", "access: nobody", 1))
	for _, tt := range []struct {
		name string
		in   []string
		want string
	}{
		{"no project", []string{"--manifests", folder, "-e", "prod", "https://example.org"}, "--project"},
		{"a fault in the manifests", []string{"--manifests", broken, "-p", "pr_1", "-e", "prod", "https://example.org"}, `all.yaml:18: ProxyEndpoint/server: spec.access: is "nobody"`},
		{"no such body", []string{"--manifests", folder, "-p", "pr_1", "-e", "prod", "--body-template", folder + "/none", "https://example.org"}, "--body-template"},
		{"no method", []string{"--manifests", folder, "-p", "pr_1", "-e", "prod", "-X", "G T", "https://example.org"}, "G T"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := clitest.Run(t, "", nil, append([]string{"proxy", "check"}, tt.in...)...)
			if r.Code != shell.ExitUsage || !strings.Contains(r.Err, tt.want) || r.Out != "" {
				t.Errorf("%+v, want exit code 2 and %q", r, tt.want)
			}
		})
	}
}
