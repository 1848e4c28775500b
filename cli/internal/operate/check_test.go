package operate_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		service string
		key     string
		want    string // in what is printed
	}{
		{"another server's 404", answer(404, "404 page not found\n"), "entries", "rk_1", "not an answer of this API"},
		{"no such route", answer(404, `{"error":{"code":"route_not_found","message":"No."}}`), "entries", "rk_1", "route_not_found"},
		{"a refused key", answer(401, `{"error":{"code":"unauthorized","message":"No."}}`), "embeddables", "rk_1", "unauthorized"},
		{"entries for nobody's key", answer(200, `[]`), "entries", "", "answered without a key"},
		{"a fault", answer(503, `{"error":{"code":"unavailable","message":"No."}}`), "region", "", "unavailable"},
		{"an internal fault", answer(500, `{"error":{"code":"internal","message":"No."}}`), "proxy", "", "internal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(tt.handler)
			defer server.Close()
			environ := map[string]string{"LECTERN_PROJECT_ID": "pr_1", "LECTERN_API_KEY": tt.key}
			r := clitest.Run(t, "", environ, "check", "--service", tt.service+"="+server.URL)
			if r.Code != shell.ExitFailure || !strings.Contains(r.Out, tt.want) {
				t.Errorf("exit code %d, want %d, and %q in:\n%s%s", r.Code, shell.ExitFailure, tt.want, r.Out, r.Err)
			}
			for line := range strings.Lines(r.Out) {
				if !strings.Contains(line, `"service":"`+tt.service+`"`) {
					t.Errorf("%q: only %s was asked for", line, tt.service)
				}
			}
		})
	}
	// A key in a file is a key: it may not be refused.
	server := httptest.NewServer(answer(401, `{"error":{"code":"unauthorized","message":"No."}}`))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "key")
	environ := map[string]string{"LECTERN_PROJECT_ID": "pr_1", "LECTERN_API_KEY_FILE": file}
	for _, tt := range []struct {
		content string
		code    int
		want    string
	}{{"", shell.ExitUsage, "--api-key-file: the file " + file + " is empty"}, {"rk_1\n", shell.ExitFailure, "unauthorized"}} {
		clitest.Write(t, file, tt.content)
		if r := clitest.Run(t, "", environ, "check", "--service", "embeddables="+server.URL); r.Code != tt.code || !strings.Contains(r.Out+r.Err, tt.want) {
			t.Errorf("%q: %+v; want %d and %q", tt.content, r, tt.code, tt.want)
		}
	}
}

// TestCheckPre checks the output of --pre. Package preflight tests the checks.
func TestCheckPre(t *testing.T) {
	t.Parallel()
	if r := clitest.Run(t, "", nil, "check", "--pre"); r.Code != shell.ExitOK || r.Err != "" || !strings.Contains(r.Out, `"check":"redis","outcome":"not checked","subject":"","message":"set REDIS_URL"`) {
		t.Errorf("without inputs: %+v", r)
	}
	r := clitest.Run(t, "", map[string]string{"REDIS_URL": "redis://u:canary@127.0.0.1:1"}, "check", "--pre", "-o", "table")
	if r.Code != shell.ExitFailure || r.Err != "lectern: checks that failed: 1\n" || strings.Contains(r.Out, "canary") ||
		!regexp.MustCompile(`(?m)^redis +failed +docs/reference/checks.md#redis +REDIS_URL +no log-in: .*; correct the URL, the user, or the network$`).MatchString(r.Out) {
		t.Errorf("without a Redis: %+v", r)
	}
	file := clitest.File(t, "secrets.yaml", `{kind: Secret, metadata: {name: shop-auth}, stringData: {AUTH_DATABASE_URL: "postgres://u:canary@127.0.0.1:1/auth"}}`)
	r = clitest.Run(t, "", nil, "check", "--pre", "--secrets", file, "--release", "shop")
	if r.Code != shell.ExitFailure || r.Err != "lectern: checks that failed: 1\n" || !strings.Contains(r.Out, `"subject":"shop-auth/AUTH_DATABASE_URL"`) || strings.Contains(r.Out, "canary") {
		t.Errorf("a Secret without a Postgres: %+v", r)
	}
}

// TestCheckBoundsAnswers checks that a small compressed answer does not become any amount of memory.
func TestCheckBoundsAnswers(t *testing.T) {
	t.Parallel()
	var member bytes.Buffer
	z, _ := gzip.NewWriterLevel(&member, gzip.BestSpeed)
	_, _ = z.Write(make([]byte, 1<<20))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/projects/pr_1" {
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		for range 65 { // MiB; a gzip file may have several members
			_, _ = w.Write(member.Bytes())
		}
	}))
	defer server.Close()
	r := clitest.Run(t, "", map[string]string{"LECTERN_PROJECT_ID": "pr_1"}, "check", "--timeout", "5m", "--service", "region="+server.URL)
	if r.Code != shell.ExitFailure || !strings.Contains(r.Out, "longer than 64 MiB") {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Err)
	}
}
