package app_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// clientOver returns a client for one version of HTTP, without TLS.
func clientOver(t *testing.T, version int) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(version == 1)
	protocols.SetUnencryptedHTTP2(version == 2)
	transport := &http.Transport{Protocols: protocols, DisableCompression: true, ExpectContinueTimeout: time.Minute}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 5 * time.Minute}
}

// TestHTTP2IsAskedFor checks that the edge takes no HTTP/2 without TLS unless it is asked to.
func TestHTTP2IsAskedFor(t *testing.T) {
	r := start(t, map[string]string{"EDGE_HTTP2": "false"}, func(routes.Service, http.ResponseWriter, *http.Request) {}, routes.Entries)
	for version, works := range map[int]bool{1: true, 2: false} {
		resp, err := clientOver(t, version).Get(r.url + "/projects/p/entries")
		if (err == nil) != works {
			t.Errorf("HTTP/%d: %v", version, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
	}
}

// TestAnswersAreLeftAlone checks that an answer has exactly the headers of the service.
func TestAnswersAreLeftAlone(t *testing.T) {
	r := start(t, nil, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["X-Request-Id"] = []string{"of-the-service"}
		h["Content-Type"], h["Date"] = nil, nil
		h["X-Own"] = []string{"a", "b"}
		switch r.URL.RawQuery {
		case "none":
			w.WriteHeader(http.StatusNoContent)
		case "same":
			h["Etag"] = []string{`W/"x"`}
			w.WriteHeader(http.StatusNotModified)
		default:
			h["Content-Length"] = []string{"15"}
			_, _ = io.WriteString(w, "<html>text</htm")
		}
	}, routes.Entries)
	for _, tt := range []struct {
		name, method, query string
		status              int
		want                http.Header
		body                string
	}{
		{"a body without a type", "GET", "", 200, http.Header{"Content-Length": {"15"}}, "<html>text</htm"},
		{"HEAD", "HEAD", "", 200, http.Header{"Content-Length": {"15"}}, ""},
		{"no content", "GET", "?none", 204, http.Header{}, ""},
		{"not modified", "GET", "?same", 304, http.Header{"Etag": {`W/"x"`}}, ""},
	} {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprintf("%s over HTTP/%d", tt.name, version), func(t *testing.T) {
				resp, err := clientOver(t, version).Do(newRequest(t, tt.method, r.url+"/projects/p/entries"+tt.query, nil))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				got, err := io.ReadAll(resp.Body)
				tt.want["X-Request-Id"], tt.want["X-Own"] = []string{"of-the-service"}, []string{"a", "b"}
				resp.Header.Del("Date") // the edge's server adds one
				if diff := cmp.Diff(tt.want, resp.Header); resp.StatusCode != tt.status || diff != "" || string(got) != tt.body || err != nil {
					t.Errorf("%d %q, %v; headers (-want +got):\n%s", resp.StatusCode, got, err, diff)
				}
			})
		}
	}
}

// TestTrailersAndInterimAnswers checks that the edge forwards trailers in both directions, and interim responses (1xx).
func TestTrailersAndInterimAnswers(t *testing.T) {
	r := start(t, nil, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		body, err := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprintf(w, "%s %v %s", body, err, r.Trailer.Get("X-Sum"))
		w.Header().Set("X-Sum", "of-the-answer")
	}, routes.Entries, routes.Proxy)
	for _, path := range []string{"/projects/p/entries", "/proxy?url=a"} {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprintf("%s over HTTP/%d", path, version), func(t *testing.T) {
				req := newRequest(t, http.MethodPost, r.url+path, io.MultiReader(strings.NewReader("text")))
				req.Trailer = http.Header{"X-Sum": {"of-the-request"}}
				resp, err := clientOver(t, version).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				got, err := io.ReadAll(resp.Body)
				if string(got) != "text <nil> of-the-request" || err != nil || resp.Trailer.Get("X-Sum") != "of-the-answer" || resp.Header.Get("Link") != "" {
					t.Errorf("%q, %v, trailers %v, headers %v", got, err, resp.Trailer, resp.Header)
				}
				if ids := resp.Header["X-Request-Id"]; len(ids) != 1 {
					t.Errorf("X-Request-Id: %q", ids)
				}
			})
		}
	}
	conn := faulttest.Dial(t, r.url)
	conn.Say("POST /proxy?url=a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	all, _ := io.ReadAll(conn)
	if text := string(all); !strings.HasPrefix(text, "HTTP/1.1 103 Early Hints\r\n") || strings.Count(text, "Link:") != 1 {
		t.Errorf("got %q", text)
	}
}

// TestExpectContinue checks that a client that sends Expect: 100-continue sends its body only if the service reads it.
func TestExpectContinue(t *testing.T) {
	var sent atomic.Int64
	r := start(t, nil, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "url=no" {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		_, _ = io.Copy(w, r.Body)
	}, routes.Entries, routes.Proxy)
	for _, path := range []string{"/projects/p/entries", "/proxy"} {
		for query, want := range map[string]int64{"?url=yes": 4, "?url=no": 0} {
			t.Run(path+query, func(t *testing.T) {
				sent.Store(0)
				req := newRequest(t, http.MethodPost, r.url+path+query, io.TeeReader(strings.NewReader("body"), count{&sent}))
				req.ContentLength = 4
				req.Header.Set("Expect", "100-continue")
				resp, err := clientOver(t, 1).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				got, err := io.ReadAll(resp.Body)
				if int64(len(got)) != want || sent.Load() != want || err != nil {
					t.Errorf("%d: the client sent %d bytes, want %d; answered %q, %v", resp.StatusCode, sent.Load(), want, got, err)
				}
			})
		}
	}
}

