package consoletest

import (
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLongSize limits the compressed size of the script that the page loads. The scripts that a browser loads on demand, to
// talk to an OpenID provider, to compare definitions and to make files, count for themselves.
func TestLongSize(t *testing.T) {
	t.Parallel()
	w := start(t)
	const most, mostOnDemand = 64_000, 12_000
	files, err := filepath.Glob("../../../services/console/internal/site/dist/assets/*.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v: no script", files, err)
	}
	get := func(address, encoding, contentType string) []byte {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", encoding)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), contentType) {
			t.Fatalf("%s: %s, %v", r.URL, answer.Status, err)
		}
		return body
	}
	folder := regexp.MustCompile("/console/assets/[^/]+/").FindString(string(get("/console/", "identity", "text/html")))
	sum, onDemand := 0, 0
	for _, file := range files {
		body := get(folder+filepath.Base(file), "gzip", "text/javascript")
		if filepath.Base(file) == "index.js" {
			sum += len(body)
		} else {
			onDemand += len(body)
		}
	}
	t.Logf("%d scripts, %d bytes compressed, and %d on demand", len(files), sum, onDemand)
	if sum > most || onDemand > mostOnDemand || sum == 0 || onDemand == 0 {
		t.Errorf("the scripts have %d bytes and %d on demand; allowed: %d and %d", sum, onDemand, most, mostOnDemand)
	}
}
