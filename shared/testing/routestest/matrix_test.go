package routestest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/routes"
)

// TestMatrixAgreesWithTheTable checks that the matrix agrees with the table of routes, and covers every route of it.
func TestMatrixAgreesWithTheTable(t *testing.T) {
	rows, err := Matrix()
	if err != nil {
		t.Fatal(err)
	}
	served, refused := map[string]bool{}, map[string]bool{}
	seen := map[string]int{}
	for _, row := range rows {
		path, _, _ := strings.Cut(row.Path, "?")
		route, _ := routes.Find(path)
		if route.Service != row.Service {
			t.Errorf("%s: the matrix says %q, the table %q", row, row.Service, route.Service)
		}
		if row.Service == "" && row.Status != http.StatusNotFound {
			t.Errorf("%s: no service has it, so it must be a 404", row)
		}
		if row.Service != "" && (row.Status == http.StatusMethodNotAllowed) == route.Allows(row.Method) {
			t.Errorf("%s: %d, and the table says that the method is allowed: %v", row, row.Status, route.Allows(row.Method))
		}
		if row.Status < 400 {
			served[route.Operation] = true
		}
		refused[route.Operation] = refused[route.Operation] || row.Status >= 400
		key := row.Key + " " + row.Method + " " + row.Path
		if first, ok := seen[key]; ok {
			t.Errorf("%s stands in line %d already", row, first)
		}
		seen[key] = row.Line
	}
	for _, r := range routes.Outside() {
		// The proxy's answers depend on its targets.
		if !served[r.Operation] && r.Service != routes.Proxy {
			t.Errorf("no row is served by %s", r.Operation)
		}
	}
	for _, r := range routes.Internal() {
		path := strings.NewReplacer("{projectId}", "pr_demo", "{keyId}", "key_none", "{entryId}", "ent_none", "{contactId}", "co_none").Replace(r.Template)
		if _, ok := seen[InternalKey+" "+r.Methods[0]+" "+path]; !ok {
			t.Errorf("no row asks for %s from outside", path)
		}
	}
}
