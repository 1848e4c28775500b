package retention

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	embeddables "github.com/lectern-dev/lectern/services/embeddables/app"
	"github.com/lectern-dev/lectern/services/entries/app"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// The job with the real services: old entries are gone, the others stay, and the change feed has a tombstone. Definitions of
// embeddables that nothing refers to are gone.
func TestRetentionOfTheService(t *testing.T) {
	c := kubetest.Start(t)
	redis := redistest.Start(t)
	// The service brings its schema with it.
	empty := migrate.Schema{Name: "blank", Migrations: fstest.MapFS{"0001_nothing.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")}}}
	backing := &servicetest.Backing{DB: pgtest.Server(t).Database(t, empty), Redis: redis, Keys: authtest.New(t, redis.URL)}
	s := servicetest.Start(t, backing, app.Run, func(c *app.Config) *service.Config { return &c.Config }, map[string]string{"MIGRATE_ON_START": "true"})
	entry := func(project, id string, days int) map[string]any {
		at := time.Now().Add(-time.Duration(days) * 24 * time.Hour).UTC().Format(time.RFC3339)
		return map[string]any{
			"entry_id": id, "group_id": "g", "project_id": project, "embeddable_id": "m", "contact_id": "c", "created_at": at, "updated_at": at, "entry_data": "{}",
		}
	}
	s.MustIngest(t, "entries", entry("pr_1", "old", 31), entry("pr_1", "new", 29), entry("pr_2", "old", 31), entry("pr_undeclared", "old", 31))
	declare(t, c, c.Namespace, "one", "pr_1", 30, metav1.ConditionTrue)
	declare(t, c, c.Namespace, "two", "pr_2", 0, metav1.ConditionTrue)

	backing.DB = pgtest.Server(t).Database(t, empty)
	forms := servicetest.Start(t, backing, embeddables.Run, func(c *embeddables.Config) *service.Config { return &c.Config }, map[string]string{"MIGRATE_ON_START": "true"})
	for _, definition := range []string{"{}", "[]"} {
		for _, project := range []string{"pr_1", "pr_2"} {
			forms.MustIngest(t, "embeddables", map[string]any{
				"embeddable_id": "m", "title": "", "group_id": "g", "project_id": project, "json_string_prod": definition,
			})
		}
	}

	environ := map[string]string{"RETENTION_ADMIN_API_KEY": servicetest.AdminKey, "EMBEDDABLES_INTERNAL_URL": forms.InternalURL}
	log, err := retainAt(t, c, s.InternalURL, time.Now(), environ)
	if err != nil {
		t.Error(err)
	}
	if got := said(log, "removed the definitions of embeddables that nothing refers to", "definitions"); !slices.Equal(got, []string{"1"}) {
		t.Errorf("removed definitions: %q", got)
	}
	if got := said(log, removedLine, "project_id", "days", "entries", "events"); !slices.Equal(got, []string{"pr_1 30 1 0"}) {
		t.Errorf("removed: %q", got)
	}
	for path, want := range map[string]int{"pr_1/entries/old": 404, "pr_1/entries/new": 200, "pr_2/entries/old": 200, "pr_undeclared/entries/old": 200} {
		project, _, _ := strings.Cut(path, "/")
		if a := s.Get(t, s.Keys.Key(project), "/projects/"+path); a.Status != want {
			t.Errorf("%s: %d %s; want %d", path, a.Status, a.Body, want)
		}
	}
	a := s.Get(t, s.Keys.Key("pr_1"), "/projects/pr_1/entries-changes?types=entry_removed")
	if body := string(a.Body); a.Status != http.StatusOK || !strings.Contains(body, `"entry_id":"old"`) || !strings.Contains(body, `"reason":"purged"`) {
		t.Errorf("the feed: %d %s", a.Status, body)
	}

	refuses := httptest.NewServer(http.NotFoundHandler())
	defer refuses.Close()
	environ["EMBEDDABLES_INTERNAL_URL"], environ["RETENTION_DAYS"] = refuses.URL, "36500"
	log, err = retainAt(t, c, s.InternalURL, time.Now(), environ)
	if got := said(log, "could not remove all definitions of embeddables that nothing refers to; the next run tries again", "project_id"); err != nil || !slices.Equal(got, []string{"pr_1", "pr_2"}) {
		t.Errorf("without the embeddables service: %v, %q", err, got)
	}

	_, err = retainAt(t, c, s.InternalURL, time.Now(), map[string]string{"RETENTION_ADMIN_API_KEY": "another-key"})
	if err == nil || !strings.Contains(fmt.Sprint(err), "does not accept the key RETENTION_ADMIN_API_KEY") {
		t.Errorf("with another key: %v", err)
	}
}
