package app_test

import (
	"net/http"
	"testing"

	"github.com/lectern-dev/lectern/proxy/app"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
)

func TestAccessByKey(t *testing.T) {
	keys := authtest.New(t, config.ServerURL{})
	good := keys.Key(project, auth.ProxyUse)
	reads := keys.Key(project)
	others := keys.Key("pr_other", auth.ProxyUse)
	w := run(t, setup{open: true, configure: func(c *app.Config) { c.Auth = keys.Config }, manifests: func(w *world) string {
		return endpoint(w, "server", m{"access": "Key", "origins": []m{{"domain": "example.net"}}, "destinations": []m{{"pattern": `https://api\.lectern\.test:\d+/.*`}}}) + endpoint(w, "web", m{"destinations": []m{{"domain": "allowed.test"}}})
	}})
	ask := func(key ...string) call {
		c := call{target: w.url("/{{cred_main}}"), without: []string{"Origin"}}
		for _, k := range key {
			c.headers = append(c.headers, "X-Proxy-Api-Key", k)
		}
		return c
	}
	s := w.do(ask(good)).seen(t)
	if s.URI != "/"+canary || s.Header["X-Proxy-Api-Key"] != nil {
		t.Errorf("the target saw %+v", s)
	}
	w.do(call{target: w.url("/"), headers: []string{"X-Proxy-Api-Key", good}}.from("https://example.net")).seen(t)
	before := w.dialled()
	for _, tt := range []struct {
		name   string
		in     call
		status int
		code   string
	}{
		{"no key", ask(), 401, "unauthorized"},
		{"no key, and no such project", call{target: w.url("/"), without: []string{"Origin", "X-Project-Id"}, headers: []string{"X-Project-Id", "pr_nobody"}}, 403, "origin_not_allowed"},
		{"malformed", ask("rk_x"), 401, "unauthorized"},
		{"another project's", ask(others), 401, "unauthorized"},
		{"twice", ask(good, good), 401, "unauthorized"},
		{"without the scope", ask(reads), 403, "insufficient_scope"},
		{"in another header", call{target: w.url("/"), without: []string{"Origin"}, headers: []string{"X-Api-Key", good}}, 401, "unauthorized"},
		{"a key, and an origin that is not allowed", call{target: w.url("/"), headers: []string{"X-Proxy-Api-Key", good}}.from("https://evil.tld"), 403, "origin_not_allowed"},
		{"an origin that is allowed, and no key", call{target: w.url("/")}.from("https://example.net"), 401, "unauthorized"},
		{"a key does not open what is open by origin", call{target: "https://allowed.test/", headers: []string{"X-Proxy-Api-Key", good}, without: []string{"Origin"}}, 403, "destination_not_allowed"},
	} {
		got := w.do(tt.in)
		if got.StatusCode != tt.status || got.code() != tt.code {
			t.Errorf("%s: %d %s", tt.name, got.StatusCode, got.body)
		}
		if got.StatusCode == http.StatusUnauthorized && got.Header.Get("WWW-Authenticate") != "ApiKey" {
			t.Errorf("%s: %v", tt.name, got.Header)
		}
	}
	if w.dialled() != before {
		t.Error("something was dialled")
	}
}

func TestAccessByKeyWithoutAStore(t *testing.T) {
	w := run(t, setup{open: true, manifests: func(w *world) string { return endpoint(w, "server", m{"access": "Key"}) }})
	got := w.do(call{target: w.url("/"), without: []string{"Origin"}, headers: []string{"X-Proxy-Api-Key", "rk_x"}})
	if got.StatusCode != http.StatusServiceUnavailable || got.code() != "unavailable" {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}
