package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/region/internal/store"
)

// administer sends a request to the internal listener with the admin key. If body is empty, the request has none.
func administer(t testing.TB, s *servicetest.Service, method, path, body string) servicetest.Answer {
	t.Helper()
	r := servicetest.Request{Method: method, Path: "/internal/projects/" + path, Key: servicetest.AdminKey}
	if body != "" {
		r.Body, r.Headers = strings.NewReader(body), map[string]string{"Content-Type": "application/json"}
	}
	return s.DoInternal(t, r)
}

// must sends a request with [administer], and fails the test unless the answer is 200.
func must(t testing.TB, s *servicetest.Service, method, path, body string) object {
	t.Helper()
	a := administer(t, s, method, path, body)
	if a.Status != 200 || a.Header.Get("Content-Type") != "application/json" || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s %s: %d %s %v", method, path, a.Status, a.Body, a.Header)
	}
	var got object
	a.JSON(t, &got)
	return got
}

func listKeys(t testing.TB, s *servicetest.Service, project string) []object {
	t.Helper()
	a := administer(t, s, "GET", project+"/keys", "")
	var list []object
	if a.JSON(t, &list); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return list
}

// keyText returns the key in the answer of a mint.
func keyText(t testing.TB, minted object) string {
	t.Helper()
	key, _ := minted["key"].(string)
	if _, err := auth.ParseKey(key); err != nil {
		t.Fatalf("%v: %v", minted, err)
	}
	return key
}

// TestLifeOfAKey mints, uses, rotates and revokes a key over HTTP. Copies in Redis live for a minute, so a changed key
// is refused soon only because its copy is replaced.
func TestLifeOfAKey(t *testing.T) {
	t.Parallel()
	b := servicetest.NewBacking(t, store.Schema())
	b.Keys.Config.CacheTTL = auth.MaxCacheTTL
	s := startOn(t, b, nil)
	keys := b.Keys.Authenticator(authn.Options{})
	accepted := func(project, key string) (accepted bool) {
		t.Helper()
		eventually.Succeeds(t, "the key is checked", func() error { // on a busy machine, opening a connection may take too long
			_, err := keys.Verifier.Verify(t.Context(), project, key)
			if accepted = err == nil; errors.As(err, new(apierr.Refusal)) {
				return nil
			}
			return err
		})
		return accepted
	}

	end := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	minted := must(t, s, "POST", "pr_1/keys", text(t, object{"name": "reports", "scopes": []string{"entries:read", "proxy:use"}, "rate": 50, "expires_at": end}))
	first, id := keyText(t, minted), minted["id"].(string)
	want := object{
		"id": id, "project_id": "pr_1", "name": "reports", "scopes": []any{"entries:read", "proxy:use"}, "rate": 50.0, "state": "active",
		"created_at": minted["created_at"], "expires_at": end.Format(time.RFC3339Nano), "revoked_at": nil, "last_used_at": nil, "foreign": false, "owner": nil, "identity": nil,
	}
	if diff := cmp.Diff(servicetest.With(want, "key", first), minted); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]object{want}, listKeys(t, s, "pr_1")); diff != "" {
		t.Errorf("the list: %s", diff)
	}
	if !accepted("pr_1", first) || accepted("pr_2", first) {
		t.Error("the key is for its project, and for no other")
	}

	rotated := must(t, s, "POST", "pr_1/keys/"+id+"/rotate", `{"overlap":"1h"}`)
	second := keyText(t, rotated)
	if !accepted("pr_1", first) || !accepted("pr_1", second) || rotated["name"] != "reports" || rotated["rate"] != 50.0 || rotated["id"] == id {
		t.Errorf("%v: within the overlap both keys are accepted", rotated)
	}
	third := keyText(t, must(t, s, "POST", "pr_1/keys/"+rotated["id"].(string)+"/rotate", `{"overlap":"0s"}`))
	within := func(what, key string) {
		t.Helper()
		answered := time.Now()
		eventually.True(t, what, func() bool {
			began := time.Now()
			refused := !accepted("pr_1", key)
			if !refused && began.Sub(answered) > time.Second {
				t.Errorf("%s: a request that began %v after the change is accepted", what, began.Sub(answered))
			}
			return refused
		})
	}
	within("a key without overlap is refused", second)

	for range 2 { // the second revocation does not change the first one's time
		revoked := must(t, s, "DELETE", "pr_1/keys/"+id, "")
		if revoked["state"] != "revoked" || revoked["revoked_at"] == nil || revoked["key"] != nil {
			t.Errorf("%v", revoked)
		}
	}
	within("the revoked key is refused", first)
	if !accepted("pr_1", third) {
		t.Error("another key of the project is refused")
	}

	// All defaults, with and without a body.
	for _, body := range []string{"", "{}", `{"name":null,"scopes":null,"rate":null,"expires_at":null,"key":null}`} {
		plain := must(t, s, "POST", "pr_2/keys", body)
		if diff := cmp.Diff([]any{"entries:read", "embeddables:read", "experiments:read"}, plain["scopes"]); diff != "" || plain["rate"] != nil || plain["expires_at"] != nil {
			t.Errorf("%q: %v", body, plain)
		}
	}
	// After a rotation without a body, the old key is valid for a day.
	daily := must(t, s, "POST", "pr_3/keys", "")
	must(t, s, "POST", "pr_3/keys/"+daily["id"].(string)+"/rotate", "")
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(listKeys(t, s, "pr_3")[0]["expires_at"]))
	if left := time.Until(at); err != nil || left < 23*time.Hour || left > 24*time.Hour {
		t.Errorf("the rotated key ends in %v, %v; want a day", left, err)
	}
	// An imported key is stored once.
	if brought := must(t, s, "POST", "pr_4/keys", `{"key":"brought along"}`); brought["foreign"] != true || brought["key"] != "brought along" {
		t.Errorf("%v", brought)
	}
	again := administer(t, s, "POST", "pr_4/keys", `{"key":"brought along"}`)
	if servicetest.CheckError(t, again, 400, "invalid_body", object{}); strings.Contains(string(again.Body), "brought along") {
		t.Errorf("%s shows the key", again.Body)
	}
}

