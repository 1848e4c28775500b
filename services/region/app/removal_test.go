package app

import (
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/region/internal/store"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// TestRemoveProject checks that a removed project has neither title nor region, and its keys are revoked at once.
func TestRemoveProject(t *testing.T) {
	t.Parallel()
	b := servicetest.NewBacking(t, store.Schema())
	b.Keys.Config.CacheTTL = auth.MaxCacheTTL
	s := startOn(t, b, nil)
	put(t, s, "pr_1", "One", "Asia/Kathmandu")
	put(t, s, "pr_2", "Two", nil)
	keys := b.Keys.Authenticator(authn.Options{})
	accepted := func(project, key string) bool {
		_, err := keys.Verifier.Verify(t.Context(), project, key)
		return err == nil
	}
	first, second, other := b.Keys.Key("pr_1"), b.Keys.Key("pr_1"), b.Keys.Key("pr_2")
	if !accepted("pr_1", first) || !accepted("pr_1", second) || !accepted("pr_2", other) {
		t.Fatal("the keys are not accepted")
	}
	// The check mints one more key.
	servicetest.CheckProjectRemoval(t, s, startOn(t, b, map[string]string{"REMOVE_DATABASE_URL": ""}), "pr_1", `{"keys":3,"projects":1}`, `{"keys":0,"projects":0}`)
	eventually.True(t, "the keys are refused", func() bool { return !accepted("pr_1", first) && !accepted("pr_1", second) })
	if !accepted("pr_2", other) {
		t.Error("a key of another project is refused")
	}
	servicetest.CheckError(t, s.Get(t, "", "/projects/pr_1"), 404, "project_not_found", object{"projectId": "pr_1"})
	eventually.True(t, "no region", func() bool { return region(t, s, "pr_1", "2022-01-01")["region"] == "America/Los_Angeles" })
	for _, k := range listKeys(t, s, "pr_1") {
		if revoked, err := time.Parse(time.RFC3339Nano, k["revoked_at"].(string)); err != nil || k["state"] != "revoked" || time.Since(revoked) > time.Minute {
			t.Errorf("%v", k)
		}
	}

	// If the keys cannot be revoked, the project is kept.
	for name, environ := range map[string]map[string]string{
		"not set":      {"AUTH_ADMIN_DATABASE_URL": ""},
		"out of reach": {"AUTH_ADMIN_DATABASE_URL": "postgres://auth_admin@127.0.0.1:1/auth?sslmode=disable"},
	} {
		a := administer(t, startOn(t, b, environ), "DELETE", "pr_2", "")
		servicetest.CheckError(t, a, 503, "unavailable", object{"projectId": "pr_2"})
		if says := strings.Contains(string(a.Body), "AUTH_ADMIN_DATABASE_URL"); says != (name == "not set") {
			t.Errorf("%s: %s", name, a.Body)
		}
	}
	if a := s.Get(t, "", "/projects/pr_2"); a.Status != 200 || !accepted("pr_2", other) {
		t.Errorf("the project whose keys could not be revoked: %d", a.Status)
	}
}
