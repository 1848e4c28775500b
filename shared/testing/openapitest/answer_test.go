package openapitest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/openapitest"
)

const (
	entry  = `{"entry_id":"e","group_id":"g","project_id":"p","embeddable_id":"m","contact_id":"c","created_at":"2022-01-01T00:00:00Z","updated_at":"2022-01-01T00:00:00.25Z","entry_data":"{}"}`
	noSuch = `{"error":{"code":"entry_not_found","message":"m"},"entryId":"e"}`
)

func TestFaults(t *testing.T) {
	d := document(t)
	usual := func(more ...string) http.Header {
		h := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"id"}}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = []string{more[i+1]}
		}
		return h
	}
	const one, list = "/projects/p/entries/e", "/projects/p/entries?limit=1"
	for _, tc := range []struct {
		name string
		in   openapitest.Answer
		want string // a part of the fault; empty: none
	}{
		{"a record", openapitest.Answer{"GET", one, 200, usual(), []byte(entry), false}, ""},
		{"HEAD", openapitest.Answer{"HEAD", one, 200, usual(), nil, false}, ""},
		{"HEAD with a body", openapitest.Answer{"HEAD", one, 200, usual(), []byte(entry), false}, "a body"},
		{"a list", openapitest.Answer{"GET", list, 200, usual("Link", `<http://h/p?cursor=a>; rel="next"`, "X-Next-Cursor", "a"), []byte("[" + entry + "," + entry + "]"), false}, ""},
		{"an empty list", openapitest.Answer{"GET", list, 200, usual(), []byte("[]"), false}, ""},
		{"null for a list", openapitest.Answer{"GET", list, 200, usual(), []byte("null"), false}, "not nullable"},
		{"lines", openapitest.Answer{"GET", list, 200, usual("Content-Type", "application/x-ndjson"), []byte(entry + "\n" + entry + "\n"), false}, ""},
		{"no lines", openapitest.Answer{"GET", list, 200, usual("Content-Type", "application/x-ndjson"), nil, false}, ""},
		{"a bad line", openapitest.Answer{"GET", list, 200, usual("Content-Type", "application/x-ndjson"), []byte(entry + "\n{}\n"), false}, "line 2"},
		{"a missing field", openapitest.Answer{"GET", one, 200, usual(), []byte(strings.Replace(entry, `"entry_id":"e",`, "", 1)), false}, `"entry_id" is missing`},
		{"a field too many", openapitest.Answer{"GET", one, 200, usual(), []byte(strings.Replace(entry, `{`, `{"x":1,`, 1)), false}, `"x" is unsupported`},
		{"a null", openapitest.Answer{"GET", one, 200, usual(), []byte(strings.Replace(entry, `"e"`, `null`, 1)), false}, "not nullable"},
		{"no time", openapitest.Answer{"GET", one, 200, usual(), []byte(strings.Replace(entry, `2022-01-01T00:00:00Z`, `yesterday`, 1)), false}, "created_at"},
		{"cut short", openapitest.Answer{"GET", one, 200, usual(), []byte(entry[:50]), false}, "not JSON"},
		{"broken off", openapitest.Answer{"GET", one, 200, usual(), []byte(entry[:50]), true}, ""},
		{"no request id", openapitest.Answer{"GET", one, 200, http.Header{"Content-Type": {"application/json"}}, []byte(entry), false}, "X-Request-Id is missing"},
		{"a header too many", openapitest.Answer{"GET", one, 200, usual("X-Powered-By", "x"), []byte(entry), false}, "X-Powered-By is not described"},
		{"a wrong header", openapitest.Answer{"GET", one, 200, usual("Etag", "x"), []byte(entry), false}, "Etag"},
		{"a record's cursor", openapitest.Answer{"GET", one, 200, usual("X-Next-Cursor", "a"), []byte(entry), false}, "X-Next-Cursor is not described"},
		{"HTML", openapitest.Answer{"GET", one, 200, usual("Content-Type", "text/html"), []byte(entry), false}, "text/html"},
		{"another status", openapitest.Answer{"GET", one, 201, usual(), []byte(entry), false}, "201"},
		{"not modified", openapitest.Answer{"GET", one, 304, http.Header{"X-Request-Id": {"id"}, "Etag": {`W/"x"`}}, nil, false}, ""},
		{"an error", openapitest.Answer{"GET", one, 404, usual(), []byte(noSuch), false}, ""},
		{"an error of a list", openapitest.Answer{"GET", list, 404, usual(), []byte(noSuch), false}, "404"},
		{"another code", openapitest.Answer{"GET", one, 404, usual(), []byte(strings.Replace(noSuch, "entry_not_found", "not_found", 1)), false}, "code"},
		{"an error without its field", openapitest.Answer{"GET", one, 404, usual(), []byte(`{"error":{"code":"entry_not_found","message":"m"}}`), false}, "entryId"},
		{"no challenge", openapitest.Answer{"GET", one, 401, usual(), []byte(`{"error":{"code":"unauthorized","message":"m"},"projectId":"p"}`), false}, "Www-Authenticate is missing"},
		{"no time to wait", openapitest.Answer{"GET", one, 503, usual("Retry-After", "soon"), []byte(`{"error":{"code":"unavailable","message":"m"},"projectId":"p"}`), false}, "Retry-After"},
		{"no such path", openapitest.Answer{"GET", "/nope", 404, usual(), []byte(`{"error":{"code":"route_not_found","message":"m"}}`), false}, ""},
		{"no such path, answered", openapitest.Answer{"GET", "/nope", 200, usual(), []byte(`{}`), false}, "not an operation"},
		{"no such path, another code", openapitest.Answer{"GET", "/nope", 404, usual(), []byte(`{"error":{"code":"entry_not_found","message":"m"}}`), false}, "route_not_found"},
		{"no such method", openapitest.Answer{"POST", one, 405, usual("Allow", "GET, HEAD"), []byte(`{"error":{"code":"method_not_allowed","message":"m"}}`), false}, ""},
		{"no such method, and no word on which", openapitest.Answer{"POST", one, 405, usual(), []byte(`{"error":{"code":"method_not_allowed","message":"m"}}`), false}, "Allow"},
		{"a target's answer", openapitest.Answer{"GET", "/proxy?url=x", 418, http.Header{"X-Proxy-Worker-Success": {"true"}, "X-Any": {"x"}}, []byte("tea"), false}, ""},
		{"a proxy's own answer", openapitest.Answer{"GET", "/proxy?url=x", 418, usual("X-Proxy-Worker-Success", "false"), []byte("tea"), false}, "418"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := strings.Join(d.Faults(tc.in), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("faults: %s; want %q", got, tc.want)
			}
		})
	}
}
