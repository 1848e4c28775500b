package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

const lookUpPath = "/api/projects/region"

// ask sends a body to operation 9 with the internal key.
func ask(t testing.TB, s *servicetest.Service, body string) servicetest.Answer {
	t.Helper()
	return s.Do(t, servicetest.Request{
		Method: http.MethodPost, Path: lookUpPath, Key: servicetest.InternalKey,
		Headers: map[string]string{"Content-Type": "application/json"}, Body: strings.NewReader(body),
	})
}

// region requests a project's region, and fails the test unless the answer is 200.
func region(t testing.TB, s *servicetest.Service, project, at string) object {
	t.Helper()
	request := object{"projectId": project}
	if at != "" {
		request["at"] = at
	}
	a := ask(t, s, text(t, request))
	if a.Status != 200 {
		t.Fatalf("%v: %d %s", request, a.Status, a.Body)
	}
	var got object
	a.JSON(t, &got)
	return got
}

// TestRegionSource checks that a caller can tell a project's own region from the default.
func TestRegionSource(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	put(t, s, "pr_own", "Own", "America/Los_Angeles")
	put(t, s, "pr_none", "None", nil)
	for project, want := range map[string]string{"pr_own": "project", "pr_none": "default", "pr_unknown": "default"} {
		for range 2 { // read, then cached
			if got := ask(t, s, text(t, object{"projectId": project})).Header.Get("X-Region-Source"); got != want {
				t.Errorf("%s: %q, want %q", project, got, want)
			}
		}
	}
}

func TestRegion(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	put(t, s, "pr_berlin", "Berlin", "Europe/Berlin")
	put(t, s, "pr_none", "None", nil)
	put(t, s, "ü/日本", "Unicode", "Asia/Tokyo")
	for _, tt := range []struct {
		name, project, at string
		want              object
	}{
		{"winter", "pr_berlin", "2022-01-01T00:00:00Z", object{"region": "Europe/Berlin", "offsetInMinutes": 60.0}},
		{"summer", "pr_berlin", "2022-07-01", object{"region": "Europe/Berlin", "offsetInMinutes": 120.0}},
		{"a moment with an offset", "pr_berlin", "2022-03-27T03:00:00+02:00", object{"region": "Europe/Berlin", "offsetInMinutes": 120.0}},
		{"the moment before", "pr_berlin", "2022-03-27T00:59:59.999999Z", object{"region": "Europe/Berlin", "offsetInMinutes": 60.0}},
		{"no region", "pr_none", "2022-01-01", object{"region": "America/Los_Angeles", "offsetInMinutes": -480.0}},
		{"unknown project", "pr_nope", "2022-07-01", object{"region": "America/Los_Angeles", "offsetInMinutes": -420.0}},
		{"Unicode", "ü/日本", "2022-01-01", object{"region": "Asia/Tokyo", "offsetInMinutes": 540.0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, region(t, s, tt.project, tt.at)); diff != "" {
				t.Error(diff)
			}
		})
	}
	a := ask(t, s, `{"projectId":"pr_berlin"}`)
	if ct := a.Header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("Content-Type %q", ct)
	}
	if cc := a.Header.Get("Cache-Control"); cc != "no-store" {
		t.Errorf("Cache-Control %q: the offset depends on the moment", cc)
	}
}

// TestRegionNow checks that the offset is the current one if the request has no "at".
func TestRegionNow(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	put(t, s, "pr_1", "One", "Asia/Kathmandu") // its offset has not changed since 1986
	if diff := cmp.Diff(object{"region": "Asia/Kathmandu", "offsetInMinutes": 345.0}, region(t, s, "pr_1", "")); diff != "" {
		t.Error(diff)
	}
}

