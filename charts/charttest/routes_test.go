package charttest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	networking "k8s.io/api/networking/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/routestest"
)

// rule sends paths of a host to a component.
type rule struct {
	host      string // empty: any
	component string
	matches   func(path string) bool
}

// flavour is one way to write routes.
type flavour struct {
	name  string
	mode  string
	block string // of routing, without its mode
	rules func(t *testing.T, r rendered) []rule
}

func (f flavour) values() string { return fmt.Sprintf("routing: {mode: %s, %s}", f.mode, f.block) }

// flavours are all of them, with the paths that each controller and then the edge send to a component.
func flavours() []flavour {
	const (
		gateway = "gateway: {enabled: true, parentRefs: [{name: g}]}"
		traefik = "traefik: {enabled: true}"
		nginx   = "nginx: {enabled: true}"
		plain   = "ingress: {enabled: true}"
	)
	return []flavour{
		{"gateway", "gateway", gateway, gatewayRules},
		{"traefik", "gateway", traefik, func(t *testing.T, r rendered) []rule {
			return ingressRules(t, r, "traefik", func(i *networking.Ingress, path string) *regexp.Regexp {
				if i.Annotations["traefik.ingress.kubernetes.io/router.pathmatcher"] != "PathRegexp" {
					t.Errorf("%s: paths are not taken for patterns", i.Name)
				}
				return regexp.MustCompile(path) // it anchors nothing
			})
		}},
		{"nginx", "gateway", nginx, func(t *testing.T, r rendered) []rule {
			return ingressRules(t, r, "nginx", func(i *networking.Ingress, path string) *regexp.Regexp {
				if i.Annotations["nginx.ingress.kubernetes.io/use-regex"] != "true" {
					t.Errorf("%s: paths are not taken for patterns", i.Name)
				}
				return regexp.MustCompile("(?i)^" + path) // location ~* "^…"
			})
		}},
		{"edge by HTTPRoute", "edge", gateway, gatewayRules},
		{"edge by Ingress", "edge", plain, prefixRules("")},
		{"edge by traefik", "edge", traefik, prefixRules("traefik")},
		{"edge by nginx", "edge", nginx, prefixRules("nginx")},
	}
}

// prefixRules reads the Ingresses of a class. None of them may have patterns.
func prefixRules(class string) func(*testing.T, rendered) []rule {
	return func(t *testing.T, r rendered) []rule {
		return ingressRules(t, r, class, func(i *networking.Ingress, path string) *regexp.Regexp {
			t.Errorf("%s: %s is a pattern; want prefixes, which every controller knows", i.Name, path)
			return regexp.MustCompile(path)
		})
	}
}

// throughEdge replaces rules that send all paths to the edge by the edge's own rules.
func throughEdge(t *testing.T, r rendered, rules []rule) []rule {
	t.Helper()
	var all []rule
	for _, to := range rules {
		if to.component != "edge" {
			all = append(all, to)
			continue
		}
		if !to.matches("/") || !to.matches("/x//y/../%2e") {
			t.Error("the edge does not get all paths")
		}
		edge := container(t, one[*apps.Deployment](t, r, "lectern-edge"), "edge")
		services, _ := variable(edge, "EDGE_SERVICES")
		exclude, _ := variable(edge, "EDGE_EXCLUDE")
		addresses := map[string]string{}
		for pair := range strings.SplitSeq(services.Value, ",") {
			name, address, _ := strings.Cut(pair, "=")
			host, port, _ := strings.Cut(address, ":")
			if port != "80" {
				t.Errorf("the edge reaches %s at %q; want port 80 of its Service", name, address)
			}
			addresses[name] = host
		}
		for _, route := range routes.Outside() {
			if slices.Contains(strings.Split(exclude.Value, ","), route.Operation) || addresses[string(route.Service)] == "" {
				continue
			}
			all = append(all, rule{to.host, componentOf(addresses[string(route.Service)]), route.Matches})
		}
	}
	return all
}

func componentOf(service string) string { return strings.TrimPrefix(service, "lectern-") }

func gatewayRules(t *testing.T, r rendered) []rule {
	t.Helper()
	var rules []rule
	for _, route := range of[*gateway.HTTPRoute](r) {
		hosts := []gateway.Hostname{""}
		if len(route.Spec.Hostnames) > 0 {
			hosts = route.Spec.Hostnames
		}
		for _, spec := range route.Spec.Rules {
			if len(spec.BackendRefs) != 1 || spec.BackendRefs[0].Port == nil || *spec.BackendRefs[0].Port != 80 {
				t.Errorf("%s: sends to %v; want port 80 of one service", route.Name, spec.BackendRefs)
			}
			if spec.Timeouts == nil || spec.Timeouts.Request == nil || *spec.Timeouts.Request != "0s" {
				t.Errorf("%s: ends streams by a time-out", route.Name)
			}
			for _, m := range spec.Matches {
				matches := func(path string) bool { return strings.HasPrefix(path, *m.Path.Value) }
				if *m.Path.Type == gateway.PathMatchRegularExpression {
					matches = regexp.MustCompile(*m.Path.Value).MatchString
				}
				for _, host := range hosts {
					rules = append(rules, rule{string(host), componentOf(string(spec.BackendRefs[0].Name)), matches})
				}
			}
		}
	}
	return rules
}