type count struct{ n *atomic.Int64 }

func (c count) Write(p []byte) (int, error) { c.n.Add(int64(len(p))); return len(p), nil }

// TestNoHost checks that a service can tell a client that named no host: its own Host is then its internal address.
func TestNoHost(t *testing.T) {
	r := start(t, nil, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%q", r.Header["X-Forwarded-Host"])
	}, routes.Entries)
	conn := faulttest.Dial(t, r.url)
	conn.Say("GET /projects/p/entries HTTP/1.0\r\n\r\n")
	if _, _, got, err := conn.Answer(http.MethodGet); err != nil || got != `[""]` {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestOddRequests checks that unusual requests get an answer and are not reported as faults of the service.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	r := start(t, nil, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s|%s", r.Host, r.Header.Get("Upgrade"))
	}, routes.Entries, routes.Proxy)
	const plain = "GET /projects/p/entries HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
	for _, tt := range []struct {
		name, in string
		status   int
		body     string
	}{
		{"a WebSocket", "GET /projects/p/entries HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 200, "x|websocket"},
		{"an upgrade to HTTP/2", "GET /projects/p/entries HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", 200, "x|h2c"},
		{"an upgrade to no word", "GET /projects/p/entries HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: \x80\r\n\r\n", 400, ""},
		{"CONNECT to a path", "CONNECT /projects/p/entries HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200, ""},
		{"HTTP/1.0 without a host", "GET /projects/p/entries HTTP/1.0\r\n\r\n", 200, ""},
		{"another host in the request line", "GET http://y/projects/p/entries HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200, "y|"},
		{"the key named as a header of the connection", "GET /projects/p/entries HTTP/1.1\r\nHost: x\r\nConnection: close, Lectern-Edge-Key, X-Forwarded-For\r\n\r\n", 200, "x|"},
		{"huge headers", plain + "X-A: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", 431, ""},
		{"a body of two framings", plain + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, "x|"},
		{"two lengths", plain + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400, ""},
		{"a body on GET", plain + "Content-Length: 4\r\n\r\nbody", 200, "x|"},
		{"a folded header", plain + "X-A: a\r\n b\r\n\r\n", 200, "x|"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn := faulttest.Dial(t, r.url)
			conn.Say(tt.in)
			status, _, got, err := conn.Answer(http.MethodGet)
			if err != nil || status != tt.status || tt.body != "" && got != tt.body {
				t.Errorf("got %d %q, %v", status, got, err)
			}
		})
	}
	t.Run("headers that do not come", func(t *testing.T) {
		conn := faulttest.Dial(t, r.url)
		conn.Say("GET /projects/p/entries HTTP/1.1\r\nX-A: ")
		if !conn.Ended() {
			t.Error("the connection stays open")
		}
	})
	if _, metrics := get(t, r.internal+"/metrics"); strings.Contains(metrics, "lectern_edge_unreachable_total{") {
		t.Error("a request of a client counts as a service that cannot be reached")
	}
}

// TestErrorsHaveCORS checks that pages of allowed origins can read the errors that the edge answers by itself. The headers of
// a service's answers are left alone.
func TestErrorsHaveCORS(t *testing.T) {
	served := func(_ routes.Service, w http.ResponseWriter, _ *http.Request) { w.Header().Set("Vary", "Accept") }
	environ := map[string]string{"CORS_ALLOWED_ORIGINS": "https://app.example"}
	r := start(t, environ, served, routes.Entries)
	down := run(t, environ, map[routes.Service]string{routes.Entries: needs.Address(t)})
	off := start(t, nil, served, routes.Entries)
	for _, tt := range []struct {
		name, method, url, origin string
		status                    int
		allow                     string
	}{
		{"no such path", "GET", r.url + "/nowhere", "https://app.example", 404, "https://app.example"},
		{"another origin", "GET", r.url + "/nowhere", "https://evil.example", 404, ""},
		{"no service", "GET", down.url + "/projects/p/entries", "https://app.example", 503, "https://app.example"},
		{"a preflight without a service", "OPTIONS", down.url + "/projects/p/entries", "https://app.example", 204, "https://app.example"},
		{"an answer of the service", "GET", r.url + "/projects/p/entries", "https://app.example", 200, ""},
		{"off", "GET", off.url + "/nowhere", "https://app.example", 404, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := newRequest(t, tt.method, tt.url, nil)
			req.Header.Set("Origin", tt.origin)
			if tt.method == http.MethodOptions {
				req.Header.Set("Access-Control-Request-Method", "GET")
				req.Header.Set("Access-Control-Request-Headers", "x-api-key")
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := resp.Header.Get("Access-Control-Allow-Origin"); resp.StatusCode != tt.status || got != tt.allow {
				t.Errorf("%d, Access-Control-Allow-Origin %q; want %d, %q", resp.StatusCode, got, tt.status, tt.allow)
			}
			if exposed := resp.Header.Get("Access-Control-Expose-Headers"); tt.allow != "" && tt.status != 204 && !strings.Contains(exposed, "Retry-After") {
				t.Errorf("exposed: %q", exposed)
			}
		})
	}
}
