package stage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The endpoints in the manifests of a stage's proxy.
const (
	ProxyProject     = "pr_bench"
	ProxyEnvironment = "prod"
	// ProxyPlainEnvironment has an endpoint without credentials, whose answers are not searched.
	ProxyPlainEnvironment = "plain"
	ProxyOrigin           = "https://app.example.com"
	ProxyCredential       = "cred_bench"

	proxyValue = "sk_bench_0123456789abcdefghijkl"
)

// Target is a third party over TLS.
type Target struct {
	*Service
	// Client trusts the target's authority, whose certificate is the file Authority. It uses HTTP/1.1 and keeps
	// connections.
	Client    *http.Client
	Authority string
}

// StartTarget runs a third party. Its URL has the host localhost.
func (s *Stage) StartTarget(ctx context.Context) (*Target, error) {
	binary, err := s.Build(ctx, "bench/target")
	if err != nil {
		return nil, err
	}
	certificate, key := filepath.Join(s.Folder, "target.pem"), filepath.Join(s.Folder, "target.key")
	t := &Target{Authority: filepath.Join(s.Folder, "authority.pem")}
	if err := makeCertificate(certificate, key, t.Authority); err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(t.Authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	t.Client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableCompression: true,
	}}
	t.Service, err = s.startPlain(ctx, t.Client, "https://localhost:", func(address string) *exec.Cmd {
		cmd := exec.Command(binary)
		cmd.Env = []string{"LISTEN=" + address, "CERTIFICATE=" + certificate, "CERTIFICATE_KEY=" + key}
		return cmd
	})
	return t, err
}

// StartForward runs a bare ReverseProxy before the target.
func (s *Stage) StartForward(ctx context.Context, t *Target) (*Service, error) {
	binary, err := s.Build(ctx, "bench/forward")
	if err != nil {
		return nil, err
	}
	return s.startPlain(ctx, http.DefaultClient, "http://127.0.0.1:", func(address string) *exec.Cmd {
		cmd := exec.Command(binary)
		cmd.Env = []string{"LISTEN=" + address, "TARGET=" + t.URL, "AUTHORITY=" + t.Authority, "AUTHORIZATION=Bearer " + proxyValue}
		return cmd
	})
}

// ErrNoNginx is the error of StartNginx if nginx is not installed.
var ErrNoNginx = errors.New("nginx is not installed (scripts/setup nginx does)")

// StartNginx runs nginx before the target. It sets one header, verifies the certificate, keeps connections and has an
// access log.
func (s *Stage) StartNginx(ctx context.Context, t *Target) (*Service, error) {
	binary, err := exec.LookPath("nginx")
	if err != nil {
		if binary, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, ErrNoNginx
		}
	}
	folder := filepath.Join(s.Folder, "nginx")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	user := "" // the right to name one is root's
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	return s.startPlain(ctx, http.DefaultClient, "http://127.0.0.1:", func(address string) *exec.Cmd {
		text := strings.NewReplacer("LISTEN", address, "FOLDER", folder, "AUTHORITY", t.Authority, "VALUE", proxyValue, "USER", user,
			"TARGET", strings.TrimPrefix(t.URL, "https://")).Replace(nginxConfig)
		path := filepath.Join(folder, "nginx.conf")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return exec.Command("false") // which nginx would be without its configuration
		}
		return exec.Command(binary, "-e", filepath.Join(folder, "error.log"), "-p", folder, "-c", path)
	})
}

const nginxConfig = `daemon off;
USER
worker_processes auto;
pid FOLDER/pid;
events { worker_connections 4096; }
http {
  access_log FOLDER/access.log;
  client_body_temp_path FOLDER/body; proxy_temp_path FOLDER/proxy;
  fastcgi_temp_path FOLDER/fastcgi; uwsgi_temp_path FOLDER/uwsgi; scgi_temp_path FOLDER/scgi;
  keepalive_requests 1000000000;
  upstream target { server TARGET; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen LISTEN;
    location / {
      proxy_pass https://target;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host TARGET;
      proxy_set_header Authorization "Bearer VALUE";
      proxy_ssl_name localhost;
      proxy_ssl_server_name on;
      proxy_ssl_verify on;
      proxy_ssl_trusted_certificate AUTHORITY;
    }
  }
}
`

// startPlain runs a program that serves /ready at an address.
func (s *Stage) startPlain(ctx context.Context, client *http.Client, base string, command func(address string) *exec.Cmd) (*Service, error) {
	port, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	svc := &Service{URL: base + strconv.Itoa(port)}
	cmd := command("127.0.0.1:" + strconv.Itoa(port))
	if svc.Process, err = start(cmd, filepath.Join(s.Folder, filepath.Base(cmd.Path)+"-"+strconv.Itoa(port)+".log")); err != nil {
		return nil, err
	}
	s.onClose(svc.stopIfRunning)
	return svc, svc.until(ctx, func() bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, svc.URL+"/ready", nil)
		if err != nil {
			return false
		}
		resp, err := client.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// StartProxy runs the credential proxy with an endpoint that allows the target to pages of ProxyOrigin.
func (s *Stage) StartProxy(ctx context.Context, t *Target) (*Service, error) {
	binary, err := s.Build(ctx, "proxy/cmd/proxy")
	if err != nil {
		return nil, err
	}
	manifests := filepath.Join(s.Folder, "manifests")
	if err := s.writeManifests(manifests, t); err != nil {
		return nil, err
	}
	public, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	internal, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	svc := &Service{
		URL:         "http://127.0.0.1:" + strconv.Itoa(public),
		InternalURL: "http://127.0.0.1:" + strconv.Itoa(internal),
	}
	cmd := exec.Command(binary, "serve")
	cmd.Env = s.environ(Definition{Environ: []string{
		"PROXY_MANIFESTS=" + manifests, "PROXY_ALLOWED_RANGES=127.0.0.0/8,::1/128", "MAX_IN_FLIGHT=0", "PROXY_CLIENT_CONCURRENT=0", // all load has one address
	}}, Database{}, public, internal)
	begin := time.Now()
	if svc.Process, err = start(cmd, filepath.Join(s.Folder, "proxy-"+strconv.Itoa(public)+".log")); err != nil {
		return nil, err
	}
	s.onClose(svc.stopIfRunning)
	err = svc.until(ctx, func() bool { return answers(ctx, svc.InternalURL+"/readyz") })
	svc.Started = time.Since(begin)
	return svc, err
}

// concurrent is how many requests the endpoint allows at a time.
const concurrent = 4096

func (s *Stage) writeManifests(folder string, t *Target) error {
	authority, err := os.ReadFile(t.Authority)
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(t.URL, "https://"), ":")
	indented := "    " + strings.ReplaceAll(strings.TrimSpace(string(authority)), "\n", "\n    ")
	text := fmt.Sprintf(manifests, ProxyProject, ProxyEnvironment, ProxyOrigin, port, ProxyCredential, concurrent, indented, proxyValue, ProxyPlainEnvironment)
	return errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "all.yaml"), []byte(text), 0o600))
}

const manifests = `apiVersion: lectern.dev/v1alpha1
kind: ProxyEndpoint
metadata: {name: bench}
spec:
  project: %[1]s
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
  project: %[1]s
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
  project: %[1]s
  environment: %[2]s
  id: %[5]s
  valueFrom: {secretKeyRef: {name: bench, key: token}}
---
apiVersion: v1
kind: Secret
metadata: {name: bench}
stringData: {token: %[8]s}
`
