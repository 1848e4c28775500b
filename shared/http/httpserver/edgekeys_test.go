package httpserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// TestEdgeKeys checks that the server trusts the forwarding headers of a request with one of the edge's keys, and that
// no handler sees the key.
func TestEdgeKeys(t *testing.T) {
	const one, two = "edge-key-0123456789abcdef", "edge-key-fedcba9876543210"
	report := func(rt *httpapi.Router) {
		rt.Get("/x", func(w http.ResponseWriter, r *http.Request) error {
			info := httpapi.InfoFrom(r.Context())
			return httpapi.WriteBody(w, r, "text/plain", []byte(info.ClientAddress+" "+info.BaseURL()+strings.Join(r.Header["Lectern-Edge-Key"], ",")), "")
		})
	}
	internal := httpapi.NewRouter()
	report(internal)
	both := serve(t, setup{routes: report, internal: internal, environ: map[string]string{"EDGE_KEYS": one + ", " + two}})
	none := serve(t, setup{routes: report})
	const believed, not = "1.2.3.4 https://api.example.com", "127.0.0.1 https://a.example" // anyone may raise the scheme
	for _, tc := range []struct {
		name string
		on   string
		in   []string
		want string
	}{
		{"the first key", both.public, []string{one}, believed},
		{"the second key", both.public, []string{two}, believed},
		{"on the internal address, which is below no public URL", both.internal, []string{one}, "1.2.3.4 "},
		{"no key", both.public, nil, not},
		{"a wrong key", both.public, []string{"edge-key-0123456789abcdeX"}, not},
		{"the beginning of a key", both.public, []string{one[:16]}, not},
		{"both keys in one", both.public, []string{one + ", " + two}, not},
		{"an empty key", both.public, []string{""}, not},
		{"a wrong key beside a good one", both.public, []string{one, "edge-key-0123456789abcdeX"}, not},
		{"a key, and none is set", none.public, []string{one}, not},
		{"an empty key, and none is set", none.public, []string{""}, not},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request := "GET /x HTTP/1.1\r\nConnection: close\r\nHost: a.example\r\n" +
				"X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: api.example.com\r\n"
			for _, key := range tc.in {
				request += "lectern-edge-key: " + key + "\r\n"
			}
			got, err := raw(t, tc.on, request+"\r\n")
			if err != nil {
				t.Fatal(err)
			}
			if _, body, _ := strings.Cut(got, "\r\n\r\n"); body != tc.want {
				t.Errorf("got %q, want %q", body, tc.want)
			}
		})
	}
	t.Run("the edge says that the client named no host", func(t *testing.T) {
		got, err := raw(t, both.public, "GET /x HTTP/1.1\r\nConnection: close\r\nHost: region:8080\r\n"+
			"X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host:\r\nLectern-Edge-Key: "+one+"\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		if _, body, _ := strings.Cut(got, "\r\n\r\n"); body != "1.2.3.4 " {
			t.Errorf("got %q, want no URL", body)
		}
	})
	if log := both.log.String(); strings.Contains(log, one) || strings.Contains(log, two) {
		t.Errorf("the log shows a key: %s", log)
	}
}

// TestGuessedEdgeKeys checks that a client that sends many wrong edge keys gets 429, and that the log says why. Requests
// of the same network with a good key, or without one, are served meanwhile.
func TestGuessedEdgeKeys(t *testing.T) {
	const good = "edge-key-0123456789abcdef"
	s := serve(t, setup{
		routes:  func(rt *httpapi.Router) { rt.Get("/x", func(http.ResponseWriter, *http.Request) error { return nil }) },
		environ: map[string]string{"EDGE_KEYS": good},
	})
	send := func(key string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.public+"/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			r.Header.Set(httpserver.EdgeKeyHeader, key)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	var refused *http.Response
	eventually.True(t, "wrong keys are refused", func() bool {
		for i := range 200 {
			if refused = send(fmt.Sprintf("wrong-key-0123456789-%d", i)); refused.StatusCode != 200 {
				return true
			}
		}
		return false
	})
	if refused.StatusCode != 429 || refused.Header.Get("Retry-After") != "1" {
		t.Errorf("%d %v", refused.StatusCode, refused.Header)
	}
	if resp := send(good); resp.StatusCode != 200 {
		t.Errorf("the edge: %d", resp.StatusCode)
	}
	if resp := send(""); resp.StatusCode != 200 {
		t.Errorf("without a key: %d", resp.StatusCode)
	}
	if !strings.Contains(s.log.String(), "not one of EDGE_KEYS") {
		t.Error("the log does not say why")
	}
}

func TestEdgeKeysAreValidated(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		good     bool
	}{
		{"16 characters", "0123456789abcde~", true},
		{"15 characters", "0123456789abcde", false},
		{"257 characters", strings.Repeat("k", 257), false},
		{"a space", "0123456789 abcdefghi", false},
		{"not ASCII", "0123456789abcdefghiä", false},
		{"a good one and a bad one", "0123456789abcdef,0123", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c httpserver.Config
			err := config.Load(&c, map[string]string{"EDGE_KEYS": tc.in})
			if (err == nil) != tc.good {
				t.Fatalf("good: %v, %v", err == nil, err)
			}
			if err != nil && (!strings.Contains(err.Error(), `EDGE_KEYS is "[redacted]"; allowed: keys of 16 to 256`) || strings.Contains(err.Error(), "0123")) {
				t.Error(err)
			}
		})
	}
}
