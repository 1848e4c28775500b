package app

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/openapi"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestDescriptionHolds(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.CheckDescription(t, routes.Region, s.Keys.Key("pr_demo"))
}

func TestDescription(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, tt := range []struct {
		path, contentType, cache string
		want                     []byte
	}{
		{"/openapi.yaml", "application/yaml", "public, no-cache", openapi.YAML()},
		{"/openapi.json", "application/json", "public, no-cache", openapi.JSON()},
		{"/docs", "text/html; charset=utf-8", "public, no-cache", openapi.Page()},
		{"/docs/errors", "text/html; charset=utf-8", "public, no-cache", openapi.ErrorsPage()},
		{"/docs/start.js", "text/javascript; charset=utf-8", "public, no-cache", asset(t, "start.js")},
		{"/docs/scalar-1.72.1.js", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", asset(t, "scalar-1.72.1.js")},
	} {
		t.Run(tt.path, func(t *testing.T) {
			a := s.Get(t, "", tt.path)
			if a.Status != 200 || !bytes.Equal(a.Body, tt.want) {
				t.Fatalf("%d, %d bytes of %d", a.Status, len(a.Body), len(tt.want))
			}
			if got := a.Header.Get("Content-Type"); got != tt.contentType {
				t.Errorf("Content-Type %q", got)
			}
			if got := a.Header.Get("Cache-Control"); got != tt.cache {
				t.Errorf("Cache-Control %q", got)
			}
			again := s.Do(t, servicetest.Request{Path: tt.path, Headers: map[string]string{"If-None-Match": a.Header.Get("ETag")}})
			if again.Status != 304 || len(again.Body) != 0 {
				t.Errorf("If-None-Match: %d, %d bytes", again.Status, len(again.Body))
			}
			// A client that accepts gzip gets the same document, compressed.
			z := s.Do(t, servicetest.Request{Path: tt.path, Headers: map[string]string{"Accept-Encoding": "gzip"}})
			if len(tt.want) > 1024 {
				if z.Header.Get("Content-Encoding") != "gzip" || len(z.Body) >= len(tt.want) {
					t.Fatalf("Content-Encoding %q, %d bytes of %d", z.Header.Get("Content-Encoding"), len(z.Body), len(tt.want))
				}
				r, err := gzip.NewReader(bytes.NewReader(z.Body))
				if err != nil {
					t.Fatal(err)
				}
				if plain, err := io.ReadAll(r); err != nil || !bytes.Equal(plain, tt.want) {
					t.Errorf("decompressed: %d bytes of %d, %v", len(plain), len(tt.want), err)
				}
			}
			for _, encoding := range []string{"gzip;q=0", "identity", "br"} {
				p := s.Do(t, servicetest.Request{Path: tt.path, Headers: map[string]string{"Accept-Encoding": encoding}})
				if p.Header.Get("Content-Encoding") != "" || !bytes.Equal(p.Body, tt.want) {
					t.Errorf("Accept-Encoding %s: Content-Encoding %q, %d bytes", encoding, p.Header.Get("Content-Encoding"), len(p.Body))
				}
			}
			h := s.Do(t, servicetest.Request{Method: "HEAD", Path: tt.path, Headers: map[string]string{"Accept-Encoding": "gzip"}})
			if h.Status != 200 || len(h.Body) != 0 || h.Header.Get("Content-Encoding") != z.Header.Get("Content-Encoding") {
				t.Errorf("HEAD: %d, Content-Encoding %q", h.Status, h.Header.Get("Content-Encoding"))
			}
		})
	}
	for _, path := range []string{"/docs/", "/docs/index.html", "/docs/LICENSE.scalar", "/docs/..%2Fopenapi.go", "/docs/start.js/x"} {
		servicetest.CheckError(t, s.Get(t, "", path), 404, "route_not_found", object{})
	}
	servicetest.CheckError(t, s.Get(t, "", "/docs?x=1"), 400, "invalid_parameter", object{"projectId": nil, "parameter": "x"})
}

// TestFrontDoor checks that the API's address leads to the reference page.
func TestFrontDoor(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, method := range []string{"GET", "HEAD"} {
		a := s.Do(t, servicetest.Request{Method: method, Path: "/"})
		if a.Status != 302 || a.Header.Get("Location") != "/docs" {
			t.Errorf("%s /: %d, Location %q", method, a.Status, a.Header.Get("Location"))
		}
	}
}

// TestReferencePolicy checks that the page may load only from its own host, and no other page may frame it.
func TestReferencePolicy(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	policy := s.Get(t, "", "/docs").Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self';", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("%q lacks %s", policy, part)
		}
	}
	if foreign := regexp.MustCompile(`https?:|\*|unsafe-eval`).FindString(policy); foreign != "" {
		t.Errorf("%q has %s", policy, foreign)
	}
}

func asset(t testing.TB, name string) []byte {
	t.Helper()
	a, ok := openapi.FindAsset(name)
	if !ok {
		t.Fatalf("no asset %s", name)
	}
	plain, err := a.Plain()
	if err != nil {
		t.Fatal(err)
	}
	return plain
}
