package app

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestOwnKey checks that the holder of a key learns what it is, whatever its scopes, from Postgres and from the copy in
// Redis.
func TestOwnKey(t *testing.T) {
	t.Parallel()
	environ := map[string]string{"RATE_LIMIT": "1000"}
	s := start(t, environ)
	other := startOn(t, s.Backing, environ)
	expires := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	plain, plainRecord := s.Keys.Minted(pgkeys.MintOptions{ProjectID: "pr_1"})
	bounded, boundedRecord := s.Keys.Minted(pgkeys.MintOptions{
		ProjectID: "pr_1", Name: "the shop's proxy", Scopes: auth.ScopesOf(auth.ProxyUse), ExpiresAt: expires, Rate: 1,
	})
	for _, tt := range []struct {
		name, key string
		want      object
	}{
		{"defaults", plain, object{
			"projectId": "pr_1", "keyId": plainRecord.ID, "name": "", "scopes": []any{"entries:read", "embeddables:read", "experiments:read"},
			"expires_at": nil, "rate": nil,
		}},
		{"all set", bounded, object{
			"projectId": "pr_1", "keyId": boundedRecord.ID, "name": "the shop's proxy", "scopes": []any{"proxy:use"},
			"expires_at": expires.Format(time.RFC3339Nano), "rate": 1.0,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for from, process := range []*servicetest.Service{s, other} { // the second finds the copy of the first
				a := process.Get(t, tt.key, "/projects/pr_1/key")
				var got object
				a.JSON(t, &got)
				if diff := cmp.Diff(tt.want, got); a.Status != 200 || diff != "" {
					t.Errorf("process %d: %d %s", from, a.Status, diff)
				}
				if strings.Contains(string(a.Body), tt.key) {
					t.Error("the answer has the key itself")
				}
			}
		})
	}
	s.CheckRepresentation(t, plain, "/projects/pr_1/key")
	s.CheckRefusals(t, []servicetest.Refusal{
		{Name: "no key", Path: "/projects/pr_1/key", Status: 401, Code: "unauthorized", Rest: object{"projectId": "pr_1"}},
		{Name: "a key of another project", Path: "/projects/pr_2/key", Key: plain, Status: 401, Code: "unauthorized", Rest: object{"projectId": "pr_2"}},
		{Name: "an internal key", Path: "/projects/pr_1/key", Key: servicetest.InternalKey, Status: 401, Code: "unauthorized", Rest: object{"projectId": "pr_1"}},
		{Name: "a parameter", Path: "/projects/pr_1/key?x=1", Key: plain, Status: 400, Code: "invalid_parameter", Rest: object{"projectId": "pr_1", "parameter": "x"}},
		{Name: "a method", Method: "POST", Path: "/projects/pr_1/key", Key: plain, Status: 405, Code: "method_not_allowed", Rest: object{}},
	})
	for i := 0; ; i++ {
		if a := s.Get(t, bounded, "/projects/pr_1/key"); a.Status == 429 {
			servicetest.CheckError(t, a, 429, "rate_limited", object{"projectId": "pr_1"})
			break
		}
		if i > 1000 {
			t.Fatal("the key's rate of 1 a second does not hold")
		}
	}
}
