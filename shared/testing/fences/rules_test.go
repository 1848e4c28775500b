package fences

import (
	"fmt"
	"slices"
	"strings"
)

// prefix is the start of the import path of every package of the project.
const prefix = "github.com/lectern-dev/lectern/"

// pkg is one package of the project, with the imports of its code. Tests may import any package.
type pkg struct {
	path    string   // without prefix
	imports []string // direct imports, with full paths
	deps    []string // direct and indirect imports, with full paths
}

// violations returns one line for each rule that a package breaks.
func violations(all []pkg) []string {
	var found []string
	http := httpPackages(all)
	for _, p := range all {
		broken := func(rule, imported string) {
			found = append(found, fmt.Sprintf("%s imports %s: %s", p.path, strings.TrimPrefix(imported, prefix), rule))
		}
		for _, i := range p.imports {
			for _, rule := range importRules(p.path, i) {
				broken(rule, i)
			}
		}
		for _, d := range p.deps {
			for _, rule := range dependencyRules(p.path, d) {
				broken(rule, d)
			}
			if own, ours := strings.CutPrefix(d, prefix); ours && isNounOrStore(p.path) && http[own] {
				broken("nouns and stores import nothing of HTTP", d)
			}
		}
	}
	slices.Sort(found)
	return found
}

// importRules returns the rules that path breaks because it imports imported directly.
func importRules(path, imported string) []string {
	var broken []string
	own, ours := strings.CutPrefix(imported, prefix)
	from, to := serviceOf(path), serviceOf(own)
	switch {
	case !ours:
		if layerOf(path) == noun && doesIO(imported) {
			broken = append(broken, "nouns do no I/O")
		}
		if isStore(path) && isHTTP(imported) {
			broken = append(broken, "nouns and stores import nothing of HTTP")
		}
		if isKubernetesAPI(path) && strings.Contains(imported, ".") && !strings.HasPrefix(imported, "k8s.io/apimachinery/") {
			broken = append(broken, "the types of the custom resources import nothing but their specs and Kubernetes' API machinery")
		}
	case isKubernetesAPI(path) && own != "proxy/resource":
		broken = append(broken, "the types of the custom resources import nothing but their specs and Kubernetes' API machinery")
	case path == "proxy/resource":
		broken = append(broken, "the specs of resources import nothing of ours")
	case path == commandTests:
		// runs the commands in tests
	case own == commandLine && path != program:
		broken = append(broken, "nothing but the program imports the grammar of the command line")
	case slices.Contains(commandGroups, own) && path != commandLine:
		broken = append(broken, "groups of commands share what they need in shell, or in a package below them")
	case own == shell && path != program && path != commandLine && path != destination && !slices.Contains(commandGroups, path):
		broken = append(broken, "what does the work of a command knows nothing of the command line")
	case isCopies(path) && !isCopies(own) && own != "client" && (path != copytest || own != "client/clienttest"):
		broken = append(broken, "copies need nothing of ours but the public client")
	case strings.HasPrefix(path, "shared/") && !strings.HasPrefix(own, "shared/"):
		broken = append(broken, "shared imports nothing but shared")
	case !isTestOnly(path) && floorOf(path) > floorOf(own):
		broken = append(broken, "a folder of shared imports only from itself and from the floors below it")
	case from != "" && to != "" && from != to:
		broken = append(broken, "no service imports another")
	case from != "" && from == to && !mayImport(path, own):
		broken = append(broken, "within a service: cmd → app → {api, store} → noun")
	}
	return broken
}

// dependencyRules returns the rules that path breaks because dep is linked into it.
func dependencyRules(path, dep string) []string {
	var broken []string
	own, ours := strings.CutPrefix(dep, prefix)
	if isKubernetes(dep) && !holdsKubernetes(path) {
		broken = append(broken, "only k8s and proxy/kubernetes are built with Kubernetes' packages")
	}
	if !ours {
		return broken
	}
	if own == launcher && path != launcher && !startsLocally(path) {
		broken = append(broken, "only cli, bench and tests start a Postgres")
	}
	if isTestOnly(own) && !isTestOnly(path) {
		broken = append(broken, "made for tests, and nothing else may be built with it")
	}
	if isClusterPolicy(path) && strings.HasPrefix(own, "k8s/") && !isKubernetesAPI(own) && own != "k8s/manifests" && own != "k8s/cluster" {
		broken = append(broken, "the proxy has nothing of k8s but the custom resources and what it decides like the operator")
	}
	if (strings.HasPrefix(path, "cli/") || strings.HasPrefix(path, "client")) && holdsKubernetes(own) {
		broken = append(broken, "cli and client know nothing of Kubernetes")
	}
	return broken
}

// The floors of the command line, from the top: the program, the grammar, the groups of its commands, and what they share.
const (
	program     = "cli/cmd/lectern"
	commandLine = "cli/internal/command"
	destination = "cli/internal/destination"
	shell       = "cli/internal/shell"
)

// commandTests is the package with which tests run the command line.
const commandTests = "cli/internal/clitest"

// copies is the module of the copies of a project.
const copies = "copies"

// copytest is the suite of promises of all copies. Only tests import it.
const copytest = "copies/internal/copytest"

