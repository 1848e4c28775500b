package credential

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
)

// rivals returns a request for each other Credential with the same project, environment and id as object.
func (r *reconciler) rivals(ctx context.Context, object client.Object) []reconcile.Request {
	c := object.(*v1alpha1.Credential)
	all := r.find(ctx, client.MatchingFields{byClaim: Claim(c.Spec.ProjectID, c.Spec.Environment, c.Spec.ID)})
	others := all[:0]
	for _, request := range all {
		if request.NamespacedName != client.ObjectKeyFromObject(c) {
			others = append(others, request)
		}
	}
	return others
}

// ofProject returns a request for each Credential of the project that the given Project names.
func (r *reconciler) ofProject(ctx context.Context, object client.Object) []reconcile.Request {
	return r.find(ctx, client.MatchingFields{byProject: object.(*v1alpha1.Project).Spec.ProjectID})
}

// ofSecret marks the cached copy of a Secret as out of date. It returns a request for each Credential whose value comes
// from the Secret, also by way of a token endpoint.
func (r *reconciler) ofSecret(ctx context.Context, name types.NamespacedName) []reconcile.Request {
	r.secrets.changed(name)
	return r.find(ctx, client.InNamespace(name.Namespace), client.MatchingFields{bySecret: name.Name})
}

func (r *reconciler) find(ctx context.Context, o ...client.ListOption) []reconcile.Request {
	var list v1alpha1.CredentialList
	if err := r.client.List(ctx, &list, append(o, client.UnsafeDisableDeepCopy)...); err != nil {
		r.Log.ErrorContext(ctx, "cannot list the Credentials that a change affects", "error", err)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
