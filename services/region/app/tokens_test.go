package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/issuertest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// bearer returns the header of a token.
func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

// grant gives rights in a project to a subject or a group, and returns the id of the record.
func grant(t *testing.T, s *servicetest.Service, project string, body object) string {
	t.Helper()
	return must(t, s, "POST", project+"/keys", text(t, body))["id"].(string)
}

// TestTokens gives rights to subjects and groups over HTTP, and uses them by tokens, at two processes with Redis.
func TestTokens(t *testing.T) {
	t.Parallel()
	issuer := issuertest.Start(t)
	environ := map[string]string{
		"TOKEN_ISSUERS": issuer.Setting(), "RATE_LIMIT": "1000",
		"INTERNAL_IDENTITIES": fmt.Sprintf(`[{"issuer":%q,"subject":"system:serviceaccount:shop:api"}]`, issuer.URL),
	}
	s := start(t, environ)
	other := startOn(t, s.Backing, environ)
	put(t, s, "pr_1", "Solar", nil)
	person := func(name string) object { return object{"issuer": issuer.URL, "subject": name} }
	group := func(name string) object { return object{"issuer": issuer.URL, "group": name} }
	// scopes returns the scopes of a token in a project, or the status of a refusal.
	scopes := func(from *servicetest.Service, project, token string) string {
		t.Helper()
		a := from.Do(t, servicetest.Request{Path: "/projects/" + project + "/key", Headers: bearer(token)})
		if a.Status != 200 {
			return fmt.Sprint(a.Status)
		}
		var key struct{ Scopes []string }
		a.JSON(t, &key)
		return strings.Join(key.Scopes, " ")
	}
	soon := func(what, want, project, token string) {
		t.Helper()
		for _, from := range []*servicetest.Service{s, other} {
			eventually.Succeeds(t, what, func() error {
				if got := scopes(from, project, token); got != want {
					return fmt.Errorf("%s, want %s", got, want)
				}
				return nil
			})
		}
	}
	groups := []string{"sales", "night shift"}
	for n := range 400 {
		groups = append(groups, fmt.Sprintf("group %03d", n))
	}
	ana := issuer.Token("ana", map[string]any{"groups": groups})
	if got := scopes(s, "pr_1", ana); got != "401" {
		t.Fatalf("without rights: %s", got)
	}

	sales := grant(t, s, "pr_1", object{"identity": group("sales"), "scopes": []string{"entries:read"}})
	grant(t, s, "pr_1", object{"identity": group("night shift"), "scopes": []string{"proxy:use"}, "expires_at": time.Now().Add(4 * time.Second)})
	grant(t, s, "pr_2", object{"identity": person("ana")})
	soon("the rights of groups add up", "entries:read proxy:use", "pr_1", ana)
	soon("the rights of a group that expired end", "entries:read", "pr_1", ana)
	soon("one project is not another", "401", "pr_3", ana)

	a := s.Do(t, servicetest.Request{Path: "/me/projects", Headers: bearer(ana)})
	var projects []object
	a.JSON(t, &projects)
	want := []object{
		{"projectId": "pr_1", "title": "Solar", "scopes": []any{"entries:read"}},
		{"projectId": "pr_2", "title": nil, "scopes": []any{"entries:read", "embeddables:read", "experiments:read"}},
	}
	if diff := cmp.Diff(want, projects); diff != "" {
		t.Errorf("projects: %s", diff)
	}
	key := s.Keys.Key("pr_1")
	s.Get(t, key, "/me/projects").JSON(t, &projects)
	if len(projects) != 1 || projects[0]["projectId"] != "pr_1" {
		t.Errorf("projects of a key: %v", projects)
	}
	if a := s.Do(t, servicetest.Request{Path: "/me/projects", Headers: bearer(issuer.Token("bob", nil))}); string(a.Body) != "[]" {
		t.Errorf("projects of somebody without rights: %d %s", a.Status, a.Body)
	}

	own := grant(t, s, "pr_1", object{"identity": person("ana"), "scopes": []string{"experiments:read"}, "rate": 1, "name": "Ana"})
	soon("the subject's record decides", "experiments:read", "pr_1", ana)
	for i := 0; scopes(s, "pr_1", ana) != "429"; i++ {
		if i > 1000 {
			t.Fatal("the rate of 1 a second does not hold")
		}
	}
	if got := scopes(s, "pr_1", issuer.Token("cem", map[string]any{"groups": []string{"sales"}})); got != "entries:read" {
		t.Errorf("the rate of one subject concerns another: %s", got)
	}
	for what, end := range map[string]func(){
		"was revoked": func() { must(t, s, "DELETE", "pr_1/keys/"+own, "") },
		"has expired": func() {
			if _, err := s.Keys.Expire(t.Context(), "pr_1", own, time.Now()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		end()
		soon("the groups count, as the subject's record "+what, "entries:read", "pr_1", ana)
		if again := grant(t, s, "pr_1", object{"identity": person("ana")}); again != own {
			t.Errorf("granted again as %s, was %s", again, own)
		}
		soon("rights are granted again", auth.DefaultScopes.String(), "pr_1", ana)
	}
	must(t, s, "DELETE", "pr_1/keys/"+sales, "")
	soon("the rights of a revoked group end", "401", "pr_1", issuer.Token("cem", map[string]any{"groups": []string{"sales"}}))

	for _, record := range listKeys(t, s, "pr_1") {
		if identity := record["identity"]; record["id"] == own && cmp.Diff(person("ana"), identity) != "" || record["id"] == sales && cmp.Diff(group("sales"), identity) != "" {
			t.Errorf("listed: %v", record)
		}
	}
	for name, tt := range map[string]struct {
		request servicetest.Request
		project any
	}{
		"a token and a key":         {servicetest.Request{Path: "/projects/pr_1/key", Key: key, Headers: bearer(ana)}, "pr_1"},
		"no token":                  {servicetest.Request{Path: "/projects/pr_1/key", Headers: bearer("a.b.c")}, "pr_1"},
		"no token, for projects":    {servicetest.Request{Path: "/me/projects", Headers: bearer("a.b.c")}, nil},
		"no key or token, projects": {servicetest.Request{Path: "/me/projects"}, nil},
	} {
		a := s.Do(t, tt.request)
		servicetest.CheckError(t, a, 401, "unauthorized", object{"projectId": tt.project})
		if challenge := a.Header.Get("WWW-Authenticate"); challenge != "ApiKey, Bearer" {
			t.Errorf("%s: WWW-Authenticate %q", name, challenge)
		}
	}
	if a := s.Do(t, servicetest.Request{Path: "/projects/pr_1/key", Key: key, Headers: map[string]string{"Authorization": "Basic YTpi"}}); a.Status != 200 {
		t.Errorf("a key next to another scheme: %d", a.Status)
	}

	for name, tt := range map[string]struct {
		headers map[string]string
		want    int
	}{
		"a subject of INTERNAL_IDENTITIES": {bearer(issuer.Token("system:serviceaccount:shop:api", nil)), 200},
		"another subject":                  {bearer(ana), 401},
		"the internal key":                 {map[string]string{"X-Api-Key": servicetest.InternalKey}, 200},
		"nothing":                          {nil, 401},
	} {
		r := servicetest.Request{Method: http.MethodPost, Path: lookUpPath, Headers: map[string]string{"Content-Type": "application/json"}, Body: strings.NewReader(`{"projectId":"pr_1"}`)}
		for header, value := range tt.headers {
			r.Headers[header] = value
		}
		if a := s.Do(t, r); a.Status != tt.want {
			t.Errorf("the region for %s: %d %s; want %d", name, a.Status, a.Body, tt.want)
		}
	}

	issuer.Down.Store(true)
	issuer.Rotate()
	eventually.True(t, "a token with an unknown signing key gets 503", func() bool { return scopes(s, "pr_1", issuer.Token("ana", nil)) == "503" })
	if got := scopes(s, "pr_1", ana); got == "503" || got == "401" {
		t.Errorf("a token with a known signing key while the issuer is down: %s", got)
	}
	if plain := startOn(t, s.Backing, nil); scopes(plain, "pr_1", ana) != "401" || plain.Get(t, key, "/projects/pr_1/key").Header.Get("WWW-Authenticate") != "" {
		t.Error("a process without TOKEN_ISSUERS accepts a token")
	}
}

// TestUIDs checks that a grant with a uid is for the tokens of that uid alone, and a grant without one for all.
func TestUIDs(t *testing.T) {
	t.Parallel()
	issuer := issuertest.Start(t)
	s := start(t, map[string]string{"TOKEN_ISSUERS": issuer.Setting(), "RATE_LIMIT": "1000"})
	const account = "system:serviceaccount:shop:reports"
	token := func(uid string, more ...string) string {
		return issuer.Token(account, map[string]any{"kubernetes.io": map[string]any{"serviceaccount": map[string]any{"uid": uid}}, "groups": more})
	}
	first, second, plain := token("uid-1"), token("uid-2"), issuer.Token(account, nil)
	soon := func(what, token string, want int) {
		t.Helper()
		eventually.Succeeds(t, what, func() error {
			if a := s.Do(t, servicetest.Request{Path: "/projects/pr_1/key", Headers: bearer(token)}); a.Status != want {
				return fmt.Errorf("%d, want %d", a.Status, want)
			}
			return nil
		})
	}
	bound := grant(t, s, "pr_1", object{"identity": object{"issuer": issuer.URL, "subject": account, "uid": "uid-1"}})
	soon("the account", first, 200)
	soon("the account, with a group", token("uid-1", "sales"), 200)
	soon("another account of the name", second, 401)
	soon("another account of the name, with a group", token("uid-2", "sales"), 401)
	soon("a token without a uid", plain, 401)
	var projects []object
	if s.Do(t, servicetest.Request{Path: "/me/projects", Headers: bearer(first)}).JSON(t, &projects); len(projects) != 1 {
		t.Errorf("projects of the account: %v", projects)
	}
	every := grant(t, s, "pr_1", object{"identity": object{"issuer": issuer.URL, "subject": account}})
	for _, token := range []string{first, second, plain} {
		soon("a grant of the subject is for every uid", token, 200)
	}
	must(t, s, "DELETE", "pr_1/keys/"+bound, "")
	soon("the grant of the subject is left", first, 200)
	must(t, s, "DELETE", "pr_1/keys/"+every, "")
	for _, token := range []string{first, second, plain} {
		soon("no grant is left", token, 401)
	}
	if id := grant(t, s, "pr_1", object{"identity": object{"issuer": issuer.URL, "subject": account, "uid": "uid-1"}}); id != bound {
		t.Errorf("granted again as %s, was %s", id, bound)
	}
	soon("the account is granted again", first, 200)
}

// TestGrantErrors checks that bodies with a wrong identity say what is allowed, and store nothing.
func TestGrantErrors(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const issuer = `"issuer":"https://login.example.com"`
	id := must(t, s, "POST", "pr_1/keys", `{"identity":{`+issuer+`,"subject":"ana"}}`)["id"].(string)
	for _, body := range []string{
		`{"identity":"ana"}`, `{"identity":{}}`, `{"identity":{` + issuer + `}}`, `{"identity":{` + issuer + `,"subject":"a","group":"b"}}`, `{"identity":{` + issuer + `,"group":"b","uid":"u"}}`,
		`{"identity":{"issuer":"login","subject":"a"}}`, `{"identity":{` + issuer + `,"sub":"a"}}`, `{"identity":{` + issuer + `,"subject":"a"},"key":"a key of mine"}`,
		`{"identity":{` + issuer + `,"subject":"ana"}}`,
	} {
		a := administer(t, s, "POST", "pr_1/keys", body)
		if servicetest.CheckError(t, a, 400, "invalid_body", object{}); !strings.Contains(string(a.Body), "identity") {
			t.Errorf("%s: %s", body, a.Body)
		}
	}
	if a := administer(t, s, "POST", "pr_1/keys/"+id+"/rotate", ""); a.Status != 400 {
		t.Errorf("rotated without a key: %d %s", a.Status, a.Body)
	}
	if all := listKeys(t, s, "pr_1"); len(all) != 1 {
		t.Errorf("%d records", len(all))
	}
}

// TestTokenSettings checks that a wrong TOKEN_ISSUERS or INTERNAL_IDENTITIES is refused at the start, by name.
func TestTokenSettings(t *testing.T) {
	t.Parallel()
	const issuers = `[{"url":"https://login.example.com","audiences":["lectern"]}]`
	for _, tt := range []struct{ issuers, identities, named string }{
		{issuers, `[{"issuer":"https://login.example.com","subject":"a"}]`, ""},
		{issuers, `[{"issuer":"https://other.example.com","subject":"a"}]`, `INTERNAL_IDENTITIES is "https://other.example.com"`},
		{"", `[{"issuer":"https://login.example.com","subject":"a"}]`, "INTERNAL_IDENTITIES"},
		{issuers, `[{"issuer":"https://login.example.com","group":"a"}]`, "INTERNAL_IDENTITIES"},
		{issuers, `[{"issuer":"https://login.example.com"}]`, "INTERNAL_IDENTITIES"},
		{`[{"url":"login.example.com","audiences":["a"]}]`, "", `TOKEN_ISSUERS`},
	} {
		err := config.Load(new(Config), map[string]string{
			"DATABASE_URL": "postgres://127.0.0.1/region", "TOKEN_ISSUERS": tt.issuers, "INTERNAL_IDENTITIES": tt.identities,
		})
		if (tt.named == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.named) {
			t.Errorf("%s, %s: %v; want %q in the error", tt.issuers, tt.identities, err, tt.named)
		}
	}
}
