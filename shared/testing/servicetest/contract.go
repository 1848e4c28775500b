package servicetest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// Refusal is a request that must be refused, with the expected refusal.
type Refusal struct {
	Name   string
	Method string // GET when empty, and then also HEAD
	Path   string
	Key    string
	Status int
	Code   string
	Rest   Object // the fields of the body after error; nil: not checked
}

// CheckRefusals sends requests to the public listener and checks that the answers have the one format of errors.
func (s *Service) CheckRefusals(t *testing.T, refusals []Refusal) {
	t.Helper()
	for _, want := range refusals {
		t.Run(want.Name, func(t *testing.T) {
			a := s.Do(t, Request{Method: want.Method, Path: want.Path, Key: want.Key})
			CheckError(t, a, want.Status, want.Code, want.Rest)
			if got := a.Header.Get("WWW-Authenticate"); want.Status == http.StatusUnauthorized && got != "ApiKey" {
				t.Errorf("WWW-Authenticate %q", got)
			}
			if got := a.Header.Get("Allow"); want.Status == http.StatusMethodNotAllowed && got != "GET, HEAD" {
				t.Errorf("Allow %q", got)
			}
			if help := "<" + s.URL + "/docs/errors#" + want.Code + `>; rel="help"`; a.Header.Get("Link") != help {
				t.Errorf("Link %q, want %q", a.Header.Get("Link"), help)
			}
			if want.Method == "" { // a HEAD gets the same header without a body
				h := s.Do(t, Request{Method: http.MethodHead, Path: want.Path, Key: want.Key})
				if h.Status != want.Status || len(h.Body) != 0 || h.Header.Get("Content-Length") != fmt.Sprint(len(a.Body)) {
					t.Errorf("HEAD: %d, %d bytes, Content-Length %s of %d", h.Status, len(h.Body), h.Header.Get("Content-Length"), len(a.Body))
				}
			}
		})
	}
}

// CheckError checks that an answer is an error of the API. CheckError compares the status, the code, the fields after error
// and the headers of every error. A nil rest is not compared. If code is empty, CheckError checks only the status.
func CheckError(t testing.TB, a Answer, status int, code string, rest Object) {
	t.Helper()
	if a.Status != status {
		t.Fatalf("%d %.300s, want %d %s", a.Status, a.Body, status, code)
	}
	if code == "" {
		return
	}
	var body Object
	a.JSON(t, &body)
	e, _ := body["error"].(Object)
	if message, _ := e["message"].(string); e["code"] != code || message == "" || len(e) != 2 {
		t.Errorf("%s, want %s", a.Body, code)
	}
	delete(body, "error")
	if diff := cmp.Diff(rest, body); rest != nil && diff != "" {
		t.Error(diff)
	}
	if a.Header.Get("Content-Type") != "application/json" || a.Header.Get("X-Request-Id") == "" {
		t.Errorf("headers %v", a.Header)
	}
	if status == http.StatusTooManyRequests && a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

// CheckRepresentation checks the properties of every successful read: HEAD and GET agree, an ETag leads to 304,
// compression, caching.
func (s *Service) CheckRepresentation(t *testing.T, key string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			get := s.Get(t, key, path)
			if get.Status != http.StatusOK || get.Err != nil {
				t.Fatalf("%d %.300s %v", get.Status, get.Body, get.Err)
			}
			if cc := get.Header.Get("Cache-Control"); cc != "private, no-cache" {
				t.Errorf("Cache-Control %q", cc)
			}
			for _, name := range []string{"X-Api-Key", "Authorization", "Accept", "Accept-Encoding"} {
				if !strings.Contains(strings.Join(get.Header.Values("Vary"), ","), name) {
					t.Errorf("Vary %q lacks %s", get.Header.Values("Vary"), name)
				}
			}
			head := s.Do(t, Request{Method: http.MethodHead, Path: path, Key: key})
			if head.Status != http.StatusOK || len(head.Body) != 0 {
				t.Errorf("HEAD: %d, %d bytes", head.Status, len(head.Body))
			}
			for _, name := range []string{"Content-Type", "ETag", "Link", "X-Next-Cursor", "Content-Length", "Cache-Control", "Vary"} {
				if diff := cmp.Diff(get.Header.Values(name), head.Header.Values(name)); diff != "" {
					t.Errorf("%s of GET and of HEAD: %s", name, diff)
				}
			}
			s.checkTag(t, key, path, get.Header.Get("ETag"))
			s.checkCompression(t, key, path, get)
		})
	}
}

