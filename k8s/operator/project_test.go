package operator

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/services/region/app"
	regionclient "github.com/lectern-dev/lectern/services/region/client"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// startRegion runs the region service over a database of t's own, and returns it with a client.
func startRegion(t testing.TB) (*servicetest.Service, *regionclient.Projects) {
	t.Helper()
	redis := redistest.Start(t)
	// The service brings its schema with it.
	empty := migrate.Schema{Name: "blank", Migrations: fstest.MapFS{"0001_nothing.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")}}}
	backing := &servicetest.Backing{DB: pgtest.Server(t).Database(t, empty), Redis: redis, Keys: authtest.New(t, redis.URL)}
	s := servicetest.Start(t, backing, app.Run, func(c *app.Config) *service.Config { return &c.Config }, map[string]string{"MIGRATE_ON_START": "true"})
	projects, err := regionclient.NewProjects(s.InternalURL, servicetest.IngestKey, regionclient.ProjectsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(projects.Close)
	return s, projects
}

// withRegion returns the configuration of an operator that stores Projects in s.
func withRegion(s *servicetest.Service) map[string]string {
	return map[string]string{"REGION_INTERNAL_URL": s.InternalURL, "INGEST_API_KEYS": servicetest.IngestKey}
}

// A Project's life, with a region service.
func TestProjectLife(t *testing.T) {
	c := kubetest.Start(t)
	region, known := startRegion(t)
	o := start(t, c, withRegion(region), nil)
	p := newProject(named("one"), "pr_life")
	p.Spec.Region = "Asia/Kathmandu"
	c.Create(t, p)
	condition := c.AwaitReady(t, p, v1alpha1.ReasonSynced)
	if condition.Status != metav1.ConditionTrue || p.Status.Region != "Asia/Kathmandu" || *p.Status.OffsetInMinutes != 345 || p.Status.UTCOffset != "+05:45" || p.Status.ObservedGeneration != p.Generation {
		t.Errorf("%+v", p.Status)
	}
	stored := func() regionclient.Project {
		got, err := known.Get(t.Context(), "pr_life")
		if err != nil && !errors.Is(err, regionclient.ErrNotFound) {
			t.Fatal(err)
		}
		return got.Project
	}
	if want := (regionclient.Project{ID: "pr_life", Title: "One", Region: "Asia/Kathmandu"}); stored() != want {
		t.Errorf("the region service knows %+v", stored())
	}
	c.AwaitEvent(t, p, "Normal Synced: The region service knows the project as it stands here.")

	kubetest.Change(t, c, p, func(p *v1alpha1.Project) { p.Spec.Title, p.Spec.Region = "Two", "" })
	c.AwaitReady(t, p, v1alpha1.ReasonSynced)
	eventually.True(t, "the default region is shown", func() bool {
		c.AwaitReady(t, p, v1alpha1.ReasonSynced)
		return p.Status.Region == "America/Los_Angeles" && strings.HasPrefix(p.Status.UTCOffset, "-0")
	})
	if want := (regionclient.Project{ID: "pr_life", Title: "Two"}); stored() != want {
		t.Errorf("the region service knows %+v", stored())
	}

	// A region that the schema takes and the tz database has not.
	kubetest.Change(t, c, p, func(p *v1alpha1.Project) { p.Spec.Region = "Mars/Olympus_Mons" })
	condition = c.AwaitReady(t, p, v1alpha1.ReasonRegionRefused)
	if !strings.Contains(condition.Message, "a zone of the tz database such as Europe/Berlin") || p.Status.Region != "America/Los_Angeles" {
		t.Errorf("%+v", p.Status)
	}
	kubetest.Change(t, c, p, func(p *v1alpha1.Project) { p.Spec.Region = "Asia/Tokyo" })
	c.AwaitReady(t, p, v1alpha1.ReasonSynced)

	// The object goes, the project stays.
	c.Delete(t, p)
	c.Gone(t, p)
	o.quiet(t)
	if stored().Title != "Two" {
		t.Error("a project that was to be retained is gone")
	}

}

// The controller corrects changes by others in the region service, and writes nothing that is already correct.
func TestProjectDrift(t *testing.T) {
	c := kubetest.Start(t)
	region, known := startRegion(t)
	first := start(t, c, withRegion(region), nil)
	p := newProject(named("one"), "pr_drift")
	c.Create(t, p)
	c.AwaitReady(t, p, v1alpha1.ReasonSynced)
	c.AwaitReady(t, newProject(in(c.Namespace, "pr-1"), "pr_1"), v1alpha1.ReasonSynced)
	first.quiet(t)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := known.Put(t.Context(), regionclient.Project{ID: "pr_drift", Title: "Somebody's", Region: "Asia/Tokyo"}); err != nil {
		t.Fatal(err)
	}
	second := start(t, c, withRegion(region), nil)
	eventually.True(t, "the title is put right", func() bool {
		got, err := known.Get(t.Context(), "pr_drift")
		return err == nil && got.Title == "One" && got.Region == ""
	})
	if n := second.quiet(t); n != 0 {
		t.Errorf("%d writes at the API server where its objects did not change: %v", n, second.Requests.All())
	}
	// Of pr_drift twice by an operator, and once by somebody; of pr_1 once.
	if said := region.Log(); strings.Count(said, `"method":"POST"`) > 4 {
		t.Errorf("the operator sent more requests to the region service than it had to:\n%s", said)
	}
}

