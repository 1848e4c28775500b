package try_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/cli/internal/thirdparty"
)

// demoCredential returns the value that the run on folder made up for its third party.
func demoCredential(t *testing.T, folder string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "proxy", "demo.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	value := regexp.MustCompile(`token: (sk_demo_\w+)`).FindSubmatch(text)
	if value == nil {
		t.Fatalf("no value in %s", text)
	}
	return string(value[1])
}

// testProxyFromAll calls the third party of the run on folder through the edge and the proxy.
func testProxyFromAll(t *testing.T, environ map[string]string, folder string) {
	credential := demoCredential(t, folder)
	call := func(t *testing.T, method, target, body string, header map[string]string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequest(method, environ["LECTERN_URL"]+"/proxy?url="+url.QueryEscape(target), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{
			"X-Project-Id": {environ["LECTERN_PROJECT_ID"]}, "X-Environment": {environ["LECTERN_ENVIRONMENT"]},
			"User-Agent": {"test"}, "Accept-Encoding": {"identity"},
		}
		for name, value := range header {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), credential) {
			t.Errorf("the credential came back: %s", text)
		}
		return resp, string(text)
	}
	target := environ["LECTERN_THIRD_PARTY_URL"] + "/v1/charges?limit=3"
	digest := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	key := map[string]string{"X-Proxy-Api-Key": environ["LECTERN_API_KEY"], "Authorization": "Bearer {{ cred_demo }}"}

	t.Run("the credential arrives, and does not come back", func(t *testing.T) {
		resp, text := call(t, http.MethodGet, target, "", key)
		var got thirdparty.Received
		if err := json.Unmarshal([]byte(text), &got); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d, %v: %s", resp.StatusCode, err, text)
		}
		want := thirdparty.Received{
			Method: "GET", Target: "/v1/charges?limit=3", Host: strings.TrimPrefix(environ["LECTERN_THIRD_PARTY_URL"], "http://"),
			Headers:    map[string]string{"Authorization": "Bearer [redacted]", "User-Agent": "test", "Accept-Encoding": "identity"},
			SHA256:     map[string]string{"Authorization": digest("Bearer " + credential), "User-Agent": digest("test"), "Accept-Encoding": digest("identity")},
			BodySHA256: digest(""),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if resp.Header.Get("X-Proxy-Worker-Success") != "true" {
			t.Errorf("%v", resp.Header)
		}
	})
	t.Run("in a body, from a page", func(t *testing.T) {
		resp, text := call(t, http.MethodPost, target, `{"password": "{{ cred_demo }}"}`, map[string]string{
			"Origin": "http://localhost:3000", "Content-Type": "application/json", "X-Use-Body-Templating": "true",
		})
		var got thirdparty.Received
		if err := json.Unmarshal([]byte(text), &got); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d, %v: %s", resp.StatusCode, err, text)
		}
		if want := digest(`{"password": "` + credential + `"}`); got.BodySHA256 != want || got.Body != `{"password": "[redacted]"}` {
			t.Errorf("%+v, want the body's SHA-256 %s", got, want)
		}
		if resp.Header.Get("Access-Control-Allow-Origin") != "http://localhost:3000" {
			t.Errorf("%v", resp.Header)
		}
	})
	for _, tt := range []struct {
		name, target string
		header       map[string]string
		status       int
		code         string
	}{
		{"to other ports of this machine", environ["LECTERN_URL"] + "/docs", key, 403, "destination_not_allowed"},
		{"without key and origin", target, nil, 401, "unauthorized"},
		{"from a page of elsewhere", target, map[string]string{"Origin": "https://evil.example"}, 403, "origin_not_allowed"},
		{"with a key that is none", target, map[string]string{"X-Proxy-Api-Key": "rk_none"}, 401, "unauthorized"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, text := call(t, http.MethodGet, tt.target, "", tt.header)
			if resp.StatusCode != tt.status || !strings.Contains(text, `"code":"`+tt.code+`"`) || resp.Header.Get("X-Proxy-Worker-Success") != "false" {
				t.Errorf("%d %v %s, want %d %s", resp.StatusCode, resp.Header, text, tt.status, tt.code)
			}
		})
	}
	t.Run("explained", func(t *testing.T) {
		r := clitest.Run(t, "", environ, "proxy", "check", "-o", "table", "--manifests", filepath.Join(folder, "proxy"), "--with-key",
			"--header", "Authorization: Bearer {{ cred_demo }}", target)
		if r.Code != shell.ExitOK || !strings.HasPrefix(r.Out, "allowed by endpoint demo\n") || r.Err != "" {
			t.Errorf("%+v", r)
		}
	})
}