func TestRegionBodies(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	long := strings.Repeat("x", 70_000)
	for _, tt := range []struct {
		name, body string
		status     int
		code       string
	}{
		{"empty", "", 400, "invalid_body"},
		{"blank", " \n", 400, "invalid_body"},
		{"not JSON", "projectId=pr_1", 400, "invalid_body"},
		{"cut short", `{"projectId":"pr_1"`, 400, "invalid_body"},
		{"cut within a text", `{"projectId":"pr`, 400, "invalid_body"},
		{"null", "null", 400, "invalid_body"},
		{"text", `"pr_1"`, 400, "invalid_body"},
		{"array", `[{"projectId":"pr_1"}]`, 400, "invalid_body"},
		{"no project", `{}`, 400, "invalid_body"},
		{"only at", `{"at":"2022-01-01"}`, 400, "invalid_body"},
		{"null project", `{"projectId":null}`, 400, "invalid_body"},
		{"number", `{"projectId":1}`, 400, "invalid_body"},
		{"object", `{"projectId":{"id":"pr_1"}}`, 400, "invalid_body"},
		{"empty project", `{"projectId":""}`, 400, "invalid_body"},
		{"long project", `{"projectId":"` + long[:257] + `"}`, 400, "invalid_body"},
		{"longest project", `{"projectId":"` + long[:256] + `"}`, 200, ""},
		{"NUL", `{"projectId":"a\u0000b"}`, 400, "invalid_body"},
		{"lone surrogate", `{"projectId":"\ud800"}`, 400, "invalid_body"},
		{"broken UTF-8", "{\"projectId\":\"\xff\"}", 400, "invalid_body"},
		{"unknown field", `{"projectId":"pr_1","region":"Europe/Berlin"}`, 400, "invalid_body"},
		{"another case", `{"ProjectId":"pr_1"}`, 400, "invalid_body"},
		{"name twice", `{"projectId":"pr_1","projectId":"pr_1"}`, 400, "invalid_body"},
		{"name twice, escaped", `{"projectId":"pr_1","project\u0049d":"pr_1"}`, 400, "invalid_body"},
		{"escaped name", `{"project\u0049d":"pr_1"}`, 200, ""},
		{"goes on", `{"projectId":"pr_1"}{}`, 400, "invalid_body"},
		{"comma at the end", `{"projectId":"pr_1",}`, 400, "invalid_body"},
		{"comment", `{"projectId":"pr_1"} // one`, 400, "invalid_body"},
		{"byte order mark", "\ufeff" + `{"projectId":"pr_1"}`, 400, "invalid_body"},
		{"white space", " {\r\n\t\"projectId\" : \"pr_1\" }\n\n", 200, ""},
		{"null at", `{"projectId":"pr_1","at":null}`, 400, "invalid_body"},
		{"at is a number", `{"projectId":"pr_1","at":1640995200}`, 400, "invalid_body"},
		{"at is no date", `{"projectId":"pr_1","at":"2022-02-30"}`, 400, "invalid_body"},
		{"at is empty", `{"projectId":"pr_1","at":""}`, 400, "invalid_body"},
		{"at without offset", `{"projectId":"pr_1","at":"2022-01-01T00:00:00"}`, 200, ""},
		{"64 KiB", `{"projectId":"pr_1"}` + strings.Repeat(" ", 64<<10-20), 200, ""},
		{"over 64 KiB", `{"projectId":"pr_1"}` + strings.Repeat(" ", 64<<10-19), 413, "payload_too_large"},
		{"a project over 64 KiB", `{"projectId":"` + long + `"}`, 413, "payload_too_large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := ask(t, s, tt.body)
			servicetest.CheckError(t, a, tt.status, tt.code, object{})
			if tt.code == "invalid_body" && !strings.Contains(string(a.Body), `projectId\": \"…\"`) {
				t.Errorf("%s does not say what is allowed", a.Body)
			}
		})
	}
	// Chunked, so that its length is not known in advance.
	a := s.Do(t, servicetest.Request{
		Method: "POST", Path: lookUpPath, Key: servicetest.InternalKey,
		Headers: map[string]string{"Content-Type": "application/json"}, Body: struct{ *strings.Reader }{strings.NewReader(strings.Repeat(" ", 70_000))},
	})
	servicetest.CheckError(t, a, 413, "payload_too_large", object{})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	put(t, s, "pr_1", "One", "Europe/Berlin")
	good := `{"projectId":"pr_1"}`
	json := map[string]string{"Content-Type": "application/json"}
	null := object{"projectId": nil}
	for _, tt := range []struct {
		name, method, path, key, body string
		headers                       map[string]string
		status                        int
		code                          string
		rest                          object
	}{
		{"no key", "POST", lookUpPath, "", good, json, 401, "unauthorized", null},
		{"no key and no body", "POST", lookUpPath, "", "", nil, 401, "unauthorized", null},
		{"no key and a wrong body", "POST", lookUpPath, "", "nonsense", nil, 401, "unauthorized", null},
		{"wrong key", "POST", lookUpPath, servicetest.InternalKey + "x", good, json, 401, "unauthorized", null},
		{"ingest key", "POST", lookUpPath, servicetest.IngestKey, good, json, 401, "unauthorized", null},
		{"project's key", "POST", lookUpPath, s.Keys.Key("pr_1"), good, json, 401, "unauthorized", null},
		{"key before type", "POST", lookUpPath, "nope", good, map[string]string{"Content-Type": "text/plain"}, 401, "unauthorized", null},
		{"key before parameters", "POST", lookUpPath + "?x=1", "nope", good, json, 401, "unauthorized", null},
		{"parameter", "POST", lookUpPath + "?x=1", servicetest.InternalKey, good, json, 400, "invalid_parameter", object{"projectId": nil, "parameter": "x"}},
		{"no type", "POST", lookUpPath, servicetest.InternalKey, good, nil, 415, "unsupported_media_type", object{}},
		{"form", "POST", lookUpPath, servicetest.InternalKey, "projectId=pr_1", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415, "unsupported_media_type", object{}},
		{"another charset", "POST", lookUpPath, servicetest.InternalKey, good, map[string]string{"Content-Type": "application/json; charset=latin1"}, 415, "unsupported_media_type", object{}},
		{"UTF-8", "POST", lookUpPath, servicetest.InternalKey, good, map[string]string{"Content-Type": "Application/JSON; charset=UTF-8"}, 200, "", nil},
		{"compressed", "POST", lookUpPath, servicetest.InternalKey, good, map[string]string{"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415, "unsupported_media_type", object{}},
		{"GET", "GET", lookUpPath, servicetest.InternalKey, "", nil, 405, "method_not_allowed", object{}},
		{"method before key", "PUT", lookUpPath, "", good, json, 405, "method_not_allowed", object{}},
		{"below", "POST", lookUpPath + "/", servicetest.InternalKey, good, json, 404, "route_not_found", object{}},
		{"internal path", "POST", "/internal/projects", servicetest.IngestKey, "", nil, 404, "route_not_found", object{}},
		{"no such project", "GET", "/projects/pr_9", "", "", nil, 404, "project_not_found", object{"projectId": "pr_9"}},
		{"parameter before record", "GET", "/projects/pr_9?limit=1", "", "", nil, 400, "invalid_parameter", object{"projectId": "pr_9", "parameter": "limit"}},
		{"long project", "GET", "/projects/" + strings.Repeat("x", 257), "", "", nil, 400, "invalid_parameter", object{"projectId": strings.Repeat("x", 257), "parameter": "projectId"}},
		{"a project is only read", "DELETE", "/projects/pr_1", "", "", nil, 405, "method_not_allowed", object{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := s.Do(t, servicetest.Request{Method: tt.method, Path: tt.path, Key: tt.key, Headers: tt.headers, Body: strings.NewReader(tt.body)})
			servicetest.CheckError(t, a, tt.status, tt.code, tt.rest)
			if got := a.Header.Get("WWW-Authenticate"); tt.status == 401 && got != "ApiKey" {
				t.Errorf("WWW-Authenticate %q", got)
			}
			if got := a.Header.Get("Allow"); tt.status == 405 && got == "" {
				t.Error("no Allow")
			}
		})
	}
}

// TestInternalKeys checks that the service accepts several keys, so that an operator can replace one without a gap. If
// no key is set, the service refuses all requests.
func TestInternalKeys(t *testing.T) {
	t.Parallel()
	b := start(t, nil).Backing
	ask := func(s *servicetest.Service, keys ...string) int {
		req, err := http.NewRequest("POST", s.URL+lookUpPath, strings.NewReader(`{"projectId":"pr_1"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header["X-Api-Key"] = keys
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	two := startOn(t, b, map[string]string{"INTERNAL_API_KEYS": "old-key-0123456789,new-key-0123456789"})
	for keys, want := range map[string]int{
		"old-key-0123456789":                    200,
		"new-key-0123456789":                    200,
		servicetest.InternalKey:                 401,
		"old-key-0123456789,new-key-0123456789": 401,
		"":                                      401,
	} {
		if got := ask(two, keys); got != want {
			t.Errorf("%q: %d, want %d", keys, got, want)
		}
	}
	if got := ask(two, "old-key-0123456789", "old-key-0123456789"); got != 401 {
		t.Errorf("a key given twice: %d", got)
	}
	none := startOn(t, b, map[string]string{"INTERNAL_API_KEYS": ""})
	for _, key := range []string{"", servicetest.InternalKey} {
		if got := ask(none, key); got != 401 {
			t.Errorf("no keys are set, and %q is answered %d", key, got)
		}
	}
}

func TestProject(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	titles := map[string]string{
		"pr_1": "One", "a/b": "Slash", "ünï": `"quoted" \ and <b>ünï\u2028</b>` + "\u2028\n", "empty": "", strings.Repeat("é", 128): strings.Repeat("long ", 10_000),
	}
	escape := strings.NewReplacer("/", "%2F", "ü", "%C3%BC", "ï", "%C3%AF", "é", "%C3%A9")
	for id, title := range titles {
		put(t, s, id, title, "Europe/Berlin")
		a := s.Get(t, "", "/projects/"+escape.Replace(id))
		var got object
		a.JSON(t, &got)
		if diff := cmp.Diff(object{"id": id, "title": title}, got); a.Status != 200 || diff != "" {
			t.Errorf("%.50q: %d %s", id, a.Status, diff)
		}
		h := s.Do(t, servicetest.Request{Method: "HEAD", Path: "/projects/" + escape.Replace(id)})
		if h.Status != 200 || len(h.Body) != 0 || h.Header.Get("Content-Length") != fmt.Sprint(len(a.Body)) {
			t.Errorf("HEAD: %d, Content-Length %s of %d", h.Status, h.Header.Get("Content-Length"), len(a.Body))
		}
		tag := a.Header.Get("ETag")
		again := s.Do(t, servicetest.Request{Path: "/projects/" + escape.Replace(id), Headers: map[string]string{"If-None-Match": tag}})
		if tag == "" || again.Status != 304 || len(again.Body) != 0 {
			t.Errorf("ETag %q: %d", tag, again.Status)
		}
	}
	// A key is not needed here, and one that is sent is not checked.
	if a := s.Get(t, "nonsense", "/projects/pr_1"); a.Status != 200 {
		t.Errorf("with a key: %d", a.Status)
	}
}

func TestAnonymousRate(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"ANON_RATE_LIMIT": "2"})
	put(t, s, "pr_1", "One", nil)
	refused := servicetest.CheckRate(t, 2, func() servicetest.Answer { return s.Get(t, "", "/projects/pr_1") })
	servicetest.CheckError(t, refused, 429, "rate_limited", object{"projectId": "pr_1"})
	// Trusted services may send any number of requests.
	for range 20 {
		if got := region(t, s, "pr_1", ""); got["region"] != "America/Los_Angeles" {
			t.Fatal(got)
		}
	}
}

func TestIngest(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	in := s.Ingest(t, "projects",
		object{"id": "pr_1", "title": "One", "region": "Europe/Berlin"},
		object{"id": "pr_2", "title": "Two"},
		object{"id": "pr_3", "title": "Three", "region": "Europe/Nowhere"},
		object{"id": "pr_3", "title": "Three", "region": ""},
		object{"id": "pr_3", "title": "Three", "region": "Local"},
		object{"id": "pr_3", "title": "Three", "region": "posixrules"},
		object{"id": "pr_3", "title": "Three", "region": "../etc/localtime"},
		object{"id": "pr_3", "title": "Three", "region": 60},
		object{"id": "pr_3", "region": "UTC"},
		object{"id": "", "title": "Nobody"},
		object{"id": "pr_3", "title": "Three", "zone": "UTC"},
		`{"id":"pr_4","title":"Four","region":"US/Pacific"}`,
		`{"id":"pr_1","title":"One again","region":"Asia/Tokyo"}`,
		`{"id":"pr_1","title":"One again","region":"Asia/Tokyo"}`,
	)
	codes := map[int]string{3: "invalid_field", 4: "invalid_field", 5: "invalid_field", 6: "invalid_field", 7: "invalid_field",
		8: "invalid_field", 9: "missing_field", 10: "invalid_field", 11: "unknown_field"}
	got := map[int]string{}
	for _, r := range in.Rejects {
		got[r.Line] = r.Code
		if r.Line == 3 && !strings.Contains(r.Message, "Europe/Nowhere") {
			t.Errorf("%q does not say what was given", r.Message)
		}
	}
	if diff := cmp.Diff(codes, got); diff != "" {
		t.Error(diff)
	}
	if in.Stored != 4 || in.Changed != 1 || in.Existing != 1 || in.Rejected != 9 {
		t.Errorf("%+v", in)
	}
	for project, want := range map[string]string{"pr_1": "Asia/Tokyo", "pr_2": "America/Los_Angeles", "pr_3": "America/Los_Angeles", "pr_4": "US/Pacific"} {
		if got := region(t, s, project, "")["region"]; got != want {
			t.Errorf("%s: %v, want %s", project, got, want)
		}
	}
	// A region that is null or absent clears the stored one.
	for _, line := range []string{`{"id":"pr_1","title":"One","region":null}`, `{"id":"pr_4","title":"Four"}`} {
		if in := s.MustIngest(t, "projects", line); in.Stored != 1 || in.Changed != 1 {
			t.Errorf("%s: %+v", line, in)
		}
	}
	for _, project := range []string{"pr_1", "pr_4"} {
		awaitRegion(t, s, project, "America/Los_Angeles")
	}
	for name, key := range map[string]string{"no key": "", "internal key": servicetest.InternalKey, "project's key": s.Keys.Key("pr_1", auth.EntriesRead)} {
		a := s.DoInternal(t, servicetest.Request{Method: "POST", Path: "/internal/projects", Key: key, Body: strings.NewReader(`{"id":"x","title":"x"}`)})
		if a.Status != 401 {
			t.Errorf("%s: %d", name, a.Status)
		}
	}
}
