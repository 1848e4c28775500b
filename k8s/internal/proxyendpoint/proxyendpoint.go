// Package proxyendpoint is the controller of ProxyEndpoints. It validates each with the credential proxy's own code, and
// again when a Credential or a Project that it refers to changes. It writes only their status.
package proxyendpoint

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	apply "github.com/lectern-dev/lectern/k8s/internal/applyconfiguration/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/k8s/internal/credential"
	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/k8s/internal/proxyfault"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/manifest"
	"github.com/lectern-dev/lectern/proxy/policy"
)

// Options configures the controller.
type Options struct {
	controller.Common

	// AllowUndeclared lets every namespace have ProxyEndpoints of a project that no Project declares.
	AllowUndeclared bool
}

// Names of the indexes of ProxyEndpoints.
const (
	byUse     = "proxyendpoint.use" // by [credential.Claim]
	byProject = "proxyendpoint.project"
)

// The controller watches ProxyEndpoints, Credentials and Projects, and applies the status of ProxyEndpoints.
// +kubebuilder:rbac:groups=lectern.dev,resources=proxyendpoints;credentials;projects,verbs=get;list;watch
// +kubebuilder:rbac:groups=lectern.dev,resources=proxyendpoints/status,verbs=patch
//
// It reports its decisions as events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controller to mgr, whose Projects are indexed by [ownership.Index] and whose Credentials by
// [credential.Setup].
func Setup(mgr ctrl.Manager, o Options) error {
	for name, values := range map[string]func(*v1alpha1.ProxyEndpoint) []string{
		byUse:     uses,
		byProject: func(e *v1alpha1.ProxyEndpoint) []string { return []string{e.Spec.ProjectID} },
	} {
		err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.ProxyEndpoint{}, name, func(object client.Object) []string {
			return values(object.(*v1alpha1.ProxyEndpoint))
		})
		if err != nil {
			return fmt.Errorf("index ProxyEndpoints: %w", err)
		}
	}
	r := &reconciler{Options: o, client: mgr.GetClient(), events: mgr.GetEventRecorder(controller.Reporter)}
	written := builder.WithPredicates(predicate.GenerationChangedPredicate{}) // ignores the operator's own writes
	return o.Controller(mgr, "proxyendpoint", &v1alpha1.ProxyEndpoint{}, written).
		// Their status counts too: an endpoint is as ready as its Credentials.
		Watches(&v1alpha1.Credential{}, handler.EnqueueRequestsFromMapFunc(r.ofCredential)).
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(r.ofProject), builder.WithPredicates(ownership.Changed())).
		Complete(o.Traced("proxyendpoint", r))
}

func uses(e *v1alpha1.ProxyEndpoint) []string {
	claims := make([]string, 0, len(e.Spec.Credentials))
	for _, id := range e.Spec.Credentials {
		claims = append(claims, credential.Claim(e.Spec.ProjectID, e.Spec.Environment, id))
	}
	return claims
}

type reconciler struct {
	Options
	client client.Client
	events events.EventRecorder
}

// Reconcile validates one ProxyEndpoint and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var object v1alpha1.ProxyEndpoint
	if err := r.client.Get(ctx, request.NamespacedName, &object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !object.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	declaring, err := ownership.Declaring(ctx, r.client, object.Spec.ProjectID)
	if err != nil {
		return reconcile.Result{}, err
	}
	var claimants []v1alpha1.Credential
	for _, id := range slices.Compact(slices.Sorted(slices.Values(object.Spec.Credentials))) {
		some, err := credential.Claimants(ctx, r.client, object.Spec.ProjectID, object.Spec.Environment, id)
		if err != nil {
			return reconcile.Result{}, err
		}
		claimants = append(claimants, some...)
	}
	return reconcile.Result{}, r.report(ctx, &object, decide(&object, declaring, claimants, !r.AllowUndeclared))
}

// decide returns the verdict on a ProxyEndpoint. declaring is the Project that declares its project, or nil. claimants
// are the Credentials that claim the ids in its list, for each id the oldest first.
//
// The Credentials' own conditions report faults of their Secrets. decide therefore assumes valid values.
func decide(object *v1alpha1.ProxyEndpoint, declaring *v1alpha1.Project, claimants []v1alpha1.Credential, requireProject bool) controller.Verdict {
	seen := manifest.Objects{RequireProject: requireProject}
	if declaring != nil {
		seen.Projects = append(seen.Projects, manifests.Project(declaring))
	}
	held := map[manifest.ObjectKey]int{} // index in seen.Secrets
	for i := range claimants {
		c := manifests.Credential(&claimants[i])
		seen.Credentials = append(seen.Credentials, c)
		ref := c.Spec.ValueFrom.SecretKeyRef
		key := manifest.ObjectKey{Kind: "Secret", Namespace: c.Metadata.Namespace, Name: ref.Name}
		at, known := held[key]
		if !known {
			at = len(seen.Secrets)
			held[key] = at
			seen.Secrets = append(seen.Secrets, manifest.Secret{
				Metadata: manifest.Metadata{Namespace: key.Namespace, Name: key.Name}, Data: map[string][]byte{},
			})
		}
		seen.Secrets[at].Data[ref.Key] = make([]byte, policy.MinScrubbed)
	}
	seen.Endpoints = []manifest.ProxyEndpoint{manifests.Endpoint(object)}
	_, faults, warnings := manifest.BuildEach(seen)

	self := manifest.ObjectKey{Kind: "ProxyEndpoint", Namespace: object.Namespace, Name: object.Name}
	own := append(proxyfault.Of(faults, self), notReady(self, object, claimants, faults)...)
	return proxyfault.Verdict(own, proxyfault.Of(warnings, self), "It is in force.")
}