func (s *Service) checkTag(t *testing.T, key, path, tag string) {
	t.Helper()
	if tag == "" {
		t.Error("no ETag")
		return
	}
	for match, want := range map[string]int{tag: 304, `"x", ` + tag: 304, "*": 304, strings.TrimPrefix(tag, "W/"): 304, `"x"`: 200} {
		a := s.Do(t, Request{Path: path, Key: key, Headers: map[string]string{"If-None-Match": match}})
		if a.Status != want || a.Header.Get("ETag") != tag || want == 304 && len(a.Body) != 0 {
			t.Errorf("If-None-Match %s: %d, ETag %s, %d bytes", match, a.Status, a.Header.Get("ETag"), len(a.Body))
		}
	}
}

func (s *Service) checkCompression(t *testing.T, key, path string, plain Answer) {
	t.Helper()
	for encoding, open := range map[string]func(io.Reader) (io.Reader, error){
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	} {
		a := s.Do(t, Request{Path: path, Key: key, Headers: map[string]string{"Accept-Encoding": encoding}})
		if a.Header.Get("Content-Encoding") == "" && len(plain.Body) < 2000 {
			continue // too short for compression
		}
		if got := a.Header.Get("Content-Encoding"); got != encoding {
			t.Errorf("%s: Content-Encoding %q", encoding, got)
			continue
		}
		r, err := open(bytes.NewReader(a.Body))
		if err != nil {
			t.Error(err)
			continue
		}
		if body, err := io.ReadAll(r); err != nil || !bytes.Equal(body, plain.Body) {
			t.Errorf("%s: %v, %d bytes of %d", encoding, err, len(body), len(plain.Body))
		}
	}
}

var link = regexp.MustCompile(`^<(http://[^>]+)>; rel="next"$`)

// CheckPaging checks that Link and X-Next-Cursor of each path lead to the same next page. Each path must have a next
// page.
func (s *Service) CheckPaging(t *testing.T, key string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		_, a := s.List(t, key, path)
		m := link.FindStringSubmatch(a.Header.Get("Link"))
		if m == nil || !strings.HasPrefix(m[1], s.URL+"/projects/") {
			t.Errorf("%s: Link %q", path, a.Header.Get("Link"))
			continue
		}
		u, err := url.Parse(m[1])
		cursor := a.Header.Get("X-Next-Cursor")
		if err != nil || cursor == "" || u.Query().Get("cursor") != cursor {
			t.Errorf("%s: Link %q and X-Next-Cursor %q differ", path, a.Header.Get("Link"), cursor)
			continue
		}
		byLink, _ := s.List(t, key, strings.TrimPrefix(m[1], s.URL))
		byCursor, _ := s.List(t, key, path+"&cursor="+cursor)
		if diff := cmp.Diff(byCursor, byLink); diff != "" || len(byLink) == 0 {
			t.Errorf("%s: %d records by Link: %s", path, len(byLink), diff)
		}
	}
}

// CheckCursors sends the cursor of every list with every other list, altered, shortened and broken into lines. The answer
// must be 400, never other rows. Each list has limit=1 and a next page. keyOf returns the key for its path.
func (s *Service) CheckCursors(t *testing.T, keyOf func(path string) string, lists ...string) {
	t.Helper()
	for _, from := range lists {
		cursor := s.Get(t, keyOf(from), from).Header.Get("X-Next-Cursor")
		if cursor == "" {
			t.Fatalf("%s has no next page", from)
		}
		for _, to := range lists {
			want := http.StatusBadRequest
			if from == to {
				want = http.StatusOK
			}
			if a := s.Get(t, keyOf(to), to+"&cursor="+cursor); a.Status != want {
				t.Errorf("the cursor of %s at %s: %d, want %d", from, to, a.Status, want)
			}
		}
		for i := range cursor {
			altered := []byte(cursor)
			altered[i] = map[bool]byte{true: 'A', false: 'B'}[altered[i] != 'A']
			for _, c := range []string{string(altered), cursor[:i], cursor[:i] + "%0A" + cursor[i:]} {
				if a := s.Get(t, keyOf(from), from+"&cursor="+c); a.Status != http.StatusBadRequest {
					t.Fatalf("%s with cursor %q: %d", from, c, a.Status)
				}
			}
		}
		if a := s.Get(t, keyOf(from), strings.Replace(from, "limit=1", "limit=2", 1)+"&cursor="+cursor); a.Status != http.StatusOK {
			t.Errorf("%s with another limit: %d", from, a.Status)
		}
	}
}
