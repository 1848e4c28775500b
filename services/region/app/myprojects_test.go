package app

import (
	"fmt"
	"testing"

	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/issuertest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestPagesOfMyProjects reads the projects of an imported key, and of a group, page by page. A page has 1,000 projects unless
// the client asks for fewer. Revoked rights are no part of a page.
func TestPagesOfMyProjects(t *testing.T) {
	t.Parallel()
	issuer := issuertest.Start(t)
	s := start(t, map[string]string{"TOKEN_ISSUERS": issuer.Setting(), "FOREIGN_KEYS": "true"})
	const key, number = "the key of a chain of shops", 1002
	for i := range number {
		s.Keys.Minted(pgkeys.MintOptions{ProjectID: fmt.Sprintf("pr_%04d", i), Value: config.NewSecret(key)})
	}
	for i, name := range []string{"a", "a", "b"} { // the groups have pr_1 and pr_2, and share pr_0
		grant(t, s, fmt.Sprint("pr_", i), object{"identity": object{"issuer": issuer.URL, "group": name}})
	}
	grant(t, s, "pr_0", object{"identity": object{"issuer": issuer.URL, "group": "b"}})
	revoked := grant(t, s, "pr_3", object{"identity": object{"issuer": issuer.URL, "group": "b"}})
	must(t, s, "DELETE", "pr_3/keys/"+revoked, "")

	eventually.True(t, "the service knows the imported key", func() bool { return s.Get(t, key, "/me/projects").Status == 200 })
	first, a := s.List(t, key, "/me/projects")
	rest, last := s.List(t, key, "/me/projects?cursor="+a.Header.Get("X-Next-Cursor"))
	if len(first) != 1000 || len(rest) != number-1000 || rest[0]["projectId"] != "pr_1000" || last.Header.Get("Link") != "" {
		t.Errorf("pages of %d and %d projects, the second from %v", len(first), len(rest), rest[0])
	}
	if link := a.Header.Get("Link"); link != "<"+s.URL+"/me/projects?cursor="+a.Header.Get("X-Next-Cursor")+`>; rel="next"` {
		t.Errorf("Link %q", link)
	}
	if got := servicetest.Column(s.Walk(t, key, "/me/projects?limit=501", nil), "projectId"); len(got) != number || got[0] != "pr_0000" || got[number-1] != "pr_1001" {
		t.Errorf("a walk has %d projects", len(got))
	}

	var walked string
	for path := "/me/projects?limit=1"; path != ""; {
		a := s.Do(t, servicetest.Request{Path: path, Headers: map[string]string{
			"Authorization": "Bearer " + issuer.Token("ana", map[string]any{"groups": []string{"a", "b"}}), "Accept": "application/x-ndjson",
		}})
		walked += string(a.Body)
		path = ""
		if cursor := a.Header.Get("X-Next-Cursor"); cursor != "" {
			path = "/me/projects?limit=1&cursor=" + cursor
		}
	}
	const scopes = `","title":null,"scopes":["entries:read","embeddables:read","experiments:read"]}` + "\n"
	if want := `{"projectId":"pr_0` + scopes + `{"projectId":"pr_1` + scopes + `{"projectId":"pr_2` + scopes; walked != want {
		t.Errorf("pages of a token: %s", walked)
	}

	for _, query := range []string{"limit=0", "limit=1001", "cursor=x"} {
		if a := s.Get(t, key, "/me/projects?"+query); a.Status != 400 {
			t.Errorf("%s: %d %s", query, a.Status, a.Body)
		}
	}
	// The cursor of one key serves another, whose page is empty and no refusal.
	end, _ := s.List(t, s.Keys.Key("pr_0"), "/me/projects?cursor="+a.Header.Get("X-Next-Cursor"))
	if len(end) != 0 {
		t.Errorf("after the last project: %v", end)
	}
}
