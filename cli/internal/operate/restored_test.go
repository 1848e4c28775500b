package operate_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
)

// TestRestored checks that lectern restored goes on until the service has passed all projects.
func TestRestored(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.RequestURI+" "+string(body))
		next := "null"
		if len(asked) == 1 {
			next = `"pr_1"`
		}
		fmt.Fprintf(w, `{"projects":1000,"next":%s}`, next)
	}))
	t.Cleanup(server.Close)
	environ := map[string]string{"LECTERN_INTERNAL_URL": server.URL, "LECTERN_ADMIN_API_KEY": "ak_1"}
	r := clitest.Run(t, "", environ, "restored", "--to", "2025-01-31T04:00:00Z")
	want := []string{
		`POST /internal/restored {"to":"2025-01-31T04:00:00Z"}`,
		`POST /internal/restored {"to":"2025-01-31T04:00:00Z","after":"pr_1"}`,
	}
	if r.Code != 0 || !slices.Equal(asked, want) || !strings.Contains(r.Err, "2000 projects") {
		t.Errorf("%+v asked %q", r, asked)
	}
}
