// Package proxyendpoint is the controller of ProxyEndpoints: it says of each whether it is in force as it
// stands, by the credential proxy's own judgement, and what is wrong otherwise, also when a Credential or a
// Project that it refers to changes. It changes nothing but their status.
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
	apply "github.com/lectern-dev/lectern/k8s/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/credential"
	"github.com/lectern-dev/lectern/k8s/internal/frame"
	"github.com/lectern-dev/lectern/k8s/internal/grant"
	"github.com/lectern-dev/lectern/k8s/internal/judge"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/manifest"
	"github.com/lectern-dev/lectern/proxy/policy"
)

// Options configures the controller.
type Options struct {
	frame.Common

	// AllowUndeclared lets every namespace have ProxyEndpoints of a project that no Project declares.
	AllowUndeclared bool
}

// The indexes by which ProxyEndpoints are found.
const (
	byUse     = "proxyendpoint.use" // by [credential.Claim]
	byProject = "proxyendpoint.project"
)

// ProxyEndpoints, Credentials and Projects are watched, a ProxyEndpoint's status is applied.
// +kubebuilder:rbac:groups=lectern.dev,resources=proxyendpoints;credentials;projects,verbs=get;list;watch
// +kubebuilder:rbac:groups=lectern.dev,resources=proxyendpoints/status,verbs=patch
//
// The controller reports its decisions by events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controller to mgr, whose Projects are indexed by [grant.Index] and whose Credentials by
// [credential.Setup].
func Setup(mgr ctrl.Manager, o Options) error {
	for name, values := range map[string]func(*v1alpha1.ProxyEndpoint) []string{
		byUse:     uses,
		byProject: func(e *v1alpha1.ProxyEndpoint) []string { return []string{e.Spec.Project} },
	} {
		err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.ProxyEndpoint{}, name, func(object client.Object) []string {
			return values(object.(*v1alpha1.ProxyEndpoint))
		})
		if err != nil {
			return fmt.Errorf("index ProxyEndpoints: %w", err)
		}
	}
	r := &reconciler{Options: o, client: mgr.GetClient(), events: mgr.GetEventRecorder(frame.Reporter)}
	written := builder.WithPredicates(predicate.GenerationChangedPredicate{}) // and not what the operator itself wrote
	return o.Controller(mgr, "proxyendpoint", &v1alpha1.ProxyEndpoint{}, written).
		// Also for their status: an endpoint is as ready as its Credentials.
		Watches(&v1alpha1.Credential{}, handler.EnqueueRequestsFromMapFunc(r.ofCredential)).
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(r.ofProject), builder.WithPredicates(grant.Changed())).
		Complete(o.Traced("proxyendpoint", r))
}

func uses(e *v1alpha1.ProxyEndpoint) []string {
	claims := make([]string, 0, len(e.Spec.Credentials))
	for _, id := range e.Spec.Credentials {
		claims = append(claims, credential.Claim(e.Spec.Project, e.Spec.Environment, id))
	}
	return claims
}

type reconciler struct {
	Options
	client client.Client
	events events.EventRecorder
}

// Reconcile judges one ProxyEndpoint and reports what was found.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var object v1alpha1.ProxyEndpoint
	if err := r.client.Get(ctx, request.NamespacedName, &object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !object.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	declaring, err := grant.Declaring(ctx, r.client, object.Spec.Project)
	if err != nil {
		return reconcile.Result{}, err
	}
	var claimants []v1alpha1.Credential
	for _, id := range slices.Compact(slices.Sorted(slices.Values(object.Spec.Credentials))) {
		some, err := credential.Claimants(ctx, r.client, object.Spec.Project, object.Spec.Environment, id)
		if err != nil {
			return reconcile.Result{}, err
		}
		claimants = append(claimants, some...)
	}
	return reconcile.Result{}, r.report(ctx, &object, decide(&object, declaring, claimants, !r.AllowUndeclared))
}

