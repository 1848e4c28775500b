package fences

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestViolations(t *testing.T) {
	in := func(path string, imports ...string) pkg {
		for i, p := range imports {
			if !strings.Contains(p, ".") && strings.Contains(p, "/") && !strings.HasPrefix(p, "net/") {
				imports[i] = prefix + p
			}
		}
		return pkg{path: path, imports: imports, deps: imports}
	}
	for _, tc := range []struct {
		name string
		in   pkg
		want string // the rule that is broken; empty: none
	}{
		{"main of a service", in("services/entries/cmd/entries", "services/entries/app", "shared/config"), ""},
		{"main around app", in("services/entries/cmd/entries", "services/entries/internal/store"), "cmd → app"},
		{"app", in("services/entries/app", "services/entries/internal/api", "services/entries/internal/store", "services/entries/internal/entry"), ""},
		{"api", in("services/entries/internal/api", "services/entries/internal/entry", "net/http"), ""},
		{"api on store", in("services/entries/internal/api", "services/entries/internal/store"), "cmd → app"},
		{"store on api", in("services/entries/internal/store", "services/entries/internal/api"), "cmd → app"},
		{"store and its migrations", in("services/entries/internal/store", "services/entries/internal/store/migrations"), ""},
		{"noun on store", in("services/entries/internal/entry", "services/entries/internal/store"), "cmd → app"},
		{"noun on noun", in("services/entries/internal/entry", "services/entries/internal/event"), ""},
		{"noun on HTTP", in("services/entries/internal/entry", "net/http"), "nouns do no I/O"},
		{"noun on a driver", in("services/entries/internal/entry", "github.com/jackc/pgx/v5"), "nouns do no I/O"},
		{"store on HTTP", in("services/entries/internal/store", "net/http"), "nothing of HTTP"},
		{"store on a router", in("services/entries/internal/store", "github.com/gorilla/mux"), "nothing of HTTP"},
		{"store on a driver", in("services/entries/internal/store", "github.com/jackc/pgx/v5"), ""},
		{"noun on time", in("services/entries/internal/entry", "time"), ""},
		{"a service on another", in("services/entries/app", "services/region/app"), "no service imports another"},
		{"a service on region's client", in("services/entries/app", "services/region/client"), ""},
		{"shared on a service", in("shared/httpapi", "services/entries/app"), "shared imports nothing but shared"},
		{"shared on shared", in("shared/httpapi", "shared/apierr"), ""},
		{"service built with test servers", in("services/entries/app", "shared/testing/pgtest"), "made for tests"},
		{"shared built with test servers", in("shared/pgdb", "shared/testing/redistest"), "made for tests"},
		{"test servers on each other", in("shared/testing/authtest", "shared/testing/pgtest"), ""},
		{"the command line on the launcher of Postgres", in("cli/internal/local", "shared/testing/pglocal"), ""},
		{"a service on the launcher of Postgres", in("services/entries/app", "shared/testing/pglocal"), "made for tests"},
		{"the command line on a test's servers", in("cli/internal/local", "shared/testing/redistest"), "made for tests"},
		{"Kubernetes in a service", in("services/entries/app", "k8s.io/api/core/v1"), "Kubernetes' packages"},
		{"controller-runtime in the proxy", in("proxy/app", "sigs.k8s.io/controller-runtime"), "Kubernetes' packages"},
		{"Kubernetes where it belongs", in("k8s/proxysource", "k8s.io/client-go"), ""},
		{"Kubernetes in k8s", in("k8s/operator", "k8s.io/client-go"), ""},
		{"the operator built with test servers", in("k8s/operator", "k8s/internal/kubetest"), "made for tests"},
		{"test servers of Kubernetes on others", in("k8s/internal/kubetest", "shared/testing/pgtest"), ""},
		{"types of the custom resources", in("k8s/api/v1alpha1", "k8s.io/apimachinery/pkg/runtime", "time"), ""},
		{"types of the custom resources on a client", in("k8s/api/v1alpha1", "k8s.io/client-go/rest"), "API machinery"},
		{"types of the custom resources on ours", in("k8s/api/v1alpha1", "shared/auth"), "API machinery"},
		{"what is generated from them", in("k8s/api/v1alpha1/applyconfiguration", "k8s.io/client-go/applyconfigurations/meta/v1"), ""},
		{"cli on k8s", in("cli/internal/command", "k8s/api/v1alpha1"), "know nothing of Kubernetes"},
		{"cli on the proxy's store", in("cli/internal/command", "k8s/proxysource"), "know nothing of Kubernetes"},
		{"cli on services", in("cli/internal/local", "services/entries/app", "services/region/app"), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := violations([]pkg{tc.in})
			if tc.want == "" {
				if diff := cmp.Diff([]string(nil), got); diff != "" {
					t.Errorf("violations (-want +got):\n%s", diff)
				}
				return
			}
			if len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Errorf("violations = %q, want one with %q", got, tc.want)
			}
		})
	}
}

// TestNounsAndStoresReachNoHTTP checks that a noun or a store does not reach HTTP through another package of the
// project.
func TestNounsAndStoresReachNoHTTP(t *testing.T) {
	all := []pkg{
		{path: "shared/httpapi", imports: []string{"net/http"}},
		{path: "shared/wire"},
		{path: "services/entries/internal/api", imports: []string{prefix + "shared/httpapi"}, deps: []string{prefix + "shared/httpapi"}},
		{path: "services/entries/internal/entry", deps: []string{prefix + "shared/wire", prefix + "shared/httpapi"}},
		{path: "services/entries/internal/store", deps: []string{prefix + "shared/wire", prefix + "shared/httpapi"}},
	}
	want := []string{
		"services/entries/internal/entry imports shared/httpapi: nouns and stores import nothing of HTTP",
		"services/entries/internal/store imports shared/httpapi: nouns and stores import nothing of HTTP",
	}
	if diff := cmp.Diff(want, violations(all)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestWorkspaceKeepsItsFences(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	all := workspace(t, root)
	if len(all) < 10 {
		t.Fatalf("only %d packages were found", len(all))
	}
	for _, v := range violations(all) {
		t.Error(v)
	}
}

// workspace returns every package of every module of the workspace at root.
func workspace(t *testing.T, root string) []pkg {
	t.Helper()
	var work struct{ Use []struct{ DiskPath string } }
	if err := json.Unmarshal(run(t, root, "work", "edit", "-json"), &work); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"list", "-json=ImportPath,Imports,Deps"}
	for _, use := range work.Use {
		arguments = append(arguments, use.DiskPath+"/...")
	}
	var all []pkg
	for listed := json.NewDecoder(bytes.NewReader(run(t, root, arguments...))); ; {
		var p struct {
			ImportPath    string
			Imports, Deps []string
		}
		if err := listed.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, pkg{path: strings.TrimPrefix(p.ImportPath, prefix), imports: p.Imports, deps: p.Deps})
	}
}

func run(t *testing.T, folder string, arguments ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", arguments...)
	cmd.Dir = folder
	cmd.Env = append(cmd.Environ(), "GOWORK=") // use the workspace, even if this module is tested alone
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go %s: %v: %s", arguments[0], err, exit.Stderr)
		}
		t.Fatal(err)
	}
	return out
}
