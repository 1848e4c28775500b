package stage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/lectern-dev/lectern/bench/internal/must"
)

// The values in the manifests of a stage's proxy. Requests must use the same project, environment, origin and
// credential.
const (
	ProxyProject     = "pr_bench"
	ProxyEnvironment = "prod"
	// ProxyPlainEnvironment has an endpoint without credentials, so the proxy does not search its answers for secrets.
	ProxyPlainEnvironment = "plain"
	ProxyOrigin           = "https://app.example.com"
	ProxyCredential       = "cred_bench"

	proxyValue = "sk_bench_0123456789abcdefghijkl"
)

// Target is a TLS server that plays the third party to which the credential proxy sends requests.
type Target struct {
	*Service
	// Authority is the path of the PEM file with the certificate of the authority that signed the target's
	// certificate.
	Authority string
}

// StartTarget starts a target with a new certificate. The host in the target's URL is localhost, for which the
// certificate is valid.
func (s *Stage) StartTarget(ctx context.Context) *Target {
	certificate, key := filepath.Join(s.Folder, "target.pem"), filepath.Join(s.Folder, "target.key")
	t := &Target{Authority: filepath.Join(s.Folder, "authority.pem")}
	makeCertificate(certificate, key, t.Authority)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must.Get(os.ReadFile(t.Authority)))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	t.Service = s.startReference(ctx, "target", client, "https://localhost:", "CERTIFICATE="+certificate, "CERTIFICATE_KEY="+key)
	return t
}

// StartForward starts a bare httputil.ReverseProxy in front of the target, as a reference for the credential proxy.
func (s *Stage) StartForward(ctx context.Context, t *Target) *Service {
	return s.startReference(ctx, "forward", http.DefaultClient, "http://127.0.0.1:",
		"TARGET="+t.URL, "AUTHORITY="+t.Authority, "AUTHORIZATION=Bearer "+proxyValue)
}

// StartProxy starts the credential proxy, with endpoints that allow pages of ProxyOrigin to send requests to the
// target.
func (s *Stage) StartProxy(ctx context.Context, t *Target) *Service {
	folder := filepath.Join(s.Folder, "manifests")
	must.Do(os.MkdirAll(folder, 0o700))
	must.Do(os.WriteFile(filepath.Join(folder, "all.yaml"), []byte(s.manifests(t)), 0o600))
	return s.Start(ctx, Definition{Name: "proxy", Folder: "proxy/cmd/proxy", Environ: []string{
		"PROXY_MANIFESTS=" + folder, "PROXY_ALLOWED_RANGES=127.0.0.0/8,::1/128", "MAX_IN_FLIGHT=0", "PROXY_CLIENT_CONCURRENT=0", // all load has one address
	}})
}

// concurrent is how many requests each endpoint allows at a time: more than a load has in flight.
const concurrent = 4096

func (s *Stage) manifests(t *Target) string {
	_, port, _ := strings.Cut(strings.TrimPrefix(t.URL, "https://"), ":")
	authority := "    " + strings.ReplaceAll(strings.TrimSpace(string(must.Get(os.ReadFile(t.Authority)))), "\n", "\n    ")
	return fmt.Sprintf(manifests, ProxyProject, ProxyEnvironment, ProxyOrigin, port, ProxyCredential, concurrent, authority, proxyValue, ProxyPlainEnvironment)
}

const manifests = `apiVersion: lectern.dev/v1alpha1
kind: ProxyEndpoint
metadata: {name: bench}
spec:
  projectId: %[1]s
  environment: %[2]s
  origins: [{pattern: '%[3]s'}]
  destinations: [{pattern: 'https://localhost:%[4]s/[a-z]+'}]
  ports: [%[4]s]
  credentials: [%[5]s]
  limits: {concurrent: %[6]d}
  caBundle: |
%[7]s
---
apiVersion: lectern.dev/v1alpha1
kind: ProxyEndpoint
metadata: {name: plain}
spec:
  projectId: %[1]s
  environment: %[9]s
  origins: [{pattern: '%[3]s'}]
  destinations: [{pattern: 'https://localhost:%[4]s/[a-z]+'}]
  ports: [%[4]s]
  limits: {concurrent: %[6]d}
  caBundle: |
%[7]s
---
apiVersion: lectern.dev/v1alpha1
kind: Credential
metadata: {name: bench}
spec:
  projectId: %[1]s
  environment: %[2]s
  id: %[5]s
  valueFrom: {secretKeyRef: {name: bench, key: token}}
---
apiVersion: v1
kind: Secret
metadata: {name: bench}
stringData: {token: %[8]s}
`
