package routestest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func TestParseRefuses(t *testing.T) {
	for _, in := range []string{
		"api GET / -", "api GET / - 404 x", "none GET / - 404", "api GET / - x", "api GET /{a} - 404", "api GET /{a*0} - 404", "api GET /{a*3 - 404",
	} {
		if rows, err := parse("# head\n" + in + "\n"); err == nil || !strings.Contains(err.Error(), "matrix.txt:2") || len(rows) > 0 {
			t.Errorf("%q: %v, %v", in, rows, err)
		}
	}
}

func TestAsk(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		defer there.Close()
		r, err := http.ReadRequest(bufio.NewReader(there))
		if err != nil {
			t.Error(err)
			return
		}
		got, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		want := []string{"POST", "/a//../%2Faaa", "api.example.com", "k", "id-1", "application/json", body}
		if diff := cmp.Diff(want, []string{r.Method, r.RequestURI, r.Host, r.Header.Get("X-Api-Key"), r.Header.Get("X-Request-Id"), r.Header.Get("Content-Type"), string(got)}); diff != "" {
			t.Error(diff)
		}
		_, _ = io.WriteString(there, "HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\n\r\n")
	}()
	rows, err := parse("api POST /a//../%2F{a*3} - 404\n")
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	resp, err := rows[0].Ask(here, "api.example.com", "k", "id-1")
	if err != nil || resp.StatusCode != http.StatusTeapot {
		t.Errorf("%v, %v", resp, err)
	}
	_ = resp.Body.Close()
}
