package consoletest

import (
	"io"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestLongSize limits the compressed size of all scripts of the console together.
func TestLongSize(t *testing.T) {
	t.Parallel()
	w := start(t)
	const most = 60_000
	files, err := filepath.Glob("../../../services/console/internal/site/dist/assets/*.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v: no script", files, err)
	}
	sum := 0
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
		sum += len(body)
	}
	t.Logf("%d scripts, %d bytes compressed", len(files), sum)
	if sum > most {
		t.Errorf("the scripts have %d bytes, which is over %d", sum, most)
	}
}