// TestKeysOfAnotherProject checks that a key can be found by its id only in its own project.
func TestKeysOfAnotherProject(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := must(t, s, "POST", "pr_1/keys", "")["id"].(string)
	for _, r := range []struct{ method, path string }{{"DELETE", "pr_2/keys/" + id}, {"POST", "pr_2/keys/" + id + "/rotate"}} {
		servicetest.CheckError(t, administer(t, s, r.method, r.path, ""), 404, "key_not_found", object{"projectId": "pr_2", "keyId": id})
	}
	if list := listKeys(t, s, "pr_2"); len(list) != 0 {
		t.Errorf("pr_2 has %v", list)
	}
	if list := listKeys(t, s, "pr_1"); len(list) != 1 || list[0]["state"] != "active" || list[0]["expires_at"] != nil {
		t.Errorf("pr_1 has %v", list)
	}
}

func TestKeysErrors(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := must(t, s, "POST", "pr_1/keys", "")["id"].(string)
	ended := must(t, s, "POST", "pr_1/keys", "")["id"].(string)
	must(t, s, "DELETE", "pr_1/keys/"+ended, "")
	long := strings.Repeat("x", 257)
	mint, rotate := "pr_1/keys", "pr_1/keys/"+id+"/rotate"
	none := object{}
	for _, tt := range []struct {
		name, method, path, body string
		status                   int
		code                     string
		rest                     object
		message                  []string // parts of the error: the given value and the allowed ones
	}{
		{"not JSON", "POST", mint, "name=x", 400, "invalid_body", none, []string{"not valid JSON", `"scopes"`}},
		{"cut short", "POST", mint, `{"name":"x"`, 400, "invalid_body", none, []string{"not valid JSON"}},
		{"array", "POST", mint, `[]`, 400, "invalid_body", none, []string{"not a JSON object"}},
		{"unknown field", "POST", mint, `{"scope":"x"}`, 400, "invalid_body", none, []string{`"scope"`, `"expires_at"`}},
		{"field twice", "POST", mint, `{"name":"x","name":"y"}`, 400, "invalid_body", none, nil},
		{"name is a number", "POST", mint, `{"name":5}`, 400, "invalid_body", none, []string{`"name" was given as 5`, "a string"}},
		{"long name", "POST", mint, `{"name":"` + long + `"}`, 400, "invalid_body", none, []string{`"name" was given as "xxx`, "256 bytes"}},
		{"name with a control character", "POST", mint, `{"name":"a\u0007"}`, 400, "invalid_body", none, []string{`"name"`, "printable"}},
		{"scopes are a text", "POST", mint, `{"scopes":"entries:read"}`, 400, "invalid_body", none, []string{`"scopes" was given as "entries:read"`, "array"}},
		{"no scopes", "POST", mint, `{"scopes":[]}`, 400, "invalid_body", none, []string{`"scopes" was given as []`, "one or more of"}},
		{"unknown scope", "POST", mint, `{"scopes":["entries:write"]}`, 400, "invalid_body", none, []string{"entries:write", "entries:read, embeddables:read, experiments:read, proxy:use"}},
		{"two scopes in one", "POST", mint, `{"scopes":["entries:read proxy:use"]}`, 400, "invalid_body", none, []string{"entries:read proxy:use"}},
		{"an empty scope", "POST", mint, `{"scopes":["entries:read",""]}`, 400, "invalid_body", none, nil},
		{"a number among scopes", "POST", mint, `{"scopes":[1]}`, 400, "invalid_body", none, []string{"[1]"}},
		{"expiry is a number", "POST", mint, `{"expires_at":1893456000}`, 400, "invalid_body", none, []string{`"expires_at" was given as 1893456000`, "2030-01-31T09:30:00Z"}},
		{"expiry is no date", "POST", mint, `{"expires_at":"tomorrow"}`, 400, "invalid_body", none, []string{"tomorrow"}},
		{"expiry is past", "POST", mint, `{"expires_at":"2020-01-01"}`, 400, "invalid_body", none, []string{"2020-01-01T00:00:00Z", "future"}},
		{"rate is a text", "POST", mint, `{"rate":"50"}`, 400, "invalid_body", none, []string{`"rate" was given as "50"`, "whole number"}},
		{"rate is a fraction", "POST", mint, `{"rate":1.5}`, 400, "invalid_body", none, []string{"1.5"}},
		{"negative rate", "POST", mint, `{"rate":-1}`, 400, "invalid_body", none, []string{`"-1"`, "0 to 1000000000"}},
		{"large rate", "POST", mint, `{"rate":1000000001}`, 400, "invalid_body", none, []string{"1000000001", "0 to 1000000000"}},
		{"huge rate", "POST", mint, `{"rate":99999999999999999999}`, 400, "invalid_body", none, nil},
		{"key is a number", "POST", mint, `{"key":4242424242}`, 400, "invalid_body", none, []string{"not shown", "printable ASCII"}},
		{"empty key", "POST", mint, `{"key":""}`, 400, "invalid_body", none, nil},
		{"key with a line break", "POST", mint, `{"key":"secret-1\n"}`, 400, "invalid_body", none, []string{"[redacted]"}},
		{"key with a wrong checksum", "POST", mint, `{"key":"rk_` + strings.Repeat("a", 38) + `"}`, 400, "invalid_body", none, []string{"checksum"}},
		{"64 KiB", "POST", mint, `{"name":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "payload_too_large", none, nil},
		{"parameter", "POST", mint + "?name=x", "", 400, "invalid_parameter", object{"projectId": "pr_1", "parameter": "name"}, []string{"none"}},
		{"parameter of the list", "GET", mint + "?limit=1", "", 400, "invalid_parameter", object{"projectId": "pr_1", "parameter": "limit"}, nil},
		{"parameter of a revocation", "DELETE", "pr_1/keys/" + id + "?x=1", "", 400, "invalid_parameter", object{"projectId": "pr_1", "parameter": "x"}, nil},
		{"long project", "GET", long + "/keys", "", 400, "invalid_parameter", object{"projectId": long, "parameter": "projectId"}, nil},
		{"long key id", "DELETE", "pr_1/keys/" + long, "", 400, "invalid_parameter", object{"projectId": "pr_1", "parameter": "keyId"}, []string{"256 bytes"}},
		{"NUL in a key id", "DELETE", "pr_1/keys/a%00", "", 400, "invalid_parameter", object{"projectId": "pr_1", "parameter": "keyId"}, nil},
		{"overlap is a number", "POST", rotate, `{"overlap":24}`, 400, "invalid_body", none, []string{`"overlap" was given as 24`, "24h"}},
		{"overlap without unit", "POST", rotate, `{"overlap":"24"}`, 400, "invalid_body", none, []string{`"24"`}},
		{"negative overlap", "POST", rotate, `{"overlap":"-1h"}`, 400, "invalid_body", none, []string{"-1h0m0s", "0s or more"}},
		{"unknown field of a rotation", "POST", rotate, `{"overlaps":"1h"}`, 400, "invalid_body", none, []string{"overlaps", `{"overlap"`}},
		{"unknown key", "DELETE", "pr_1/keys/key_none", "", 404, "key_not_found", object{"projectId": "pr_1", "keyId": "key_none"}, nil},
		{"unknown key to rotate", "POST", "pr_1/keys/key_none/rotate", "", 404, "key_not_found", object{"projectId": "pr_1", "keyId": "key_none"}, nil},
		{"revoked key to rotate", "POST", "pr_1/keys/" + ended + "/rotate", "", 404, "key_not_found", object{"projectId": "pr_1", "keyId": ended}, []string{"revoked"}},
		{"body before record", "POST", "pr_1/keys/key_none/rotate", `{"overlap":1}`, 400, "invalid_body", none, nil},
		{"no key id", "DELETE", mint, "", 405, "method_not_allowed", none, nil},
		{"read one key", "GET", "pr_1/keys/" + id, "", 405, "method_not_allowed", none, nil},
		{"read a rotation", "GET", rotate, "", 405, "method_not_allowed", none, nil},
		{"below", "POST", rotate + "/x", "", 404, "route_not_found", none, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := administer(t, s, tt.method, tt.path, tt.body)
			servicetest.CheckError(t, a, tt.status, tt.code, tt.rest)
			for _, part := range tt.message {
				if !strings.Contains(message(t, a), part) {
					t.Errorf("%q does not say %s", message(t, a), part)
				}
			}
			if strings.Contains(string(a.Body), "secret-1") || strings.Contains(string(a.Body), "4242424242") {
				t.Errorf("%s shows the key", a.Body)
			}
		})
	}
	a := s.DoInternal(t, servicetest.Request{Method: "POST", Path: "/internal/projects/" + mint, Key: servicetest.AdminKey, Body: strings.NewReader(`{}`)})
	servicetest.CheckError(t, a, 415, "unsupported_media_type", object{})
	if n := len(listKeys(t, s, "pr_1")); n != 2 {
		t.Errorf("%d keys; want the two from before", n)
	}
}

// message returns the text of an error.
func message(t testing.TB, a servicetest.Answer) string {
	t.Helper()
	var body struct {
		Error struct{ Message string }
	}
	a.JSON(t, &body)
	return body.Error.Message
}

// TestKeysAreForAdministrators checks that every operation requires an admin key before it checks anything else. No
// other key is accepted.
func TestKeysAreForAdministrators(t *testing.T) {
	t.Parallel()
	b := servicetest.NewBacking(t, store.Schema())
	s := startOn(t, b, map[string]string{"ADMIN_API_KEYS": "alice=key-of-alice-01234,bob=key-of-bob-01234"})
	closed := startOn(t, b, map[string]string{"ADMIN_API_KEYS": ""})
	variables := strings.NewReplacer("{projectId}", "pr_1", "{keyId}", "key_1")
	wrong := []string{"", "key-of-carol-01234", "alice=key-of-alice-01234", servicetest.AdminKey, servicetest.IngestKey, servicetest.InternalKey, b.Keys.Key("pr_1")}
	asked := 0
	for _, r := range routes.Internal() {
		if r.Service != routes.Region || r.Auth != routes.AdminKey {
			continue
		}
		for _, method := range r.Methods {
			asked++
			request := servicetest.Request{Method: method, Path: variables.Replace(r.Template) + "?unknown=1"}
			for _, key := range wrong {
				request.Key = key
				if a := s.DoInternal(t, request); a.Status != 401 || method != "HEAD" && !strings.Contains(string(a.Body), `"projectId":"pr_1"`) {
					t.Errorf("%s %s with %q: %d %s", method, r.Template, key, a.Status, a.Body)
				}
			}
			request.Key = "key-of-bob-01234"
			if a := s.DoInternal(t, request); a.Status != 400 {
				t.Errorf("%s %s with an admin key: %d", method, r.Template, a.Status)
			}
			if a := closed.DoInternal(t, request); a.Status != 401 {
				t.Errorf("%s %s where no admin key is set: %d", method, r.Template, a.Status)
			}
			if a := s.Do(t, request); a.Status != 404 {
				t.Errorf("%s %s on the public port: %d", method, r.Template, a.Status)
			}
		}
	}
	if asked != 5 {
		t.Errorf("%d operations; want 5", asked)
	}
	// An admin key is not accepted for anything else.
	for _, path := range []string{"/internal/projects/pr_1/settings", "/internal/projects"} {
		if a := s.DoInternal(t, servicetest.Request{Method: map[bool]string{true: "POST", false: "GET"}[path == "/internal/projects"], Path: path, Key: "key-of-bob-01234"}); a.Status != 401 {
			t.Errorf("%s with an admin key: %d", path, a.Status)
		}
	}
}

// TestKeysOutOfReach checks that key operations are answered 503 without AUTH_ADMIN_DATABASE_URL, or while its server
// is unreachable. They need no INGEST_DATABASE_URL.
func TestKeysOutOfReach(t *testing.T) {
	t.Parallel()
	b := servicetest.NewBacking(t, store.Schema())
	for name, environ := range map[string]map[string]string{
		"not set":      {"AUTH_ADMIN_DATABASE_URL": ""},
		"out of reach": {"AUTH_ADMIN_DATABASE_URL": "postgres://auth_admin@127.0.0.1:1/auth?sslmode=disable"},
	} {
		s := startOn(t, b, environ)
		for _, r := range []struct{ method, path string }{
			{"GET", "pr_1/keys"}, {"POST", "pr_1/keys"}, {"POST", "pr_1/keys/key_1/rotate"}, {"DELETE", "pr_1/keys/key_1"},
		} {
			a := administer(t, s, r.method, r.path, "")
			servicetest.CheckError(t, a, 503, "unavailable", object{"projectId": "pr_1"})
			if says := strings.Contains(string(a.Body), "AUTH_ADMIN_DATABASE_URL"); says != (name == "not set") {
				t.Errorf("%s: %s", name, a.Body)
			}
			if strings.Contains(string(a.Body), "127.0.0.1") {
				t.Errorf("%s: %s", name, a.Body)
			}
		}
		if a := s.DoInternal(t, servicetest.Request{Path: "/internal/projects/pr_1/keys"}); a.Status != 401 {
			t.Errorf("%s, without a key: %d", name, a.Status)
		}
	}
	s := startOn(t, b, map[string]string{"INGEST_DATABASE_URL": ""})
	must(t, s, "POST", "pr_1/keys", "")
}

// TestKeysAudit checks that each key operation has one audit line, even if the log level is error. No line of the log
// contains a key.
func TestKeysAudit(t *testing.T) {
	t.Parallel()
	b := servicetest.NewBacking(t, store.Schema())
	_, owned, err := b.Keys.MintOwned(t.Context(), pgkeys.OwnedOptions{
		MintOptions: pgkeys.MintOptions{ProjectID: "pr_1"}, Owner: auth.Owner{Realm: "cluster", ID: "1", Name: "APIKey shop/reports"}, Number: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"debug", "error"} {
		s := startOn(t, b, map[string]string{"LOG_LEVEL": level, "ADMIN_API_KEYS": "alice=key-of-alice-01234,tester=" + servicetest.AdminKey})
		minted := must(t, s, "POST", "pr_1/keys", "")
		id := minted["id"].(string)
		rotated := must(t, s, "POST", "pr_1/keys/"+id+"/rotate", "")
		if list := listKeys(t, s, "pr_1"); list[0]["id"] != owned.ID || list[0]["owner"] != "APIKey shop/reports" {
			t.Errorf("%v has no owner", list[0])
		}
		must(t, s, "DELETE", "pr_1/keys/"+id, "")
		administer(t, s, "DELETE", "pr_2/keys/"+id, "")
		administer(t, s, "POST", "pr_1/keys", `{"key":"canary\n"}`)
		s.DoInternal(t, servicetest.Request{Path: "/internal/projects/pr_3/keys", Key: "key-of-alice-01234"})
		s.DoInternal(t, servicetest.Request{Path: "/internal/projects/pr_4/keys", Key: "key-of-nobody-01234"})
		if err := s.Stop(); err != nil { // flushes the log
			t.Fatal(err)
		}
		line := func(actor, action, project, key, outcome string) object {
			o := object{"actor": actor, "action": action, "project": project, "outcome": outcome}
			if key != "" {
				o["key_id"] = key
			}
			return o
		}
		want := []object{
			line("tester", "keys.mint", "pr_1", id, "done"),
			servicetest.With(line("tester", "keys.rotate", "pr_1", id, "done"), "new_key_id", rotated["id"]),
			line("tester", "keys.list", "pr_1", "", "done"),
			line("tester", "keys.revoke", "pr_1", id, "done"),
			line("tester", "keys.revoke", "pr_2", id, "key_not_found"),
			line("tester", "keys.mint", "pr_1", "", "invalid_body"),
			line("alice", "keys.list", "pr_3", "", "done"),
		}
		if diff := cmp.Diff(want, audited(t, s)); diff != "" {
			t.Errorf("LOG_LEVEL=%s: %s", level, diff)
		}
		for _, secret := range []string{keyText(t, minted), keyText(t, rotated), "canary", "key-of-alice-01234", "key-of-nobody-01234", servicetest.AdminKey} {
			if strings.Contains(s.Log(), secret) {
				t.Errorf("LOG_LEVEL=%s: the log holds %s", level, secret)
			}
		}
	}
}

// audited returns what is particular to each line of the audit log.
func audited(t *testing.T, s *servicetest.Service) (lines []object) {
	t.Helper()
	for text := range strings.Lines(s.Log()) {
		var l object
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if l["msg"] != "audit" {
			continue
		}
		if l["time"] == nil || l["request_id"] == nil {
			t.Errorf("%s has no time or request id", text)
		}
		for _, name := range []string{"time", "level", "msg", "request_id", "service"} {
			delete(l, name)
		}
		lines = append(lines, l)
	}
	return lines
}

// TestGuessedKeys checks that a client address that sends many wrong shared keys gets 429, also for a good key. Other
// addresses are served meanwhile, and the address is served again later.
func TestGuessedKeys(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"TRUSTED_PROXIES": "127.0.0.0/8"})
	lookUp := servicetest.Request{Method: "POST", Path: lookUpPath, Headers: map[string]string{"Content-Type": "application/json"}}
	for _, tt := range []struct {
		name, key string
		send      func(key, address string) servicetest.Answer
	}{
		{"an internal key", servicetest.InternalKey, func(key, address string) servicetest.Answer {
			r := lookUp
			r.Key, r.Body = key, strings.NewReader(`{"projectId":"pr_1"}`)
			r.Headers["X-Forwarded-For"] = address
			return s.Do(t, r)
		}},
		{"an ingest key", servicetest.IngestKey, func(key, address string) servicetest.Answer {
			return s.DoInternal(t, servicetest.Request{Method: "POST", Path: "/internal/projects", Key: key, Headers: map[string]string{"X-Forwarded-For": address, "Content-Type": "application/x-ndjson"}})
		}},
		{"a key of an administrator", servicetest.AdminKey, func(key, address string) servicetest.Answer {
			return s.DoInternal(t, servicetest.Request{Path: "/internal/projects/pr_1/keys", Key: key, Headers: map[string]string{"X-Forwarded-For": address}})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var refused servicetest.Answer
			eventually.True(t, "wrong keys get 429", func() bool {
				for i := range 200 {
					if refused = tt.send(fmt.Sprintf("wrong-key-0123456789-%d", i), "192.0.2.1"); refused.Status != 401 {
						return true
					}
				}
				return false
			})
			if refused.Status != 429 || refused.Header.Get("Retry-After") != "1" || !strings.Contains(string(refused.Body), `"rate_limited"`) {
				t.Errorf("%d %v %s", refused.Status, refused.Header, refused.Body)
			}
			if a := tt.send(tt.key, "192.0.2.2"); a.Status != 200 {
				t.Errorf("a good key from another address: %d %s", a.Status, a.Body)
			}
			eventually.True(t, "the address is served again", func() bool { return tt.send(tt.key, "192.0.2.1").Status == 200 })
		})
	}
}

// TestShortKeys checks that a process does not start with a key that can be guessed or cannot be sent, and says so
// without the key.
func TestShortKeys(t *testing.T) {
	t.Parallel()
	for variable, format := range map[string]string{"INGEST_API_KEYS": "%s", "INTERNAL_API_KEYS": "%s", "ADMIN_API_KEYS": "alice=%s"} {
		for key, good := range map[string]bool{"canary-89012345": false, "canary-890123456": true, "canary" + strings.Repeat("x", 251): false, "canary-8901 23456": false} {
			err := config.Load(new(Config), map[string]string{"DATABASE_URL": "postgres://127.0.0.1/region", variable: fmt.Sprintf("bob=key-of-bob-01234,"+format, key)})
			if good != (err == nil) {
				t.Errorf("%s with a key of %d characters: %v", variable, len(key), err)
			}
			if err != nil && (!strings.Contains(err.Error(), variable+" is wrong: ") || !strings.Contains(err.Error(), "16 ") || strings.Contains(err.Error(), "canary")) {
				t.Errorf("%v; want a fault of %s that names the rule and not the key", err, variable)
			}
		}
	}
}
