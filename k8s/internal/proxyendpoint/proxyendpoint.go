// Package proxyendpoint is the controller of ProxyEndpoints. It validates each ProxyEndpoint with the credential
// proxy's own code, and again when a Credential or a Project of the ProxyEndpoint changes. It reports the result as the
// status and as an event.
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

// Options holds the dependencies of the controller of ProxyEndpoints, for [Setup].
type Options struct {
	controller.Common

	// AllowUndeclared lets every namespace have ProxyEndpoints of a project that no Project declares.
	AllowUndeclared bool
}

// Names of the indexes of ProxyEndpoints in the cache: by the ids in their lists of credentials, and by project.
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

// Setup adds the controller of ProxyEndpoints to mgr. The caller must have indexed mgr's Projects with
// [ownership.Index], and mgr's Credentials with [credential.Setup].
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
		// The status of Credentials counts too, because an endpoint is only ready if its Credentials are ready.
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

// Reconcile validates one ProxyEndpoint, and reports the result in the status of the ProxyEndpoint.
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

// decide returns the verdict on a ProxyEndpoint. The argument declaring is the Project that declares its project, or
// nil. The claimants are the Credentials with the ids in spec.credentials, for each id the oldest first.
//
// The Credentials' own conditions report faults of their Secrets. So decide assumes valid values.
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
			continue // another fault reports the missing Credential
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

// used resolves an id to a Credential without faults for the endpoints of a namespace. It prefers the Credential of the
// namespace itself to the oldest Credential that another namespace grants. It returns nil if there is neither, or if
// the Credential of the namespace itself is faulty.
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
		return nil // another fault reports the faulty Credential
	}
	return granted
}

// report applies the verdict as the status of object, if the status has changed. It then records the verdict in the log
// and as an event. An object that no longer exists is no error.
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

// ofCredential returns a request for each ProxyEndpoint that lists the id of the given Credential.
func (r *reconciler) ofCredential(ctx context.Context, object client.Object) []reconcile.Request {
	c := object.(*v1alpha1.Credential)
	return r.find(ctx, client.MatchingFields{byUse: credential.Claim(c.Spec.ProjectID, c.Spec.Environment, c.Spec.ID)})
}

// ofProject returns a request for each ProxyEndpoint of the project that the given Project names.
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