// commandGroups are the packages of the commands, one for each group of the help.
var commandGroups = []string{
	"cli/internal/try", "cli/internal/read", "cli/internal/send", "cli/internal/access", "cli/internal/operate",
}

func isCopies(path string) bool { return path == copies || strings.HasPrefix(path, copies+"/") }

// sharedFloors are the folders of shared that ship, from the top.
var sharedFloors = []string{
	"service", "ingest", "openapi", "auth", "http", "postgres", "redis", "trustedkeys", "limits", "telemetry", "apierr", "routes",
	"egressproxy", "roots", "config", "shutdown", "panics", "wire", "renewal",
}

// floorOf returns the index in [sharedFloors] of the folder of a package. The index is -1 if the package is not in one of
// these folders.
func floorOf(path string) int {
	rest, _ := strings.CutPrefix(path, "shared/")
	folder, _, _ := strings.Cut(rest, "/")
	return slices.Index(sharedFloors, folder)
}

// serviceOf returns the service that a package belongs to, or "".
func serviceOf(path string) string {
	if rest, ok := strings.CutPrefix(path, "services/"); ok {
		name, below, _ := strings.Cut(rest, "/")
		if name == "region" && below == "client" {
			return "" // clients of the service may import it
		}
		return name
	}
	return ""
}

type layer int

const (
	outside layer = iota
	noun
	apiOrStore
	app
	cmd
)

// layerOf returns the layer of a package within its service.
func layerOf(path string) layer {
	service := serviceOf(path)
	if service == "" {
		return outside
	}
	part := strings.TrimPrefix(path, "services/"+service+"/")
	switch first, _, _ := strings.Cut(strings.TrimPrefix(part, "internal/"), "/"); {
	case strings.HasPrefix(part, "cmd/"):
		return cmd
	case first == "app":
		return app
	case first == "api", first == "store":
		return apiOrStore
	case strings.HasPrefix(part, "internal/"):
		return noun
	}
	return outside
}

// mayImport reports whether one package of a service may import another one of it.
func mayImport(path, imported string) bool {
	from, to := layerOf(path), layerOf(imported)
	switch {
	case strings.HasPrefix(imported, path+"/"), strings.HasPrefix(path, imported+"/"):
		return true // a package inside the other, such as its migrations
	case from == cmd:
		return to == app
	case from == noun:
		return to == noun
	}
	return from > to
}

// doesIO reports whether a package reaches files, networks or databases.
func doesIO(imported string) bool {
	for _, p := range []string{
		"net", "net/http", "os", "os/exec", "database/sql", "syscall",
		"github.com/jackc/pgx/", "github.com/redis/", "github.com/gorilla/mux",
	} {
		if imported == p || strings.HasSuffix(p, "/") && strings.HasPrefix(imported, p) {
			return true
		}
	}
	return false
}

// isStore reports whether a package is a service's store.
func isStore(path string) bool {
	service := serviceOf(path)
	store := "services/" + service + "/internal/store"
	return service != "" && (path == store || strings.HasPrefix(path, store+"/"))
}

func isNounOrStore(path string) bool { return layerOf(path) == noun || isStore(path) }

// isHTTP reports whether a package outside of the project implements HTTP.
func isHTTP(imported string) bool {
	return imported == "net/http" || strings.HasPrefix(imported, "net/http/") || imported == "github.com/gorilla/mux"
}

// httpPackages returns our packages that import a package for HTTP themselves. Drivers and telemetry of others also
// link net/http, which does not count.
func httpPackages(all []pkg) map[string]bool {
	found := map[string]bool{}
	for _, p := range all {
		found[p.path] = slices.ContainsFunc(p.imports, isHTTP)
	}
	return found
}

func isKubernetes(path string) bool {
	return strings.HasPrefix(path, "k8s.io/") || strings.HasPrefix(path, "sigs.k8s.io/")
}

// isKubernetesAPI reports whether a package contains the types of the custom resources, which any program may use.
func isKubernetesAPI(path string) bool {
	rest, ok := strings.CutPrefix(path, "k8s/api/")
	return ok && !strings.Contains(rest, "/")
}

func holdsKubernetes(path string) bool {
	return strings.HasPrefix(path, "k8s/") || isClusterPolicy(path)
}

// isClusterPolicy reports whether a package belongs to the proxy that has its policy from a cluster. Its module is inside
// the folder of the proxy, whose own module has no part of Kubernetes.
func isClusterPolicy(path string) bool {
	return path == "proxy/kubernetes" || strings.HasPrefix(path, "proxy/kubernetes/")
}

// launcher is the package that starts a Postgres on this machine, for tests, `lectern up` and the benchmarks.
const launcher = "shared/postgres/pglocal"

// startsLocally reports whether a program that contains the package may start servers on this machine.
func startsLocally(path string) bool {
	return isTestOnly(path) || strings.HasPrefix(path, "cli/") || path == "bench" || strings.HasPrefix(path, "bench/")
}

// isTestOnly reports whether a package serves tests, and must not be compiled into anything that ships.
func isTestOnly(path string) bool {
	return strings.HasPrefix(path, "shared/testing/") || strings.HasPrefix(path, "k8s/testing/") || path == commandTests || path == copytest
}
