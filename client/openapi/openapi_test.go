package openapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "github.com/oapi-codegen/runtime" // generated clients import it
	_ "go.yaml.in/yaml/v3"

	proxy "github.com/lectern-dev/lectern/proxy/app"
	embeddables "github.com/lectern-dev/lectern/services/embeddables/app"
	entries "github.com/lectern-dev/lectern/services/entries/app"
	experiments "github.com/lectern-dev/lectern/services/experiments/app"
	region "github.com/lectern-dev/lectern/services/region/app"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/openapitest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestLongGeneratedClients generates clients for Go and TypeScript from the published description, compiles them, and
// calls every operation of running services.
func TestLongGeneratedClients(t *testing.T) {
	needs.Long(t)
	d, err := openapitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, item := range d.Paths.Map() {
		for _, op := range item.Operations() {
			want = append(want, op.OperationID)
		}
	}
	slices.Sort(want)
	environ := startAll(t)
	description, err := filepath.Abs("../../shared/openapi/lectern.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, makeAndCall := range map[string]func(t *testing.T) string{
		"Go by oapi-codegen": func(t *testing.T) string {
			const folder = "testdata/go"
			run(t, folder, nil, "go", "tool", "oapi-codegen", "-config", "oapi-codegen.yaml", description)
			return run(t, ".", environ, "go", "run", "./"+folder)
		},
		"TypeScript by openapi-typescript": func(t *testing.T) string {
			const folder = "testdata/typescript"
			needs.Node(t)
			run(t, folder, nil, "../../../../scripts/npm-ci", ".")
			run(t, folder, nil, "npx", "openapi-typescript", description, "--output", "generated.d.ts")
			run(t, folder, nil, "npx", "tsc", "--project", ".")
			return run(t, folder, environ, "node", "call.js")
		},
	} {
		t.Run(name, func(t *testing.T) {
			called := strings.Fields(makeAndCall(t))
			slices.Sort(called)
			if diff := cmp.Diff(want, slices.Compact(called)); diff != "" {
				t.Errorf("operations (-described +called):\n%s", diff)
			}
		})
	}
}

// run runs a program in a folder and returns its output.
func run(t *testing.T, folder string, environ []string, program string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), environ...)
	cmd.Env = append(cmd.Env, "GOWORK=off")
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(arguments, " "), err, &out, &complaints)
	}
	return out.String()
}

type object = servicetest.Object

// startAll starts every service with one record of each kind, and a router in front of them that routes like the ingress.
// It returns the clients' settings as environment variables.
func startAll(t *testing.T) []string {
	t.Helper()
	first := servicetest.NewBacking(t, blank("entries"))
	addresses := map[routes.Service]string{}

	e := servicetest.Start(t, first, entries.Run, func(c *entries.Config) *service.Config { return &c.Config }, migrating)
	addresses[routes.Entries] = e.URL
	for n := 1; n <= 2; n++ {
		e.MustIngest(t, "entries", object{
			"entry_id": fmt.Sprintf("en_%d", n), "group_id": "gr_1", "project_id": "pr_demo", "embeddable_id": "emb_1", "contact_id": "co_1",
			"created_at": "2022-01-01T00:00:00Z", "updated_at": fmt.Sprintf("2022-01-0%dT00:00:00Z", n), "entry_data": fmt.Sprintf(`{"n":%d}`, n),
		})
	}
	e.MustIngest(t, "events", object{
		"entry_id": "en_1", "contact_id": "co_1", "project_id": "pr_demo", "group_id": "gr_1", "embeddable_id": "emb_1",
		"timestamp": "2022-01-01T00:00:00Z", "page_id": "pg_1", "page_key": "one", "page_index": 0,
		"event_type": "flowpage.viewed", "view_type": "flowpage",
	})

	m := servicetest.Start(t, nextTo(t, first, "embeddables"), embeddables.Run, func(c *embeddables.Config) *service.Config { return &c.Config }, migrating)
	addresses[routes.Embeddables] = m.URL
	m.MustIngest(t, "embeddables", object{"embeddable_id": "emb_1", "title": "One", "group_id": "gr_1", "project_id": "pr_demo", "json_string_prod": "{}"})
	m.MustIngest(t, "embeddable-versions", object{"embeddable_id": "emb_1", "project_id": "pr_demo", "version_number": 1, "saved_at": "2022-01-01T00:00:00Z", "json_string": "{}"})

	x := servicetest.Start(t, nextTo(t, first, "experiments"), experiments.Run, func(c *experiments.Config) *service.Config { return &c.Config }, migrating)
	addresses[routes.Experiments] = x.URL
	x.MustIngest(t, "experiments", object{
		"project_id": "pr_demo", "id": "exp_1", "experimentId": "exp_1", "flowId": "emb_1", "name": "One", "hypothesis": nil,
		"impact_metrics": []string{"m"}, "no_impact_metrics": []string{}, "created_at": "2022-01-01T00:00:00Z", "updated_at": "2022-01-01T00:00:00Z",
		"observations": nil, "outcome": nil, "attachments": "[]", "variants": "{}", "flow_ids": []string{"emb_1"},
		"paused_showing_variant": nil, "winner_variant": nil, "status": "running",
	})

	r := servicetest.Start(t, nextTo(t, first, "region"), region.Run, func(c *region.Config) *service.Config { return &c.Config }, migrating)
	addresses[routes.Region] = r.URL
	r.MustIngest(t, "projects", object{"id": "pr_demo", "title": "Demo", "region": "Europe/Berlin"})

	target := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(target.Close)
	addresses[routes.Proxy] = startProxy(t, target.URL)

	front := httptest.NewServer(routing(addresses))
	t.Cleanup(front.Close)
	return []string{
		"LECTERN_URL=" + front.URL, "LECTERN_API_KEY=" + first.Keys.Key("pr_demo"),
		"LECTERN_INTERNAL_API_KEY=" + servicetest.InternalKey, "TARGET_URL=" + target.URL + "/echo",
	}
}

