package app

import (
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestReadyLooksAtTheSchema checks that a database without a schema, such as a new one, makes the service unready until
// it is migrated. No restart is needed.
func TestReadyLooksAtTheSchema(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ready := func() servicetest.Answer { return s.DoInternal(t, servicetest.Request{Path: "/readyz"}) }
	if a := ready(); a.Status != 200 || !strings.Contains(string(a.Body), `"schema":"ok"`) {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	// Without the table that records the migrations, the schema counts as missing.
	execute(t, s, `ALTER TABLE region_migrations RENAME TO lost`)
	eventually.True(t, "it is not ready", func() bool {
		a := ready()
		return a.Status == 503 && strings.Contains(string(a.Body), `"schema":"failing"`) && strings.Contains(string(a.Body), `"postgres":"ok"`)
	})
	execute(t, s, `ALTER TABLE lost RENAME TO region_migrations`)
	eventually.True(t, "it is ready", func() bool { return ready().Status == 200 })
}
