package app

import (
	"net/http"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/region/internal/store"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// awaitRegion waits until a project's region is want.
func awaitRegion(t testing.TB, s *servicetest.Service, project, want string) {
	t.Helper()
	eventually.True(t, project+" is in "+want, func() bool { return region(t, s, project, "")["region"] == want })
}

// insert stores a project by SQL.
func insert(t testing.TB, s *servicetest.Service, id, zone string) {
	t.Helper()
	s.Exec(t, `INSERT INTO projects (project_id, title, region) VALUES ($1, $1, $2)`, id, zone)
}

// TestChangeIsSeenEverywhere checks that every process sees a change when its copy is too old.
func TestChangeIsSeenEverywhere(t *testing.T) {
	t.Parallel()
	b := servicetest.NewBacking(t, store.Schema())
	environ := map[string]string{"REGION_CACHE_TTL": "50ms"}
	one, two := startOn(t, b, environ), startOn(t, b, environ)
	for _, zone := range []any{"Europe/Berlin", "Asia/Tokyo", nil} {
		put(t, one, "pr_1", "One", zone)
		want, _ := zone.(string)
		if zone == nil {
			want = "America/Los_Angeles"
		}
		awaitRegion(t, one, "pr_1", want)
		awaitRegion(t, two, "pr_1", want)
	}
}

// TestPostgresGone checks that cached regions are served while Postgres is down. Other requests get
// 503 with Retry-After. When Postgres is back, everything works again.
func TestPostgresGone(t *testing.T) {
	t.Parallel()
	b, postgres := servicetest.NewBreakable(t, store.Schema())
	s := startOn(t, b, map[string]string{"REGION_CACHE_TTL": "100ms"})
	insert(t, s, "pr_1", "Europe/Berlin")
	awaitRegion(t, s, "pr_1", "Europe/Berlin")

	if err := postgres.Kill(); err != nil {
		t.Fatal(err)
	}
	cold := `{"projectId":"pr_cold"}`
	eventually.True(t, "a cold region is a 503", func() bool { return ask(t, s, cold).Status == http.StatusServiceUnavailable })
	a := ask(t, s, cold)
	servicetest.CheckError(t, a, 503, "unavailable", object{"projectId": "pr_cold"})
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	servicetest.CheckError(t, s.Get(t, "", "/projects/pr_1"), 503, "unavailable", object{"projectId": "pr_1"})
	for start := time.Now(); time.Since(start) < 500*time.Millisecond; { // many times the TTL
		if got := region(t, s, "pr_1", "2022-07-01"); got["region"] != "Europe/Berlin" || got["offsetInMinutes"] != 120.0 {
			t.Fatal(got)
		}
	}

	if err := postgres.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a cold region is answered", func() bool { return ask(t, s, cold).Status == http.StatusOK })
	put(t, s, "pr_1", "One", "Asia/Tokyo")
	awaitRegion(t, s, "pr_1", "Asia/Tokyo")
}

// TestRedisGone checks that operation 9 does not use Redis, and that a project's title is served without Redis too.
func TestRedisGone(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"ANON_RATE_LIMIT": "100000"})
	put(t, s, "pr_1", "One", "Europe/Berlin")
	awaitRegion(t, s, "pr_1", "Europe/Berlin")
	s.Redis.Kill()
	for range 3 {
		if got := region(t, s, "pr_1", ""); got["region"] != "Europe/Berlin" {
			t.Fatal(got)
		}
		if a := s.Get(t, "", "/projects/pr_1"); a.Status != 200 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
}