// migrating is the environment of a service that migrates its own database.
var migrating = map[string]string{"MIGRATE_ON_START": "true"}

// blank returns the schema of a database without tables.
func blank(name string) migrate.Schema {
	return migrate.Schema{
		Name:       name + "_blank",
		Migrations: fstest.MapFS{"0001_nothing.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")}},
	}
}

// nextTo returns the backing of another service: its own database, and the keys and Redis of first.
func nextTo(t *testing.T, first *servicetest.Backing, name string) *servicetest.Backing {
	t.Helper()
	b := *first
	b.DB = pgtest.Database(t, blank(name))
	return &b
}

// echo answers with the method and the body of the request.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "%s %s", r.Method, body)
}

// startProxy starts the credential proxy with an endpoint for the target, and returns its address.
func startProxy(t *testing.T, target string) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	// The target echoes the request, so the endpoint does not scrub the answer.
	manifests := fmt.Sprintf(`
apiVersion: lectern.dev/v1alpha1
kind: ProxyEndpoint
metadata: {name: echo}
spec:
  projectId: pr_demo
  environment: prod
  origins: [{domain: example.com}]
  destinations: [{pattern: 'http://127\.0\.0\.1:%s/echo'}]
  allowHTTP: true
  ports: [%s]
  credentials: [cred_echo]
  scrub: {disabled: true}
---
apiVersion: lectern.dev/v1alpha1
kind: Credential
metadata: {name: echo}
spec:
  projectId: pr_demo
  environment: prod
  id: cred_echo
  valueFrom: {secretKeyRef: {name: echo, key: value}}
---
apiVersion: v1
kind: Secret
metadata: {name: echo}
stringData: {value: a-credential}
`, u.Port(), u.Port())
	if err := os.WriteFile(filepath.Join(folder, "echo.yaml"), []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	var cfg proxy.Config
	err = config.Load(&cfg, map[string]string{
		"LISTEN_PUBLIC": "127.0.0.1:0", "LISTEN_INTERNAL": "127.0.0.1:0", "DRAIN_DELAY": "0s",
		"PROXY_MANIFESTS": folder, "PROXY_ALLOWED_RANGES": "127.0.0.0/8",
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.LogOutput = io.Discard
	ready := make(chan string, 1)
	cfg.HTTP.Ready = func(public, _ net.Addr) { ready <- "http://" + public.String() }
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- proxy.Run(ctx, cfg) }()
	select {
	case address := <-ready:
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Errorf("the proxy ended with %v", err)
			}
		})
		return address
	case err := <-ended:
		stop()
		t.Fatalf("the proxy did not start: %v", err)
		return ""
	}
}

// routing forwards each path to its service by the table of routes.
func routing(addresses map[routes.Service]string) http.Handler {
	return &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		route, _ := routes.Find(p.In.URL.EscapedPath())
		u, err := url.Parse(addresses[route.Service])
		if err == nil {
			p.Out.URL.Scheme, p.Out.URL.Host = u.Scheme, u.Host
		}
		p.Out.URL.RawQuery = p.In.URL.RawQuery
	}}
}