// decide says what a ProxyEndpoint comes to, of the Project that declares its project, nil when none does, and the
// Credentials that claim the ids which it lists, the older ones first.
//
// What is in the Secrets is the Credentials' affair, and their condition says it: here each has some value.
func decide(object *v1alpha1.ProxyEndpoint, declaring *v1alpha1.Project, claimants []v1alpha1.Credential, requireProject bool) frame.Verdict {
	seen := manifest.Objects{RequireProject: requireProject}
	if declaring != nil {
		seen.Projects = append(seen.Projects, manifests.Project(declaring))
	}
	held := map[manifest.ObjectKey]int{} // Secrets to their place
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
	snapshot, faults, warnings := manifest.BuildEach(seen)
	defer snapshot.Discard()

	self := manifest.ObjectKey{Kind: "ProxyEndpoint", Namespace: object.Namespace, Name: object.Name}
	own := append(judge.Of(faults, self), notReady(self, object, claimants, faults)...)
	return judge.Verdict(own, judge.Of(warnings, self), "It is in force.")
}

// notReady says which of the Credentials that the endpoint may use are not in force by their own condition.
func notReady(self manifest.ObjectKey, object *v1alpha1.ProxyEndpoint, claimants []v1alpha1.Credential, faults []*manifest.Fault) []*manifest.Fault {
	var found []*manifest.Fault
	for i, id := range object.Spec.Credentials {
		c := used(object.Namespace, id, claimants, faults)
		if c == nil {
			continue // which was said
		}
		ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
		var why string
		switch {
		case ready == nil || ready.ObservedGeneration != c.Generation:
			why = "was not looked at yet"
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

// used returns the Credential that an id means to a namespace's endpoints, as the proxy resolves it: the namespace's
// own, or else the oldest one that is granted. It returns nil when there is none, or one with a fault of its own.
func used(namespace, id string, claimants []v1alpha1.Credential, faults []*manifest.Fault) *v1alpha1.Credential {
	var granted *v1alpha1.Credential
	hasOwn := false
	for i := range claimants {
		c := &claimants[i]
		if c.Spec.ID != id {
			continue
		}
		hasOwn = hasOwn || c.Namespace == namespace
		if len(judge.Of(faults, manifest.ObjectKey{Kind: "Credential", Namespace: c.Namespace, Name: c.Name})) > 0 {
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
		return nil // what is wrong with it was said
	}
	return granted
}

// report applies the status where it is another one, and tells of it.
func (r *reconciler) report(ctx context.Context, object *v1alpha1.ProxyEndpoint, verdict frame.Verdict) error {
	before := object.Status.Conditions
	condition := verdict.Condition(before, object.Generation, r.Now())
	status := v1alpha1.ProxyEndpointStatus{ObservedGeneration: object.Generation, Conditions: []metav1.Condition{condition}}
	if equality.Semantic.DeepEqual(object.Status, status) {
		return nil
	}
	wanted := apply.ProxyEndpoint(object.Name, object.Namespace).WithUID(object.UID).WithStatus(
		apply.ProxyEndpointStatus().WithObservedGeneration(status.ObservedGeneration).WithConditions(frame.ApplyCondition(condition)))
	if err := r.client.Status().Apply(ctx, wanted, frame.FieldOwner, client.ForceOwnership); err != nil {
		return frame.IgnoreGone(fmt.Errorf("apply the status: %w", err))
	}
	verdict.Tell(ctx, r.Log, r.events, object, before)
	return nil
}

// ofCredential finds the endpoints that list a Credential's id.
func (r *reconciler) ofCredential(ctx context.Context, object client.Object) []reconcile.Request {
	c := object.(*v1alpha1.Credential)
	return r.find(ctx, client.MatchingFields{byUse: credential.Claim(c.Spec.Project, c.Spec.Environment, c.Spec.ID)})
}

// ofProject finds the endpoints of a project.
func (r *reconciler) ofProject(ctx context.Context, object client.Object) []reconcile.Request {
	return r.find(ctx, client.MatchingFields{byProject: object.(*v1alpha1.Project).Spec.ProjectID})
}

func (r *reconciler) find(ctx context.Context, by client.MatchingFields) []reconcile.Request {
	var list v1alpha1.ProxyEndpointList
	if err := r.client.List(ctx, &list, by, client.UnsafeDisableDeepCopy); err != nil {
		r.Log.ErrorContext(ctx, "cannot tell which ProxyEndpoints a change is about", "error", err)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
