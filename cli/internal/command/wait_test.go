package command

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/pglocal"
)

// TestLongWaitThroughTheEdge checks that the longest wait of the change feed gets an answer through the edge. This
// includes a connection that was used before.
func TestLongWaitThroughTheEdge(t *testing.T) {
	if os.Getenv("LECTERN_LONG") == "" {
		t.Skip("waits for a minute; set LECTERN_LONG=1")
	}
	folder := filepath.Join(t.TempDir(), ".lectern")
	t.Cleanup(func() {
		until(t, "Postgres is removed", func() bool { return pglocal.Remove(filepath.Join(folder, "postgres")) == nil })
	})
	_, environ, _ := up(t, folder)
	ask := func(query string) (http.Header, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, environ["LECTERN_URL"]+"/projects/"+environ["LECTERN_PROJECT_ID"]+"/entries-changes?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", environ["LECTERN_API_KEY"])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v: %.300s", query, resp.StatusCode, err, body)
		}
		return resp.Header, string(body)
	}
	header, _ := ask("limit=100000")
	for header.Get("Link") != "" {
		header, _ = ask("limit=100000&cursor=" + header.Get("X-Next-Cursor"))
	}
	began := time.Now()
	_, body := ask(fmt.Sprintf("wait=%d&cursor=%s", 60, header.Get("X-Next-Cursor")))
	if took := time.Since(began); took < time.Minute || took > 75*time.Second || body != "[]" && body != "[]\n" {
		t.Errorf("answered after %v: %.300s", took, body)
	}
}