// Of several Projects with one id the first one counts. The others stay in conflict until they are changed or created
// again. No Project takes another's id over by waiting, even if the operator restarts.
func TestProjectConflict(t *testing.T) {
	c := kubetest.Start(t)
	other := c.NewNamespace(t)
	region, known := startRegion(t)
	environ := withRegion(region)
	environ["WATCH_NAMESPACES"] = c.Namespace + "," + other
	o := start(t, c, environ, nil)
	first := newProject(named("a"), "pr_two")
	c.Create(t, first)
	c.AwaitReady(t, first, v1alpha1.ReasonSynced)
	near, far := newProject(named("b"), "pr_two"), newProject(in(other, "c"), "pr_two")
	near.Spec.Title = "Near"
	far.Spec.Title, far.Spec.AllowedNamespaces = "Far", []string{"*"}
	c.Create(t, near, far)
	const until = " This Project stays in conflict, even if the other one is deleted, until it is changed or created again."
	if got := c.AwaitReady(t, near, v1alpha1.ReasonConflict).Message; got != `spec.projectId: is "pr_two", which the Project "a" declares.`+until {
		t.Errorf("says %s", got)
	}
	if got := c.AwaitReady(t, far, v1alpha1.ReasonConflict).Message; got != `spec.projectId: is "pr_two", which a Project of another namespace declares.`+until {
		t.Errorf("says %s", got)
	}
	title := func() string {
		got, err := known.Get(t.Context(), "pr_two")
		if err != nil && !errors.Is(err, regionclient.ErrNotFound) {
			t.Fatal(err)
		}
		return got.Title
	}
	if got := title(); got != "One" {
		t.Errorf("the region service knows %q", got)
	}
	// Changed while the first one is there, it is judged again, and stays in conflict.
	kubetest.Change(t, c, near, func(p *v1alpha1.Project) { p.Spec.Title = "Nearer" })
	eventually.True(t, "the change is looked at", func() bool {
		return c.AwaitReady(t, near, v1alpha1.ReasonConflict).ObservedGeneration == near.Generation
	})

	// Nobody takes over when the first one goes, nor when another operator starts.
	c.Delete(t, first)
	c.Gone(t, first)
	const gone = `spec.projectId: is "pr_two", which another Project declared first.` + until
	for range 2 {
		for _, p := range []*v1alpha1.Project{near, far} {
			eventually.True(t, "it is said that the first one is gone", func() bool { return c.AwaitReady(t, p, v1alpha1.ReasonConflict).Message == gone })
		}
		if err := o.Stop(); err != nil {
			t.Fatal(err)
		}
		o = start(t, c, environ, nil)
		o.quiet(t)
	}
	if got := title(); got != "One" {
		t.Errorf("the region service knows %q", got)
	}
	// A key of theirs is not issued, and their grant gives nobody anything.
	endpoint := newEndpoint(named("web"), "pr_two")
	c.Create(t, endpoint)
	c.AwaitReady(t, endpoint, v1alpha1.ReasonNotDeclared)

	// The owner replaces the object, which is now younger than those that wait.
	kubetest.AwaitYounger(t, far)
	first = newProject(named("a"), "pr_two")
	c.Create(t, first)
	c.AwaitReady(t, first, v1alpha1.ReasonSynced)
	c.AwaitReady(t, endpoint, v1alpha1.ReasonValid)
	// And keeps it when an older one is changed.
	kubetest.Change(t, c, far, func(p *v1alpha1.Project) { p.Spec.Title = "Farther" })
	eventually.True(t, "the change is looked at", func() bool {
		return c.AwaitReady(t, far, v1alpha1.ReasonConflict).ObservedGeneration == far.Generation
	})
	if c.AwaitReady(t, first, v1alpha1.ReasonSynced); title() != "One" {
		t.Errorf("the region service knows %q", title())
	}

	// Changed when no other declares the project, one takes it.
	c.Delete(t, first)
	c.Gone(t, first)
	o.quiet(t) // else a reconcile of the first one that has begun may store its title last
	kubetest.Change(t, c, near, func(p *v1alpha1.Project) { p.Spec.Title = "Near" })
	c.AwaitReady(t, near, v1alpha1.ReasonSynced)
	if got := title(); got != "Near" {
		t.Errorf("the region service knows %q", got)
	}
}

// The condition reports an unreachable region service, and the controller retries.
func TestProjectRegionAway(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	environ := map[string]string{"REGION_INTERNAL_URL": "http://127.0.0.1:1", "INGEST_API_KEYS": "a-key-0123456789"}
	o := start(t, c, environ, nil)
	p := newProject(named("one"), "pr_away")
	c.Create(t, p)
	condition := c.AwaitReady(t, p, v1alpha1.ReasonRegionUnavailable)
	if condition.Status != metav1.ConditionFalse || condition.Message != "The region service cannot be reached. The operator retries." {
		t.Errorf("%+v", condition)
	}
	c.Delete(t, p)
	c.Gone(t, p)
	if err := o.Stop(); err != nil {
		t.Fatal(err)
	}

	// A key that the service does not take, and then the right one.
	region, _ := startRegion(t)
	p = newProject(named("two"), "pr_away")
	c.Create(t, p)
	environ = withRegion(region)
	environ["INGEST_API_KEYS"] = "another-key-0123456789"
	o = start(t, c, environ, nil)
	if got := c.AwaitReady(t, p, v1alpha1.ReasonRegionUnavailable).Message; !strings.Contains(got, "does not accept the operator's key") {
		t.Errorf("says %s", got)
	}
	if err := o.Stop(); err != nil {
		t.Fatal(err)
	}
	start(t, c, withRegion(region), nil)
	c.AwaitReady(t, p, v1alpha1.ReasonSynced)
}
