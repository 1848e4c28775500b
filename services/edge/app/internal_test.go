package app_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/routes"
)

// internally runs an edge of the internal paths in front of one server for each data service.
func internally(t *testing.T, h func(service routes.Service, w http.ResponseWriter, r *http.Request)) running {
	t.Helper()
	return start(t, map[string]string{"EDGE_PATHS": "internal"}, h, routes.Experiments, routes.Entries, routes.Region, routes.Embeddables)
}

// TestInternalPaths checks that the internal edge finds the service of every internal path, and no other path.
func TestInternalPaths(t *testing.T) {
	r := internally(t, func(service routes.Service, w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, service, " ", r.Header.Get("X-Api-Key"), " ", r.Header.Get("Lectern-Edge-Key") == key)
	})
	variables := strings.NewReplacer("{projectId}", "p", "{entryId}", "e%2F1", "{contactId}", "c", "{keyId}", "k")
	for _, route := range routes.Inside() {
		if route.Service == routes.All {
			continue
		}
		req := newRequest(t, route.Methods[0], r.url+variables.Replace(route.Template), nil)
		req.Header.Set("X-Api-Key", "the-key")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := string(route.Service) + " the-key true"; resp.StatusCode != 200 || string(got) != want {
			t.Errorf("%s: %d %s, want %s", route.Template, resp.StatusCode, got, want)
		}
	}
	for _, path := range []string{"/projects/p/entries", "/projects/p", "/docs", "/", "/console/", "/proxy", "/internal", "/internal/projects/p/else", "/metrics"} {
		if resp, got := get(t, r.url+path); resp.StatusCode != 404 || !strings.Contains(got, "route_not_found") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, got)
		}
	}
	// The edge of the public paths routes none of them.
	public := start(t, nil, func(routes.Service, http.ResponseWriter, *http.Request) { t.Error("an internal path is public") },
		routes.Entries, routes.Region, routes.Embeddables, routes.Experiments)
	for _, route := range routes.Internal() {
		if resp, _ := get(t, public.url+variables.Replace(route.Template)); resp.StatusCode != 404 {
			t.Errorf("%s: %d", route.Template, resp.StatusCode)
		}
	}
}

// TestRemoveProject checks that a removal goes to each service, region first, and that the counts are summed. A service
// that fails is named with its error, those after it are not asked, and the request may be repeated.
func TestRemoveProject(t *testing.T) {
	const path = "/internal/projects/pr_1"
	var mu sync.Mutex
	var asked []string
	answers := map[routes.Service]func(w http.ResponseWriter){}
	r := internally(t, func(service routes.Service, w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, fmt.Sprint(service, " ", r.Method, " ", r.URL.RequestURI(), " ", r.Header.Get("X-Api-Key"), " ", r.Header.Get("X-Request-Id"), " ", r.Header.Get("Lectern-Edge-Key") == key))
		answers[service](w)
	})
	says := func(status int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	cut := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	good := map[routes.Service]func(http.ResponseWriter){
		routes.Region: says(200, `{"keys":2,"projects":1}`), routes.Entries: says(200, `{"entries":10000,"events":5,"more":true}`),
		routes.Embeddables: says(200, `{"embeddables":3,"versions":4}`), routes.Experiments: says(200, `{"experiments":1,"events":1}`),
	}
	order := []routes.Service{routes.Region, routes.Entries, routes.Embeddables, routes.Experiments}
	unavailable := func(name routes.Service, why string) string {
		return body("unavailable", fmt.Sprintf("The service %s did not remove its part of the project%s. Repeat the request.", name, why), `,"projectId":"pr_1"`)
	}
	fault := func(message string) string { return body("unavailable", message, "") }
	for _, tt := range []struct {
		name    string
		change  routes.Service
		answer  func(http.ResponseWriter)
		status  int
		want    string
		reaches int // how many services are asked
	}{
		{"all", "", nil, 200, `{"embeddables":3,"entries":10000,"events":6,"experiments":1,"keys":2,"more":true,"projects":1,"versions":4}` + "\n", 4},
		{"a refusal", routes.Region, says(401, `{"error":{}}`), 401, `{"error":{}}`, 1},
		{"the keys are not revoked", routes.Region, says(503, `{"error":{}}`), 503, unavailable(routes.Region, ""), 1},
		{"another service refuses", routes.Embeddables, says(401, `{"error":{}}`), 503, unavailable(routes.Embeddables, ""), 3},
		{"a service says why", routes.Entries, says(503, fault("REMOVE_DATABASE_URL is not set.")), 503, unavailable(routes.Entries, ": REMOVE_DATABASE_URL is not set"), 2},
		{"a service says too much", routes.Entries, says(503, fault(strings.Repeat("x", 501))), 503, unavailable(routes.Entries, ""), 2},
		{"an answer that is no count", routes.Entries, says(200, `<html>`), 503, unavailable(routes.Entries, ""), 2},
		{"a broken connection", routes.Experiments, cut, 503, unavailable(routes.Experiments, ""), 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mu.Lock()
			asked = nil
			for name, answer := range good {
				answers[name] = answer
			}
			if tt.change != "" {
				answers[tt.change] = tt.answer
			}
			mu.Unlock()
			req := newRequest(t, http.MethodDelete, r.url+path, nil)
			req.Header.Set("X-Api-Key", "the-key")
			req.Header.Set("X-Request-Id", "abc-1")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != tt.status || string(got) != tt.want {
				t.Errorf("%d %s, want %d %s", resp.StatusCode, got, tt.status, tt.want)
			}
			if resp.Header.Get("Link") != "" {
				t.Error("a Link to a page that is not here")
			}
			if tt.status == 503 && resp.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			var want []string
			for _, name := range order[:tt.reaches] {
				want = append(want, string(name)+" DELETE "+path+" the-key abc-1 true")
			}
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, metrics := get(t, r.internal+"/metrics"); !strings.Contains(metrics, `lectern_edge_unreachable_total{service="experiments"} 1`) {
		t.Errorf("the broken connection is not counted once:\n%s", metrics)
	}
	if resp, _ := get(t, r.url+path); resp.StatusCode != 405 || resp.Header.Get("Allow") != "DELETE" {
		t.Errorf("GET: %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
}

// TestRemoveProjectOfSomeServices checks that a removal skips services that are not installed, and needs region.
func TestRemoveProjectOfSomeServices(t *testing.T) {
	remove := func(services ...routes.Service) (int, string) {
		r := start(t, map[string]string{"EDGE_PATHS": "internal"}, func(service routes.Service, w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{%q:1}`, service)
		}, services...)
		resp, err := http.DefaultClient.Do(newRequest(t, http.MethodDelete, r.url+"/internal/projects/pr_1", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(got)
	}
	if status, got := remove(routes.Experiments, routes.Region); status != 200 || got != `{"experiments":1,"region":1}`+"\n" {
		t.Errorf("two services: %d %s", status, got)
	}
	if status, got := remove(routes.Entries); status != 503 || !strings.Contains(got, "EDGE_SERVICES has no address of region") {
		t.Errorf("without region: %d %s", status, got)
	}
}
