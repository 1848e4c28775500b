package read_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// The path of lectern api alone decides whether a project is needed, and the answer how it is printed.
func TestAPIPrintsAnyAnswer(t *testing.T) {
	t.Parallel()
	answers := map[string]string{"/openapi.json": `{"openapi":"3.0.3"}`, "/openapi.yaml": "openapi: 3.0.3\ninfo:\n  title: Lectern\n"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, answers[r.URL.Path]) }))
	defer server.Close()
	environ := map[string]string{"LECTERN_URL": server.URL}
	if r := clitest.Run(t, "", environ, "api", "/openapi.json"); r.Code != shell.ExitOK || r.Out != answers["/openapi.json"]+"\n" {
		t.Errorf("%+v", r)
	}
	if r := clitest.Run(t, "", environ, "api", "/openapi.yaml"); r.Code != shell.ExitOK || r.Out != answers["/openapi.yaml"] {
		t.Errorf("%+v", r)
	}
	if r := clitest.Run(t, "", environ, "api", "/openapi.yaml", "-o", "json"); r.Code != shell.ExitFailure || !strings.Contains(r.Err, "not JSON") {
		t.Errorf("%+v", r)
	}
}

// A compressed answer that is cut off before its first byte is no empty list.
func TestCompressedAnswerIsCutOff(t *testing.T) {
	t.Parallel()
	const entry = `{"entry_id":"e","created_at":"2024-01-01T00:00:00Z","updated_at":"2024-01-01T00:00:00Z","entry_data":"{}"}`
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	body := encoder.EncodeAll([]byte(entry+"\n"), nil)
	for name, length := range map[string]string{"chunked": "", "with a length": fmt.Sprint(len(body))} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.Header().Set("Content-Encoding", "zstd")
			w.Header().Set("Content-Type", "application/x-ndjson")
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			if asked == 1 {
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
			_, _ = w.Write(body)
		}))
		r := clitest.Run(t, "", map[string]string{"LECTERN_URL": server.URL, "LECTERN_PROJECT_ID": "pr_1", "LECTERN_API_KEY": "rk_1"}, "export", "entries", "-o", "ndjson")
		server.Close()
		if r.Code != shell.ExitOK || !strings.Contains(r.Out, `"entry_id":"e"`) || asked != 2 {
			t.Errorf("%s: asked %d times: %+v", name, asked, r)
		}
	}
}
