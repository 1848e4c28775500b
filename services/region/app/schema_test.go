package app

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/pgmigrate"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/region/internal/store"
)

// TestReadyLooksAtTheSchema: a database that lost its tables, as one that was made anew, makes the service unready until
// somebody migrates it. No restart is needed.
func TestReadyLooksAtTheSchema(t *testing.T) {
	s := start(t, nil)
	ready := func() servicetest.Answer { return s.DoInternal(t, servicetest.Request{Path: "/readyz"}) }
	if a := ready(); a.Status != 200 || !strings.Contains(string(a.Body), `"schema":"ok"`) {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	execute(t, s, `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	servicetest.Eventually(t, 10*time.Second, "it is not ready", func() bool {
		a := ready()
		return a.Status == 503 && strings.Contains(string(a.Body), `"schema":"failing"`) && strings.Contains(string(a.Body), `"postgres":"ok"`)
	})
	execute(t, s, `GRANT USAGE ON SCHEMA public TO PUBLIC`)
	roles := map[pgmigrate.Role]string{pgmigrate.Reader: pgmigrate.UserOf(s.DB.ReaderURL)}
	if err := pgmigrate.Migrate(t.Context(), s.DB.OwnerURL, store.Schema(), roles, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	servicetest.Eventually(t, 10*time.Second, "it is ready", func() bool { return ready().Status == 200 })
	if a := s.Get(t, "", "/projects/pr_1"); a.Status != 404 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
