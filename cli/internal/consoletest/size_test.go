package consoletest

import (
	"io"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestLongSize limits the compressed size of all scripts of the console together. The script for an OpenID provider
// counts for itself, because a browser loads that script only to talk to a provider.
func TestLongSize(t *testing.T) {
	t.Parallel()
	w := start(t)
	const most, mostOfProvider = 62_000, 12_000
	files, err := filepath.Glob("../../../services/console/internal/site/dist/assets/*.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v: no script", files, err)
	}
	sum, provider := 0, 0
	for _, file := range files {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+"/console/assets/"+path.Base(filepath.ToSlash(file)), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", "gzip")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/javascript") {
			t.Fatalf("%s: %s, %v", r.URL, answer.Status, err)
		}
		if strings.HasPrefix(path.Base(filepath.ToSlash(file)), "provider-") {
			provider = len(body)
		} else {
			sum += len(body)
		}
	}
	t.Logf("%d scripts, %d bytes compressed, and %d for the provider", len(files)-1, sum, provider)
	if sum > most || provider > mostOfProvider || provider == 0 {
		t.Errorf("the scripts have %d bytes and %d for the provider; allowed: %d and %d", sum, provider, most, mostOfProvider)
	}
}
