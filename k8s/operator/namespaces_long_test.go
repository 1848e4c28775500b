package operator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// TestLongListedNamespacesGo deletes twenty watched namespaces. An operator runs for half of them, and the key database is
// there for half. All objects go at once, and no key is accepted when the operator and the database are back.
func TestLongListedNamespacesGo(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	namespacesGo(t, false)
}

// TestLongAllNamespacesGo does the same with an operator that watches all namespaces. That operator would also handle the
// objects of other tests, so none runs meanwhile.
func TestLongAllNamespacesGo(t *testing.T) {
	needs.Long(t)
	namespacesGo(t, true)
}

// tenant is a namespace with a Project and a key of it.
type tenant struct {
	namespace string
	project   *v1alpha1.Project
	key       *v1alpha1.APIKey
	text      string // the key
}

func namespacesGo(t *testing.T, everywhere bool) {
	c := kubetest.Start(t)
	redis := redistest.Start(t)
	database := pgtest.Private(t, nil)
	keys := authtest.On(t, database.Database(t, pgkeys.Schema()), redis.URL)
	api := entries(t, redis, keys, nil)
	var all []*tenant
	watched := []string{c.Namespace}
	for range 20 {
		all = append(all, &tenant{namespace: c.NewNamespace(t)})
		watched = append(watched, all[len(all)-1].namespace)
	}
	run := func(first bool) *running {
		environ := keyEnviron(keys)
		switch {
		case everywhere:
			environ["WATCH_NAMESPACES"] = ""
		case first:
			environ["WATCH_NAMESPACES"] = strings.Join(watched, ",")
		}
		return start(t, c, environ, func(cfg *Config) {
			if !everywhere {
				cfg.Cluster.WatchNamespaces = watched // those that go give no rights any more
			}
		})
	}
	status := func(o *tenant) int {
		return api.Get(t, o.text, "/projects/"+o.project.Spec.ProjectID+"/entries").Status
	}

	operator := run(true)
	for i, o := range all {
		id := fmt.Sprintf("pr_%d", i+100)
		o.project = newProject(in(o.namespace, "team"), id)
		o.key = newKey("team", func(k *v1alpha1.APIKey) { k.Namespace, k.Spec.ProjectID = o.namespace, id })
		c.Create(t, o.project, o.key)
	}
	for _, o := range all {
		c.AwaitReady(t, o.key, v1alpha1.ReasonIssued)
		o.text = keyIn(t, c, o.key)
		if got := status(o); got != http.StatusOK {
			t.Fatalf("%d with a new key", got)
		}
	}
	groups := slices.Collect(slices.Chunk(all, 5))
	gone := func(how string, some []*tenant) {
		t.Helper()
		since := time.Now()
		for _, o := range some {
			c.Gone(t, o.key)
			c.Gone(t, o.project)
		}
		t.Logf("%s: %d namespaces after %v", how, len(some), time.Since(since).Round(time.Millisecond))
	}
	refused := func(some []*tenant) {
		t.Helper()
		for _, o := range some {
			eventually.True(t, "the key of "+o.namespace+" is refused", func() bool { return status(o) == http.StatusUnauthorized })
		}
	}
	stop := func() {
		t.Helper()
		if err := operator.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	kill := func() {
		t.Helper()
		if err := database.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	restart := func() {
		t.Helper()
		if err := database.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	deleteNamespaces(t, c, groups[0], everywhere)
	gone("the operator runs", groups[0])

	kill()
	deleteNamespaces(t, c, groups[1], everywhere)
	gone("the operator runs, without the database", groups[1])
	restart()

	// Keys that are not revoked before a stop would count at the next start, where more than five without any object wait
	// an hour.
	refused(all[:10])
	stop()
	deleteNamespaces(t, c, groups[2], everywhere)
	gone("without an operator", groups[2])
	operator = run(false)
	refused(all[:15])

	stop()
	kill()
	deleteNamespaces(t, c, groups[3], everywhere)
	gone("without an operator and the database", groups[3])
	operator = run(false)
	restart()

	refused(all)
}

// deleteNamespaces deletes namespaces, and then, as Kubernetes' controller does, the operator's rights in them and their
// objects, in any order.
func deleteNamespaces(t *testing.T, c *kubetest.Cluster, some []*tenant, everywhere bool) {
	t.Helper()
	for _, o := range some {
		c.Delete(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.namespace}})
		if !everywhere {
			forbid(t, c, o.namespace)
		}
		for _, kind := range []client.Object{&corev1.Secret{}, &rbacv1.Role{}, &v1alpha1.Project{}, &v1alpha1.APIKey{}} {
			if err := c.Client.DeleteAllOf(t.Context(), kind, client.InNamespace(o.namespace)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
