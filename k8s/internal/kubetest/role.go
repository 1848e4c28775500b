package kubetest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Roles reads the roles of a component as they are generated: of the whole cluster, and of its own namespace.
func Roles(t testing.TB, component string) (cluster *rbacv1.ClusterRole, own *rbacv1.Role) {
	t.Helper()
	folder, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "rbac", component+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			t.Fatal(err)
		}
		var into any
		switch kind.Kind {
		case "ClusterRole":
			cluster = &rbacv1.ClusterRole{}
			into = cluster
		case "Role":
			own = &rbacv1.Role{}
			into = own
		default:
			t.Fatalf("a %s among the roles of %s", kind.Kind, component)
		}
		if err := yaml.UnmarshalStrict(document, into); err != nil {
			t.Fatal(err)
		}
	}
	return cluster, own
}

// grant gives the service account of a component in the test's namespace its roles, and returns its name as a
// user once the server acts on them.
func (c *Cluster) grant(t testing.TB, component string) string {
	t.Helper()
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: c.Namespace, Name: component}
	cluster, own := Roles(t, component)
	add := func(o client.Object) {
		if err := c.Client.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	if cluster != nil {
		add(cluster)
		add(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: c.Namespace + "-" + component},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cluster.Name}, Subjects: []rbacv1.Subject{subject},
		})
	}
	if own != nil {
		own.Namespace = c.Namespace
		add(own)
		add(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: component},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: own.Name}, Subjects: []rbacv1.Subject{subject},
		})
	}
	user := "system:serviceaccount:" + c.Namespace + ":" + component
	if cluster != nil {
		c.awaitRule(t, user, "", cluster.Rules[0])
	}
	if own != nil {
		c.awaitRule(t, user, c.Namespace, own.Rules[0])
	}
	return user
}

// awaitRule waits until the server lets a user do what a rule says: it learns of roles and of who has them by
// watching them, a moment after each was written.
func (c *Cluster) awaitRule(t testing.TB, user, namespace string, rule rbacv1.PolicyRule) {
	t.Helper()
	may := &authorizationv1.ResourceAttributes{
		Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0], Namespace: namespace,
	}
	may.Resource, may.Subresource, _ = strings.Cut(may.Resource, "/")
	if len(rule.ResourceNames) > 0 {
		may.Name = rule.ResourceNames[0]
	}
	for deadline := time.Now().Add(eventually); ; time.Sleep(5 * time.Millisecond) {
		review := &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: may},
		}
		if err := c.Client.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: waited in vain for the right to %s %s: %s", user, may.Verb, rule.Resources[0], review.Status.Reason)
		}
	}
}
