package operator

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// A namespace that is deleted loses its roles first. Its keys are revoked all the same, its objects go, and all other
// namespaces are served, also by an operator that starts then.
func TestNamespaceGoes(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	team := c.NewNamespace(t)
	redis := redistest.Start(t)
	keys := authtest.New(t, redis.URL)
	api := entries(t, redis, keys, nil)
	environ := keyEnviron(keys)
	environ["WATCH_NAMESPACES"] = c.Namespace + "," + team
	first := start(t, c, environ, nil)
	project := newProject(in(c.Namespace, "pr-1"), "pr_1")
	kubetest.Change(t, c, project, func(p *v1alpha1.Project) { p.Spec.AllowedNamespaces = []string{team} })
	theirs := newKey("theirs", func(k *v1alpha1.APIKey) { k.Namespace = team })
	other := newKey("also-theirs", func(k *v1alpha1.APIKey) { k.Namespace = team })
	c.Create(t, theirs, other)
	c.AwaitReady(t, theirs, v1alpha1.ReasonIssued)
	c.AwaitReady(t, other, v1alpha1.ReasonIssued)
	lost, last := keyIn(t, c, theirs), keyIn(t, c, other)

	forbid(t, c, team)
	c.Delete(t, theirs)
	c.Gone(t, theirs)
	eventually.True(t, "the key is refused", func() bool { return !reads(t, api, lost) })
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}

	second := start(t, c, environ, func(*Config) { forbid(t, c, team) })
	mine := newKey("mine")
	c.Create(t, mine, newCredential(named("x"), "pr_1", "cred_x", "s"), newSecret(named("s"), map[string]string{"token": canary}))
	c.AwaitReady(t, mine, v1alpha1.ReasonIssued)
	c.AwaitReady(t, newCredential(in(c.Namespace, "x"), "", "", ""), v1alpha1.ReasonValid)
	eventually.True(t, "the metric says which namespace refuses", func() bool {
		return strings.Contains(metricsOf(t, second.URL), `lectern_operator_namespace_refused{watched_namespace="`+team+`"} 1`)
	})
	c.Delete(t, other)
	c.Gone(t, other)
	eventually.True(t, "the other key is refused", func() bool { return !reads(t, api, last) })
}

// forbid takes the operator's rights in a namespace away, as the deletion of the namespace does.
func forbid(t testing.TB, c *kubetest.Cluster, namespace string) {
	t.Helper()
	c.Delete(t, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.Namespace + "-operator-watch"}})
	eventually.True(t, "the operator may not read Secrets", func() bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + c.Namespace + ":operator",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets", Namespace: namespace},
		}}
		if err := c.Client.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return !review.Status.Allowed
	})
}
