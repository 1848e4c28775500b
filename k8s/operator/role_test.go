package operator

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
)

// The roles grant no more than the operator needs. Every other test here runs the operator with them, which shows
// that they suffice.
func TestRolesGrantNoMore(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	other := c.NewNamespace(t)
	type attributes = authorizationv1.ResourceAttributes
	for _, component := range []string{"operator", "proxy"} {
		user := c.As(t, component).Impersonate.UserName
		for _, tt := range []struct {
			name string
			in   attributes
			may  map[string]bool // the components that may; nil: none
		}{
			{"read a Secret", attributes{Verb: "get", Resource: "secrets", Namespace: other}, map[string]bool{"operator": true}},
			{"list Secrets", attributes{Verb: "list", Resource: "secrets", Namespace: c.Namespace}, map[string]bool{"operator": true}},
			{"read the proxy's values", attributes{Verb: "list", Resource: "secrets", Namespace: c.Namespace, Name: "lectern-proxy-values"}, map[string]bool{"operator": true, "proxy": true}},
			{"write the proxy's values", attributes{Verb: "update", Resource: "secrets", Namespace: c.Namespace, Name: "lectern-proxy-values"}, map[string]bool{"operator": true}},
			{"write a Secret", attributes{Verb: "patch", Resource: "secrets", Namespace: other}, map[string]bool{"operator": true}},
			{"delete a Secret", attributes{Verb: "delete", Resource: "secrets", Namespace: other}, nil},
			{"replace a Secret", attributes{Verb: "update", Resource: "secrets", Namespace: other}, nil},
			{"read a ConfigMap", attributes{Verb: "get", Resource: "configmaps", Namespace: other}, nil},
			{"read the Leases of others", attributes{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: other}, nil},
			{"take its Lease", attributes{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: c.Namespace, Name: "lectern-operator"}, map[string]bool{"operator": true}},
			{"take the Lease of another", attributes{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: c.Namespace, Name: "another"}, nil},
			{"make an APIKey", attributes{Verb: "create", Group: "lectern.dev", Resource: "apikeys", Namespace: other}, nil},
			{"delete an APIKey", attributes{Verb: "delete", Group: "lectern.dev", Resource: "apikeys", Namespace: other}, nil},
			{"read APIKeys", attributes{Verb: "list", Group: "lectern.dev", Resource: "apikeys", Namespace: other}, map[string]bool{"operator": true}},
			{"read Credentials", attributes{Verb: "watch", Group: "lectern.dev", Resource: "credentials", Namespace: other}, map[string]bool{"operator": true, "proxy": true}},
			{"change a Credential", attributes{Verb: "patch", Group: "lectern.dev", Resource: "credentials", Namespace: other}, nil},
			{"report on a Credential", attributes{Verb: "patch", Group: "lectern.dev", Resource: "credentials", Subresource: "status", Namespace: other}, map[string]bool{"operator": true}},
			{"list ServiceAccounts", attributes{Verb: "list", Resource: "serviceaccounts", Namespace: other}, map[string]bool{"operator": true}},
			{"make a token", attributes{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: other}, nil},
			{"read a pod", attributes{Verb: "get", Resource: "pods", Namespace: other}, nil},
			{"run in a pod", attributes{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: other}, nil},
			{"give rights", attributes{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "rolebindings", Namespace: other}, nil},
			{"act as others", attributes{Verb: "impersonate", Resource: "serviceaccounts", Namespace: other}, nil},
			{"know this cluster", attributes{Verb: "get", Resource: "namespaces", Name: "kube-system"}, map[string]bool{"operator": true}},
			{"read a namespace", attributes{Verb: "get", Resource: "namespaces", Name: other}, nil},
		} {
			t.Run(component+" "+tt.name, func(t *testing.T) {
				in := tt.in
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &in}}
				if err := c.Client.Create(t.Context(), review); err != nil {
					t.Fatal(err)
				}
				if review.Status.Allowed != tt.may[component] {
					t.Errorf("allowed is %v: %s", review.Status.Allowed, review.Status.Reason)
				}
			})
		}
	}
}

// With named namespaces, the operator may read Secrets in these alone, and the proxy in none.
func TestRolesOfNamespaces(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	watched, other := c.NewNamespace(t), c.NewNamespace(t)
	for _, component := range []string{"operator", "proxy"} {
		user := c.As(t, component, c.Namespace, watched).Impersonate.UserName
		for _, verb := range []string{"get", "list", "watch"} {
			for namespace, want := range map[string]bool{c.Namespace: true, watched: true, other: false, "": false} {
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "secrets", Namespace: namespace},
				}}
				if err := c.Client.Create(t.Context(), review); err != nil {
					t.Fatal(err)
				}
				if review.Status.Allowed != (want && component == "operator") {
					t.Errorf("%s: %s secrets in %q: allowed is %v", component, verb, namespace, review.Status.Allowed)
				}
			}
		}
	}
}
