package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/issuertest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestRefusalReasons sends every kind of refused credential. The operator finds the reason in the access line and in a
// metric. The client gets the same answer for all reasons, except that a token that is too large has its size.
func TestRefusalReasons(t *testing.T) {
	t.Parallel()
	issuer := issuertest.Start(t)
	s := start(t, map[string]string{
		"TOKEN_ISSUERS": issuer.Setting(), "FOREIGN_KEYS": "true",
		"INTERNAL_IDENTITIES": fmt.Sprintf(`[{"issuer":%q,"subject":"shop"}]`, issuer.URL),
	})
	never, _ := auth.Mint()
	mistyped := never.Reveal()[:40] + "0"
	if mistyped == never.Reveal() {
		mistyped = never.Reveal()[:40] + "1"
	}
	expired, _ := s.Keys.Minted(pgkeys.MintOptions{ProjectID: "pr_1", ExpiresAt: time.Now().Add(time.Second)})
	revoked, record := s.Keys.Minted(pgkeys.MintOptions{ProjectID: "pr_1"})
	must(t, s, "DELETE", "pr_1/keys/"+record.ID, "")
	former := grant(t, s, "pr_1", object{"identity": object{"issuer": issuer.URL, "subject": "former"}})
	must(t, s, "DELETE", "pr_1/keys/"+former, "")
	eventually.True(t, "the key has expired", func() bool { return s.Get(t, expired, "/projects/pr_1/key").Status == 401 })
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{"iss": issuer.URL, "sub": "ana", "aud": issuertest.Audience, "exp": time.Now().Add(time.Hour).Unix()}

	key := func(text string) http.Header { return http.Header{"X-Api-Key": {text}} }
	token := func(subject string, more map[string]any) http.Header {
		return http.Header{"Authorization": {"Bearer " + issuer.Token(subject, more)}}
	}
	both := token("ana", nil)
	both.Set("X-Api-Key", s.Keys.Key("pr_1"))
	const own, projects, lookUp, admin = "GET /projects/pr_1/key", "GET /me/projects", "POST " + lookUpPath, "GET /internal/projects/pr_1/keys"
	count := map[apierr.Refusal]int{}
	var answer string // to every refused request of the operation own
	for i, tt := range []struct {
		name, operation string
		header          http.Header
		want            apierr.Refusal
	}{
		{"nothing", own, nil, apierr.RefusedNoKey},
		{"nothing, projects", projects, nil, apierr.RefusedNoKey},
		{"nothing, internal key", lookUp, nil, apierr.RefusedNoKey},
		{"nothing, admin key", admin, nil, apierr.RefusedNoKey},
		{"no form of a key", own, key("rk_x"), apierr.RefusedUnknown}, // as an imported key
		{"a wrong checksum", own, key(mistyped), apierr.RefusedMalformed},
		{"no text", own, key("cl\xe9"), apierr.RefusedMalformed},
		{"a key and a token", own, both, apierr.RefusedMalformed},
		{"no token", own, http.Header{"Authorization": {"Bearer a.b.c"}}, apierr.RefusedMalformed},
		{"no token, projects", projects, http.Header{"Authorization": {"Bearer a.b.c"}}, apierr.RefusedMalformed},
		{"a token of an event", own, token("ana", map[string]any{"events": object{"x": 1}}), apierr.RefusedMalformed},
		{"an unknown key", own, key(never.Reveal()), apierr.RefusedUnknown},
		{"a key of another project", own, key(s.Keys.Key("pr_2")), apierr.RefusedUnknown},
		{"an unknown imported key", own, key("pin 4711"), apierr.RefusedUnknown},
		{"an unknown key, projects", projects, key(never.Reveal()), apierr.RefusedUnknown},
		{"an unknown internal key", lookUp, key(never.Reveal()), apierr.RefusedUnknown},
		{"an unknown admin key", admin, key(never.Reveal()), apierr.RefusedUnknown},
		{"an expired key", own, key(expired), apierr.RefusedExpired},
		{"an expired token", own, token("ana", map[string]any{"exp": 1}), apierr.RefusedExpired},
		{"a revoked key", own, key(revoked), apierr.RefusedRevoked},
		{"a revoked grant", own, token("former", nil), apierr.RefusedRevoked},
		{"no grant", own, token("ana", map[string]any{"groups": []string{"sales"}}), apierr.RefusedNoGrant},
		{"no internal identity", lookUp, token("ana", nil), apierr.RefusedNoGrant},
		{"groups elsewhere", own, token("ana", map[string]any{"_claim_names": object{"groups": "src1"}}), apierr.RefusedGroupsCut},
		{"groups that are only announced", own, token("bo", map[string]any{"hasgroups": true}), apierr.RefusedGroupsCut},
		{"another audience", own, token("ana", map[string]any{"aud": "other"}), apierr.RefusedAudience},
		{"another issuer", own, token("ana", map[string]any{"iss": "https://other.example.com"}), apierr.RefusedIssuer},
		{"another signature", own, http.Header{"Authorization": {"Bearer " + issuer.Sign(jose.SigningKey{Algorithm: jose.ES256, Key: stranger}, nil, claims)}}, apierr.RefusedSignature},
		{"20 KiB", own, token("ana", map[string]any{"x": strings.Repeat("x", 15<<10)}), apierr.RefusedTooLarge},
	} {
		id := fmt.Sprint("request-", i)
		r := servicetest.Request{Headers: map[string]string{"X-Request-Id": id}}
		r.Method, r.Path, _ = strings.Cut(tt.operation, " ")
		for name := range tt.header {
			r.Headers[name] = tt.header.Get(name)
		}
		do := s.Do
		if tt.operation == admin {
			do = s.DoInternal
		}
		a := do(t, r)
		a.Header.Del("X-Request-Id")
		a.Header.Del("Date")
		switch got := fmt.Sprint(a.Status, a.Header, string(a.Body)); {
		case a.Status != 401:
			t.Errorf("%s: %d %s", tt.name, a.Status, a.Body)
		case tt.want == apierr.RefusedTooLarge:
			if size := fmt.Sprintf("%d bytes; allowed: 16384", len(tt.header.Get("Authorization"))-len("Bearer ")); !strings.Contains(got, size) || !strings.Contains(got, `"projectId":"pr_1"`) {
				t.Errorf("%s: %s; want %q in the answer", tt.name, got, size)
			}
		case tt.operation == own && answer == "":
			answer = got
		case tt.operation == own && got != answer:
			t.Errorf("%s: %s; want %s", tt.name, got, answer)
		}
		var line struct{ Reason apierr.Refusal }
		eventually.True(t, "the access line", func() bool {
			for text := range strings.Lines(s.Log()) {
				if strings.Contains(text, `"msg":"request"`) && strings.Contains(text, `"request_id":"`+id+`"`) {
					return json.Unmarshal([]byte(text), &line) == nil
				}
			}
			return false
		})
		if line.Reason != tt.want {
			t.Errorf("%s: reason %q, want %q", tt.name, line.Reason, tt.want)
		}
		count[tt.want]++
	}
	count[apierr.RefusedExpired]++ // found by the wait for it
	metrics := string(s.DoInternal(t, servicetest.Request{Path: "/metrics"}).Body)
	for why, n := range count {
		if want := fmt.Sprintf("lectern_auth_refusals_total{reason=%q} %d\n", why, n); !strings.Contains(metrics, want) {
			t.Errorf("metrics: want %s", want)
		}
	}
	if n := strings.Count(metrics, "\nlectern_auth_refusals_total{"); n != len(count) {
		t.Errorf("%d reasons in the metrics, want %d", n, len(count))
	}
}
