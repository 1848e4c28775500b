package command

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/keyring"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
)

func TestKeys(t *testing.T) {
	store := authtest.New(t, config.Secret{})
	ring := store.Keyring(keyring.Options{})
	accepted := func(key string) bool {
		_, err := ring.Verifier.Verify(t.Context(), "pr_1", key)
		return err == nil
	}
	environ := map[string]string{"AUTH_ADMIN_DATABASE_URL": store.Config.AdminURL.Reveal(), "LECTERN_PROJECT_ID": "pr_1"}
	list := func() []keyOutput {
		r := lectern(t, "", environ, "keys", "list", "--json")
		var keys []keyOutput
		if err := json.Unmarshal([]byte(r.out), &keys); err != nil || r.code != 0 {
			t.Fatal(r, err)
		}
		return keys
	}

	minted := lectern(t, "", environ, "keys", "mint", "--name", "reports", "--scope", "entries:read", "--rate", "50", "--expires-in", "20000h")
	key := strings.TrimSuffix(minted.out, "\n")
	if minted.code != 0 || !strings.HasPrefix(key, "rk_") || strings.ContainsAny(key, " \n") || strings.Contains(minted.err, key) {
		t.Fatalf("%+v, want the key alone on standard output", minted)
	}
	if !accepted(key) {
		t.Error("the new key is refused")
	}
	first := list()[0]
	if first.Name != "reports" || first.Rate != 50 || first.State != "active" || len(first.Scopes) != 1 || first.ExpiresAt == nil || first.Key != "" {
		t.Errorf("%+v", first)
	}
	table := lectern(t, "", environ, "keys", "list")
	if !strings.Contains(table.out, "LAST USED") || !strings.Contains(table.out, first.ID) || strings.Contains(table.out, key) {
		t.Errorf("%+v", table)
	}

	rotated := lectern(t, "", environ, "keys", "rotate", first.ID, "--overlap", "1h", "--quiet")
	second := strings.TrimSuffix(rotated.out, "\n")
	if rotated.code != 0 || rotated.err != "" || !accepted(second) || !accepted(key) {
		t.Errorf("%+v: want both keys to be good", rotated)
	}
	if n := len(list()); n != 2 {
		t.Errorf("%d keys, want 2", n)
	}

	if r := lectern(t, "", environ, "keys", "revoke", first.ID); r.code != 0 || r.out != "" || !strings.Contains(r.err, "within AUTH_CACHE_TTL") {
		t.Errorf("%+v", r)
	}
	if state := list()[0].State; state != "revoked" {
		t.Errorf("state %q, want revoked", state)
	}
	until(t, "the revoked key is refused", func() bool { return !accepted(key) })
	if !accepted(second) {
		t.Error("the other key is refused")
	}

	_, owned, err := store.MintOwned(t.Context(), pgkeys.OwnedOptions{
		MintOptions: pgkeys.MintOptions{ProjectID: "pr_1"},
		Owner:       auth.Owner{Realm: "cluster", ID: "1", Name: "APIKey shop/reports"},
		Number:      1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if keys := list(); keys[0].Owner != "" || keys[2].ID != owned.ID || keys[2].Owner != "APIKey shop/reports" {
		t.Errorf("%+v: want the owner of the third alone", keys)
	}
	if table := lectern(t, "", environ, "keys", "list"); !strings.Contains(table.out, "APIKey shop/reports") {
		t.Errorf("%s: want the owner", table.out)
	}

	for _, args := range [][]string{{"revoke", "none"}, {"rotate", "none"}} {
		r := lectern(t, "", environ, append([]string{"keys"}, args...)...)
		if r.code != exitFailure || !strings.Contains(r.err, "see lectern keys list") || r.out != "" {
			t.Errorf("%v: %+v", args, r)
		}
	}
	for _, args := range [][]string{{"--scope", "write"}, {"--expires-in", "1h", "--expires-at", "2030-01-01"}, {"--import"}, {"--redis-url", "http://x"}} {
		r := lectern(t, "", environ, append([]string{"keys", "mint"}, args...)...)
		if r.code != exitUsage || r.out != "" {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestKeyIsGoodForTheAPI(t *testing.T) {
	store := authtest.New(t, config.Secret{})
	environ := map[string]string{"AUTH_ADMIN_DATABASE_URL": store.Config.AdminURL.Reveal()}
	r := lectern(t, "", environ, "keys", "mint", "--project", "pr_1", "--json")
	var minted keyOutput
	if err := json.Unmarshal([]byte(r.out), &minted); err != nil || minted.Key == "" || minted.ID == "" {
		t.Fatal(r, err)
	}
	if minted.CreatedAt.Location() != time.UTC {
		t.Errorf("created at %v", minted.CreatedAt)
	}
	a := newAPI(t, 1)
	var sent string
	a.with(func(a *api) {
		a.before = func(_ int, r *http.Request) (int, string) { sent = r.Header.Get("X-Api-Key"); return 0, "" }
	})
	e := a.environ()
	e["LECTERN_API_KEY"] = minted.Key
	lectern(t, "", e, "get", "entries")
	a.Close()
	if sent != minted.Key {
		t.Errorf("sent %q", sent)
	}
}