// notReady returns a fault for each of the endpoint's Credentials that is not ready, or whose condition is out of date.
func notReady(self manifest.ObjectKey, object *v1alpha1.ProxyEndpoint, claimants []v1alpha1.Credential, faults []*manifest.Fault) []*manifest.Fault {
	var found []*manifest.Fault
	for i, id := range object.Spec.Credentials {
		c := used(object.Namespace, id, claimants, faults)
		if c == nil {
			continue // another fault reports it
		}
		ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
		var why string
		switch {
		case ready == nil || ready.ObservedGeneration != c.Generation:
			why = "is not checked yet"
		case ready.Status != metav1.ConditionTrue:
			why = "is not in force (" + ready.Reason + ")"
		default:
			continue
		}
		found = append(found, &manifest.Fault{
			Of: self, Cause: manifest.CredentialFaulty,
			Reason: fmt.Sprintf("spec.credentials[%d]: the Credential with the id %q %s: requests that use it are refused", i, id, why),
		})
	}
	return found
}

// used resolves an id to a Credential for the endpoints of a namespace, as the proxy does. It prefers the
// namespace's own to the oldest one that is granted. It returns nil if there is none, or if the namespace's own is faulty.
func used(namespace, id string, claimants []v1alpha1.Credential, faults []*manifest.Fault) *v1alpha1.Credential {
	var granted *v1alpha1.Credential
	hasOwn := false
	for i := range claimants {
		c := &claimants[i]
		if c.Spec.ID != id {
			continue
		}
		hasOwn = hasOwn || c.Namespace == namespace
		if len(proxyfault.Of(faults, manifest.ObjectKey{Kind: "Credential", Namespace: c.Namespace, Name: c.Name})) > 0 {
			continue
		}
		if c.Namespace == namespace {
			return c
		}
		if granted == nil && manifest.Granted(namespace, c.Namespace, c.Spec.AllowedNamespaces) {
			granted = c
		}
	}
	if hasOwn {
		return nil // another fault reports it
	}
	return granted
}

// report applies the status if it has changed, and logs the verdict.
func (r *reconciler) report(ctx context.Context, object *v1alpha1.ProxyEndpoint, verdict controller.Verdict) error {
	before := object.Status.Conditions
	condition := verdict.Condition(before, object.Generation, r.Now())
	status := v1alpha1.ProxyEndpointStatus{ObservedGeneration: object.Generation, Conditions: []metav1.Condition{condition}}
	if equality.Semantic.DeepEqual(object.Status, status) {
		return nil
	}
	wanted := apply.ProxyEndpoint(object.Name, object.Namespace).WithUID(object.UID).WithStatus(
		apply.ProxyEndpointStatus().WithObservedGeneration(status.ObservedGeneration).WithConditions(controller.ApplyCondition(condition)))
	if err := r.client.Status().Apply(ctx, wanted, controller.FieldOwner, client.ForceOwnership); err != nil {
		return controller.IgnoreGone(fmt.Errorf("apply the status: %w", err))
	}
	verdict.Report(ctx, r.Log, r.events, object, before)
	return nil
}

// ofCredential finds the endpoints that list a Credential's id.
func (r *reconciler) ofCredential(ctx context.Context, object client.Object) []reconcile.Request {
	c := object.(*v1alpha1.Credential)
	return r.find(ctx, client.MatchingFields{byUse: credential.Claim(c.Spec.ProjectID, c.Spec.Environment, c.Spec.ID)})
}

// ofProject finds the endpoints of a project.
func (r *reconciler) ofProject(ctx context.Context, object client.Object) []reconcile.Request {
	return r.find(ctx, client.MatchingFields{byProject: object.(*v1alpha1.Project).Spec.ProjectID})
}

func (r *reconciler) find(ctx context.Context, by client.MatchingFields) []reconcile.Request {
	var list v1alpha1.ProxyEndpointList
	if err := r.client.List(ctx, &list, by, client.UnsafeDisableDeepCopy); err != nil {
		r.Log.ErrorContext(ctx, "cannot list the ProxyEndpoints that a change affects", "error", err)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
