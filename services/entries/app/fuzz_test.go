package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// FuzzRequest sends arbitrary requests with a good key to the whole service. The service answers in JSON, never with an
// internal error, and serves the next request.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ method, target, headers, body string }{
		{"GET", "/projects/pr_1/entries", "", ""},
		{"GET", "/projects/pr_1/entries?limit=2&sort=created_at&direction=asc&updated_after=2022-01-01&updated_before=2023-01-01T00:00:00+01:00", "Accept: application/x-ndjson\r\n", ""},
		{"GET", "/projects/pr_1/entries-page-views?include_urls=true&limit=1000000", "Accept-Encoding: gzip\r\n", ""},
		{"HEAD", "/projects/pr_1/entries/en_0000001", "If-None-Match: *\r\n", ""},
		{"GET", "/projects/pr_1/entries/en_0000001/events?direction=ASC", "X-Request-Id: abc\r\nTraceparent: 00-0-0-0\r\n", ""},
		{"GET", "/projects/pr%2F1/entries/%00?cursor=AAAA", "", ""},
		{"GET", "/projects/pr_1/entries?limit=9223372036854775808&limit=1&%zz=1;a=b", "", ""},
		{"GET", "http://elsewhere/projects/pr_1/entries#x", "Content-Length: 3\r\n", "abc"},
		{"POST", "/projects//entries/../entries", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"},
		{"OPTIONS", "*", "Origin: null\r\nAccess-Control-Request-Method: GET\r\n", ""},
		{"PRI", "* HTTP/2.0\r\n\r\nSM\r\n\r\n", "", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
		{"G\x00T", "\xff\xfe", "X-A: \x7f\r\n B: c\r\n", "\r\n"},
	} {
		f.Add(seed.method, seed.target, seed.headers, seed.body)
	}
	s := servicetest.Start(f, servicetest.NewBacking(f, store.Schema()), Run, common, map[string]string{"LOG_LEVEL": "error", "READ_TIMEOUT": "200ms", "READ_HEADER_TIMEOUT": "200ms", "IDLE_TIMEOUT": "200ms"})
	key := s.Keys.Key(project)
	fill(f, s, project, 30)
	f.Fuzz(func(t *testing.T, method, target, headers, body string) {
		c := faulttest.Dial(t, s.URL)
		defer c.Close()
		c.Say(fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Api-Key: %s\r\n%s\r\n%s", method, target, key, headers, body))
		for {
			status, header, body, err := c.Answer(method)
			if err != nil {
				break
			}
			check(t, status, header, body)
		}
		if a := s.Get(t, key, "/projects/pr_1/entries?limit=1"); a.Status != 200 {
			t.Fatalf("afterwards: %d %s", a.Status, a.Body)
		}
	})
}

// check checks one answer against the rules for every answer.
func check(t *testing.T, status int, header http.Header, body string) {
	t.Helper()
	switch {
	case status == http.StatusNotImplemented || status == http.StatusHTTPVersionNotSupported: // net/http answered
	case status >= 500:
		t.Fatalf("%d %s", status, body)
	case header.Get("X-Request-Id") == "" || body == "": // net/http refused the request, or it is a HEAD
	case header.Get("Content-Encoding") != "":
	case strings.Contains(header.Get("Content-Type"), "ndjson"):
		for dec := json.NewDecoder(strings.NewReader(body)); ; {
			var record map[string]any
			if err := dec.Decode(&record); err == io.EOF {
				return
			} else if err != nil {
				t.Fatalf("%d: a line is not JSON: %v\n%q", status, err, body)
			}
		}
	case !json.Valid([]byte(body)):
		t.Fatalf("%d: no JSON: %q", status, body)
	case status >= 400 && !strings.HasPrefix(body, `{"error":{"code":"`):
		t.Fatalf("%d: not the shape of an error: %q", status, body)
	}
}
