package kubetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// Roles reads the generated roles of a component: for the whole cluster, and for its own namespace.
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

// grant binds the roles of a component to its service account in the test's namespace. It returns the account's user name
// after the server has applied the roles. Like the chart, it limits rights to the given namespaces, if there are any.
func (c *Cluster) grant(t testing.TB, component string, namespaces []string) string {
	t.Helper()
	user := "system:serviceaccount:" + c.Namespace + ":" + component
	cluster, own := Roles(t, component)
	if own != nil {
		c.bind(t, user, c.Namespace, component, own.Rules)
	}
	if cluster == nil {
		return user
	}
	if len(namespaces) == 0 {
		c.bind(t, user, "", component, cluster.Rules)
		return user
	}
	var everywhere, watched []rbacv1.PolicyRule
	for _, rule := range cluster.Rules {
		if slices.Contains(rule.APIGroups, v1alpha1.Group) || slices.Contains(rule.Resources, "namespaces") || slices.Contains(rule.Resources, "serviceaccounts") {
			everywhere = append(everywhere, rule)
		} else {
			watched = append(watched, rule)
		}
	}
	if len(everywhere) > 0 {
		c.bind(t, user, "", component, everywhere)
	}
	for _, namespace := range namespaces {
		if len(watched) > 0 {
			c.bind(t, user, namespace, component+"-watch", watched)
		}
	}
	return user
}

// bind grants rules to a user in a namespace, or in the whole cluster, and waits until the server applies them.
func (c *Cluster) bind(t testing.TB, user, namespace, component string, rules []rbacv1.PolicyRule) {
	t.Helper()
	add := func(o client.Object) {
		if err := c.Client.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: c.Namespace + "-" + component}
	if namespace == "" {
		add(&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
		add(&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}, Subjects: subjects,
		})
	} else {
		add(&rbacv1.Role{ObjectMeta: meta, Rules: rules})
		add(&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}, Subjects: subjects,
		})
	}
	c.awaitRule(t, user, namespace, rules[0])
}

// awaitRule waits until the server grants a rule to a user. The server watches roles and bindings, so it applies each a
// moment after the write.
func (c *Cluster) awaitRule(t testing.TB, user, namespace string, rule rbacv1.PolicyRule) {
	t.Helper()
	may := &authorizationv1.ResourceAttributes{
		Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0], Namespace: namespace,
	}
	may.Resource, may.Subresource, _ = strings.Cut(may.Resource, "/")
	if len(rule.ResourceNames) > 0 {
		may.Name = rule.ResourceNames[0]
	}
	eventually.True(t, fmt.Sprintf("%s may %s %s", user, may.Verb, rule.Resources[0]), func() bool {
		review := &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: may},
		}
		if err := c.Client.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	})
}
