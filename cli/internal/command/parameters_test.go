package command_test

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/openapi"
)

// TestFlagsEqualTheDescription checks that the commands for a list have a flag for each parameter of the published description.
// The flag has the name of the parameter. The flags of pages are other ones.
func TestFlagsEqualTheDescription(t *testing.T) {
	t.Parallel()
	type parameter struct {
		Ref    string `json:"$ref"`
		Name   string
		Schema struct {
			Type, Format string
			Enum         []string
		}
	}
	var description struct {
		Paths map[string]struct {
			Get struct{ Parameters []parameter }
		}
		Components struct{ Parameters map[string]parameter }
	}
	if err := json.Unmarshal(openapi.JSON(), &description); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked url.Values
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = r.URL.Query()
		if r.Header.Get("Accept") == "application/json" {
			_, _ = io.WriteString(w, "[]")
		}
	}))
	defer server.Close()
	environ := map[string]string{"LECTERN_URL": server.URL, "LECTERN_PROJECT_ID": "pr_1", "LECTERN_API_KEY": "rk_1"}
	for of, template := range map[string]string{
		"entries":    "/projects/{projectId}/entries",
		"page-views": "/projects/{projectId}/entries-page-views",
	} {
		want, flags := map[string]string{}, []string{}
		for _, p := range description.Paths[template].Get.Parameters {
			if shared, ok := description.Components.Parameters[strings.TrimPrefix(p.Ref, "#/components/parameters/")]; ok {
				p = shared
			}
			if p.Name == "limit" || p.Name == "cursor" {
				continue
			}
			value := cmp.Or(map[string]string{"date-time": "2026-01-01T00:00:00Z"}[p.Schema.Format], map[string]string{"boolean": "true", "integer": "1"}[p.Schema.Type], "x")
			if p.Schema.Enum != nil {
				value = p.Schema.Enum[0]
			}
			want[p.Name] = value
			flag := strings.ReplaceAll(p.Name, "_", "-")
			if flag == "version" { // is a flag of the program
				flag = "version-number"
			}
			flags = append(flags, "--"+flag+"="+value)
		}
		if len(want) == 0 {
			t.Errorf("%s has no parameters", template)
		}
		for _, verb := range []string{"get", "export"} {
			if r := clitest.Run(t, "", environ, slices.Concat([]string{verb, of}, flags)...); r.Code != shell.ExitOK {
				t.Errorf("%s %s: %+v", verb, of, r)
				continue
			}
			got := map[string]string{}
			mu.Lock()
			for name := range asked {
				got[name] = asked.Get(name)
			}
			mu.Unlock()
			delete(got, "limit")
			if !maps.Equal(got, want) {
				t.Errorf("%s %s %q sends %v, want %v", verb, of, flags, got, want)
			}
		}
	}
}
