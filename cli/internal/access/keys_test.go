package access_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
	region "github.com/lectern-dev/lectern/services/region/app"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// startRegion runs the region service, which brings its schema with it.
func startRegion(t *testing.T) *servicetest.Service {
	t.Helper()
	return servicetest.Start(t, servicetest.NewBacking(t, clitest.Bare), region.Run, func(c *region.Config) *service.Config { return &c.Config }, clitest.Migrating(nil))
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s := startRegion(t)
	keys := s.Keys.Authenticator(authn.Options{})
	accepted := func(key string) bool {
		_, err := keys.Verifier.Verify(t.Context(), "pr_1", key)
		return err == nil
	}
	environ := map[string]string{
		"LECTERN_INTERNAL_URL": s.InternalURL, "LECTERN_ADMIN_API_KEY": servicetest.AdminKey, "LECTERN_PROJECT_ID": "pr_1",
	}
	list := func() []client.APIKey {
		return clitest.Decode[[]client.APIKey](t, clitest.Must(t, environ, "", "keys", "list", "-o", "json"))
	}

	minted := clitest.Run(t, "", environ, "keys", "mint", "--name", "reports", "--scope", "entries:read", "--rate", "50", "--expires-in", "20000h")
	key := strings.TrimSuffix(minted.Out, "\n")
	if minted.Code != 0 || !strings.HasPrefix(key, "rk_") || strings.ContainsAny(key, " \n") || strings.Contains(minted.Err, key) {
		t.Fatalf("%+v, want the key alone on standard output", minted)
	}
	if !accepted(key) {
		t.Error("the new key is refused")
	}
	first := list()[0]
	if first.Name != "reports" || *first.Rate != 50 || first.State != "active" || len(first.Scopes) != 1 || first.ExpiresAt == nil {
		t.Errorf("%+v", first)
	}
	table := clitest.Run(t, "", environ, "keys", "list", "-o", "table")
	if !strings.Contains(table.Out, "LAST USED") || !strings.Contains(table.Out, first.ID) || !strings.Contains(table.Out, "50/s") || strings.Contains(table.Out, key) {
		t.Errorf("%+v", table)
	}

	rotated := clitest.Run(t, "", environ, "keys", "rotate", first.ID, "--overlap", "1h", "--quiet")
	second := strings.TrimSuffix(rotated.Out, "\n")
	if rotated.Code != 0 || rotated.Err != "" || !accepted(second) || !accepted(key) {
		t.Errorf("%+v: want both keys to be good", rotated)
	}
	if n := len(list()); n != 2 {
		t.Errorf("%d keys, want 2", n)
	}

	if r := clitest.Run(t, "", environ, "keys", "revoke", first.ID); r.Code != 0 || r.Out != "" || !strings.Contains(r.Err, "within a second") {
		t.Errorf("%+v", r)
	}
	if state := list()[0].State; state != "revoked" {
		t.Errorf("state %q, want revoked", state)
	}
	eventually.True(t, "the revoked key is refused", func() bool { return !accepted(key) })
	if !accepted(second) {
		t.Error("the other key is refused")
	}

	brought := clitest.Decode[client.MintedAPIKey](t, clitest.Must(t, environ, "brought along\n", "keys", "mint", "--import", "-o", "json", "--expires-at", "2100-01-01"))
	if brought.Key != "brought along" || !brought.Foreign || !brought.ExpiresAt.Equal(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", brought)
	}
	_, owned, err := s.Keys.MintOwned(t.Context(), pgkeys.OwnedOptions{
		MintOptions: pgkeys.MintOptions{ProjectID: "pr_1"},
		Owner:       auth.Owner{Realm: "cluster", ID: "1", Name: "APIKey shop/reports"},
		Number:      1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if keys := list(); keys[0].Owner != nil || keys[3].ID != owned.ID || *keys[3].Owner != "APIKey shop/reports" {
		t.Errorf("%+v: want the owner of the fourth alone", keys)
	}
	if table := clitest.Run(t, "", environ, "keys", "list"); !strings.Contains(table.Out, "APIKey shop/reports") {
		t.Errorf("%s: want the owner", table.Out)
	}

	for _, tt := range []struct {
		name   string
		change map[string]string
		args   []string
		code   int
		says   string
	}{
		{"unknown key", nil, []string{"revoke", "none"}, shell.ExitFailure, "see lectern keys list"},
		{"unknown key to rotate", nil, []string{"rotate", "none"}, shell.ExitFailure, "see lectern keys list"},
		{"another project's", map[string]string{"LECTERN_PROJECT_ID": "pr_2"}, []string{"revoke", owned.ID}, shell.ExitFailure, "see lectern keys list"},
		{"wrong admin key", map[string]string{"LECTERN_ADMIN_API_KEY": servicetest.IngestKey}, []string{"list"}, shell.ExitFailure, "check LECTERN_ADMIN_API_KEY"},
		{"public port", map[string]string{"LECTERN_INTERNAL_URL": s.URL}, []string{"list"}, shell.ExitFailure, "check LECTERN_INTERNAL_URL"},
		{"refused by the service", nil, []string{"mint", "--rate", "1000000001"}, shell.ExitFailure, `"rate" was given as "1000000001"; allowed: 0 to 1000000000`},
		{"no admin key", map[string]string{"LECTERN_ADMIN_API_KEY": ""}, []string{"list"}, shell.ExitUsage, "set LECTERN_ADMIN_API_KEY"},
		{"no key", nil, []string{"mint", "--import"}, shell.ExitUsage, "holds no key"},
	} {
		with := maps.Clone(environ)
		maps.Copy(with, tt.change)
		r := clitest.Run(t, "", with, append([]string{"keys"}, tt.args...)...)
		if r.Code != tt.code || !strings.Contains(r.Err, tt.says) || r.Out != "" {
			t.Errorf("%s: %+v; want %d and %q", tt.name, r, tt.code, tt.says)
		}
	}
}

// A key may have been minted although its answer did not come: it is not asked for again. A list is.
func TestMintingIsNotRepeated(t *testing.T) {
	t.Parallel()
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.Method]++
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	environ := map[string]string{"LECTERN_INTERNAL_URL": server.URL, "LECTERN_ADMIN_API_KEY": "ak_1", "LECTERN_PROJECT_ID": "pr_1"}
	for _, args := range [][]string{{"mint"}, {"rotate", "key_1"}, {"list"}} {
		if r := clitest.Run(t, "", environ, append([]string{"keys"}, args...)...); r.Code != shell.ExitFailure {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if asked["POST"] != 2 || asked["GET"] < 2 {
		t.Errorf("asked %v; want each POST once, and GET repeated", asked)
	}
}

// TestGrant checks the request of keys grant and what the command prints, and the grant in the list of keys.
func TestGrant(t *testing.T) {
	t.Parallel()
	var asked string
	const record = `"id":"key_1","project_id":"pr_1","scopes":["entries:read"],"state":"active","created_at":"2026-11-01T12:00:00Z","expires_at":null,"owner":null,`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		switch asked = string(body); r.Method {
		case "GET":
			_, _ = io.WriteString(w, `[{`+record+`"identity":{"issuer":"https://i","group":"analysts"}},{`+record+`"name":"reports"}]`)
		default:
			_, _ = io.WriteString(w, `{`+record+`"identity":{"issuer":"https://i","subject":"alice"}}`)
		}
	}))
	defer server.Close()
	environ := map[string]string{"LECTERN_INTERNAL_URL": server.URL, "LECTERN_ADMIN_API_KEY": "ak_1", "LECTERN_PROJECT_ID": "pr_1"}
	for _, tt := range []struct {
		args           []string
		asks, out, err string
	}{
		{
			[]string{"--subject", "alice", "--name", "Alice", "--scope", "entries:read", "--expires-in", "1d", "--rate", "50"},
			`{"name":"Alice","scopes":["entries:read"],"expires_at":"2026-11-02T12:00:00Z","rate":50,"identity":{"issuer":"https://i","subject":"alice"}}`,
			"key_1\n", "Grant key_1 of project pr_1 for alice of https://i, scopes entries:read, no expiry:\n",
		},
		{
			[]string{"--group", "analysts", "-o", "ndjson"},
			`{"identity":{"issuer":"https://i","group":"analysts"}}`,
			`"identity":{"issuer":"https://i","subject":"alice"}}` + "\n", "",
		},
	} {
		r := clitest.Run(t, "", environ, append([]string{"keys", "grant", "--issuer", "https://i"}, tt.args...)...)
		if r.Code != shell.ExitOK || asked != tt.asks || !strings.HasSuffix(r.Out, tt.out) || r.Err != tt.err || strings.Contains(r.Out, `"key":`) {
			t.Errorf("%q asked %s: %+v", tt.args, asked, r)
		}
	}
	table := clitest.Run(t, "", environ, "keys", "list", "-o", "table")
	if !strings.Contains(table.Out, "group analysts of https://i") || !strings.Contains(table.Out, "reports") {
		t.Errorf("%+v", table)
	}
}