func ingressRules(t *testing.T, r rendered, class string, pattern func(*networking.Ingress, string) *regexp.Regexp) []rule {
	t.Helper()
	var rules []rule
	for _, ingress := range of[*networking.Ingress](r) {
		if got := ingress.Spec.IngressClassName; got == nil && class != "" || got != nil && *got != class {
			continue
		}
		for _, spec := range ingress.Spec.Rules {
			for _, path := range spec.HTTP.Paths {
				if !strings.HasPrefix(path.Path, "/") {
					t.Errorf("%s: Kubernetes refuses the path %s", ingress.Name, path.Path)
				}
				if path.Backend.Service.Port.Name != "http" {
					t.Errorf("%s: sends to port %v", ingress.Name, path.Backend.Service.Port)
				}
				matches := func(p string) bool { return strings.HasPrefix(p, path.Path) }
				if *path.PathType == networking.PathTypeImplementationSpecific {
					matches = pattern(ingress, path.Path).MatchString
				}
				rules = append(rules, rule{spec.Host, componentOf(path.Backend.Service.Name), matches})
			}
		}
	}
	return rules
}

// find returns the components that serve the path of a host.
func find(rules []rule, host, path string) []string {
	var found []string
	for _, r := range rules {
		if (r.host == "" || r.host == host) && r.matches(path) {
			found = append(found, r.component)
		}
	}
	return found
}

// TestRoutes checks that each request of the matrix reaches the component in shared/routes, in each flavour. Internal paths, and
// paths that only contain a route, have no route.
func TestRoutes(t *testing.T) {
	rows, err := routestest.Matrix()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			r := render(t, f.values())
			rules := throughEdge(t, r, f.rules(t, r))
			if len(rules) != len(routes.Outside()) {
				t.Errorf("%d paths are routed; want %d", len(rules), len(routes.Outside()))
			}
			for _, row := range rows {
				path, _, _ := strings.Cut(row.Path, "?")
				got := find(rules, "api.example.com", path)
				var want []string
				if r, ok := routes.Find(path); ok {
					want = []string{string(r.Service)}
				} else if r, ok := routes.Find(strings.ToLower(path)); ok && f.name == "nginx" {
					// It has no regard to case; the service that it then asks answers 404 itself.
					want = []string{string(r.Service)}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s goes to %q; want %q", row, got, want)
				}
			}
			paths := []string{"/x/projects/p/entries", "/projects/p/entries/x/y/z", "/openapixyaml", "/x/docs", "/proxy/x", "/xproxy", "/x/proxy", "/x/console/", "/consolex/", "/metrics", "/healthz", "/readyz", "/debug/pprof/"}
			for _, r := range routes.Internal() {
				paths = append(paths, r.Template)
			}
			for _, path := range paths {
				if got := find(rules, "api.example.com", path); len(got) > 0 {
					t.Errorf("%s goes to %q; want nowhere", path, got)
				}
			}
		})
	}
}

// TestRouteChoices checks that values can exclude operations, name hosts, and give the proxy a host of its own.
func TestRouteChoices(t *testing.T) {
	const choices = `
  hosts: [api.example.com]
  exclude: [lookUpProjectRegion, getReference, redirectToConsole]
  proxy: {hosts: [proxy.example.com]}
  gateway: {enabled: true, parentRefs: [{name: g}]}
  traefik: {enabled: true, entryPoints: websecure, tls: [{secretName: tls}]}
  nginx: {enabled: true, tls: [{secretName: tls}]}
`
	modes := map[string]rendered{
		"gateway": render(t, "routing:\n  mode: gateway\n"+choices),
		"edge":    render(t, "routing:\n"+choices+"  ingress: {enabled: true, tls: [{secretName: tls}]}\n"),
	}
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			rules := throughEdge(t, modes[f.mode], f.rules(t, modes[f.mode]))
			for _, tt := range []struct {
				host, path string
				want       []string
			}{
				{"api.example.com", "/projects/p/entries", []string{"entries"}},
				{"api.example.com", "/api/projects/region", nil},
				{"api.example.com", "/docs", nil},
				{"api.example.com", "/docs/start.js", []string{"region"}},
				{"api.example.com", "/proxy", []string{"proxy"}},
				{"api.example.com", "/proxy/for/p/prod/to/https/x.example/a%2Fb", []string{"proxy"}},
				{"api.example.com", "/console/entries/a", []string{"console"}},
				{"api.example.com", "/console", nil},
				{"api.example.com", "/", []string{"region"}},
				{"proxy.example.com", "/", []string{"proxy"}},
				{"proxy.example.com", "/projects/p/entries", []string{"proxy"}},
				{"other.example.com", "/projects/p/entries", nil},
			} {
				if got := find(rules, tt.host, tt.path); !cmp.Equal(got, tt.want) {
					t.Errorf("%s%s goes to %q; want %q", tt.host, tt.path, got, tt.want)
				}
			}
		})
	}
	for _, mode := range modes {
		for _, i := range of[*networking.Ingress](mode) {
			if len(i.Spec.TLS) != 1 {
				t.Errorf("%s ends no TLS", i.Name)
			}
		}
	}
}
