package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/demo"
	"github.com/lectern-dev/lectern/cli/internal/thirdparty"
	"github.com/lectern-dev/lectern/copies/durable"
)

// The environment and the credential's id in the demo's manifests.
const (
	// DemoEnvironment is the environment of the demo's credential, which requests name in X-Environment.
	DemoEnvironment = "prod"
	// DemoCredential is the id of the demo's credential, which placeholders in requests name.
	DemoCredential = "cred_demo"
)

// proxyFolder returns the folder of the credential proxy's manifests: demo.yaml, and the files that the user adds.
func proxyFolder(folder string) string { return filepath.Join(folder, "proxy") }

// startThirdParty starts the demo's third party on a free port of this machine, writes the demo's manifests, and
// returns the third party's URL.
func (r *run) startThirdParty(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("the demo's third party: %w", err)
	}
	server := &http.Server{Handler: thirdparty.New(), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			r.fail(fmt.Errorf("the demo's third party: %w", err))
		}
	}()
	r.parts.AddFunc(func() { _ = server.Close() }) // the proxy, which calls it, has stopped
	if err := r.writeDemoManifests(l.Addr().(*net.TCPAddr).Port); err != nil {
		return "", fmt.Errorf("the demo's manifests: %w", err)
	}
	return baseURL(l), nil
}

// writeDemoManifests writes rules that let the demo project use one credential, only for the server on port of this
// machine. Each call replaces demo.yaml, and generates a new value of the credential.
func (r *run) writeDemoManifests(port int) error {
	if err := os.MkdirAll(proxyFolder(r.Folder), 0o700); err != nil {
		return err
	}
	text := fmt.Sprintf(demoManifests, demo.ProjectID, DemoEnvironment, port, DemoCredential, "sk_demo_"+rand.Text())
	return durable.WriteFile(filepath.Join(proxyFolder(r.Folder), "demo.yaml"), []byte(text))
}

const demoManifests = `# The demo's rules of the credential proxy. lectern up writes this file at each start, as the demo's third
# party has another port then. Put rules of your own into files next to it: they apply within a second.

# With an API key of the project that has the scope proxy:use, from anywhere.
apiVersion: lectern.dev/v1alpha1
kind: ProxyEndpoint
metadata: {name: demo}
spec:
  projectId: %[1]s
  environment: %[2]s
  access: Key
  destinations: [{pattern: 'http://127\.0\.0\.1:%[3]d/.*'}]
  ports: [%[3]d]
  allowHTTP: true                    # on this machine only: elsewhere a credential would be readable on the way
  credentials: [%[4]s]
---
# Without a key, from pages that this machine serves.
apiVersion: lectern.dev/v1alpha1
kind: ProxyEndpoint
metadata: {name: demo-page}
spec:
  projectId: %[1]s
  environment: %[2]s
  access: Origin
  origins: [{pattern: 'http://(localhost|127\.0\.0\.1)(:\d+)?'}]
  destinations: [{pattern: 'http://127\.0\.0\.1:%[3]d/.*'}]
  ports: [%[3]d]
  allowHTTP: true
  credentials: [%[4]s]
---
apiVersion: lectern.dev/v1alpha1
kind: Credential
metadata: {name: demo}
spec:
  projectId: %[1]s
  environment: %[2]s
  id: %[4]s
  valueFrom: {secretKeyRef: {name: demo, key: token}}
---
apiVersion: v1
kind: Secret
metadata: {name: demo}
stringData: {token: %[5]s}
`

// proxyEnviron sets the credential proxy's variables in environ: the folder of manifests, and this machine as an
// allowed target.
func (r *run) proxyEnviron(environ map[string]string) {
	environ["PROXY_MANIFESTS"] = proxyFolder(r.Folder)
	// The third party is on this machine, which the proxy must not reach in production.
	const loopback = "127.0.0.0/8"
	if ranges := environ["PROXY_ALLOWED_RANGES"]; ranges != "" {
		environ["PROXY_ALLOWED_RANGES"] = ranges + "," + loopback
		return
	}
	environ["PROXY_ALLOWED_RANGES"] = loopback
}
