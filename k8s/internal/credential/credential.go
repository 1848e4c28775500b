// Package credential has the controllers of Credentials. One validates each with the credential proxy's own code, and
// writes its status. The other gives the proxy their values.
package credential

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	apply "github.com/lectern-dev/lectern/k8s/internal/applyconfiguration/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/k8s/internal/proxyfault"
	"github.com/lectern-dev/lectern/k8s/internal/secretwatch"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/manifest"
	"github.com/lectern-dev/lectern/proxy/policy"
)

// Options configures the controller.
type Options struct {
	controller.Common

	// Secrets follows the Secrets of the watched namespaces. Required.
	Secrets *secretwatch.Watch

	// Values is the Secret with the values of all Credentials, which the proxy reads. Required.
	Values types.NamespacedName

	// AllowUndeclared lets every namespace have Credentials of a project that no Project declares.
	AllowUndeclared bool
}

// Names of the indexes of Credentials.
const (
	byClaim   = "credential.claim" // see [Claim]
	byProject = "credential.project"
	bySecret  = "credential.secret"
)

// Claim returns the identity of a Credential within its namespace, as one string: project, environment and id.
func Claim(project, environment, id string) string {
	return project + "\x00" + environment + "\x00" + id
}

// Claimants returns the Credentials that claim an id, the oldest first. [Setup] must have run before.
func Claimants(ctx context.Context, r client.Reader, project, environment, id string) ([]v1alpha1.Credential, error) {
	var list v1alpha1.CredentialList
	if err := r.List(ctx, &list, client.MatchingFields{byClaim: Claim(project, environment, id)}); err != nil {
		return nil, fmt.Errorf("list Credentials: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Credential) int { return manifests.Older(&a, &b) })
	return list.Items, nil
}

// The controller watches Credentials and Projects, and applies the status of Credentials.
// +kubebuilder:rbac:groups=lectern.dev,resources=credentials;projects,verbs=get;list;watch
// +kubebuilder:rbac:groups=lectern.dev,resources=credentials/status,verbs=patch
//
// It watches the metadata of Secrets, and reads those that Credentials name.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
//
// It reports its decisions as events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controller to mgr, whose Projects are indexed by [ownership.Index].
func Setup(mgr ctrl.Manager, o Options) error {
	for name, value := range map[string]func(*v1alpha1.Credential) string{
		byClaim:   func(c *v1alpha1.Credential) string { return Claim(c.Spec.ProjectID, c.Spec.Environment, c.Spec.ID) },
		byProject: func(c *v1alpha1.Credential) string { return c.Spec.ProjectID },
		bySecret:  func(c *v1alpha1.Credential) string { return c.Spec.ValueFrom.SecretKeyRef.Name },
	} {
		err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Credential{}, name, func(object client.Object) []string {
			return []string{value(object.(*v1alpha1.Credential))}
		})
		if err != nil {
			return fmt.Errorf("index Credentials: %w", err)
		}
	}
	known := &secrets{client: mgr.GetClient(), held: map[types.NamespacedName]*held{}}
	values := &proxy{Options: o, client: mgr.GetClient(), secrets: known, flips: make(chan event.GenericEvent)}
	if err := values.setup(mgr); err != nil {
		return err
	}
	r := &reconciler{Options: o, client: mgr.GetClient(), events: mgr.GetEventRecorder(controller.Reporter), secrets: known, proxy: values}
	written := builder.WithPredicates(predicate.GenerationChangedPredicate{}) // ignores the operator's own writes
	return o.Controller(mgr, "credential", &v1alpha1.Credential{}, written).
		Watches(&v1alpha1.Credential{}, handler.EnqueueRequestsFromMapFunc(r.rivals), written).
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(r.ofProject), builder.WithPredicates(ownership.Changed())).
		WatchesRawSource(o.Secrets.Source(r.ofSecret)).
		WatchesRawSource(source.Channel(values.flips, &handler.EnqueueRequestForObject{})).
		Complete(o.Traced("credential", r))
}

type reconciler struct {
	Options
	client  client.Client
	events  events.EventRecorder
	secrets *secrets
	proxy   *proxy
}

// Reconcile validates one Credential and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var object v1alpha1.Credential
	if err := r.client.Get(ctx, request.NamespacedName, &object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !object.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	if from := (types.NamespacedName{Namespace: object.Namespace, Name: object.Spec.ValueFrom.SecretKeyRef.Name}); from == r.Values {
		verdict := controller.Verdict{Reason: v1alpha1.ReasonInvalid, Message: "spec.valueFrom.secretKeyRef.name: is the Secret that holds the values of all Credentials; allowed: any other"}
		return reconcile.Result{}, r.report(ctx, &object, verdict)
	}
	seen, err := r.read(ctx, &object)
	if errors.IsForbidden(err) {
		verdict := controller.Verdict{Reason: v1alpha1.ReasonSecretRefused, Message: "The operator may not read Secrets in this namespace: its role is missing here. Run helm upgrade, which makes the role."}
		return reconcile.Result{RequeueAfter: refusedRetry}, r.report(ctx, &object, verdict)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	verdict := decide(&object, seen)
	if why := r.proxy.missing(&object); why != "" && verdict.Ready {
		verdict = controller.Verdict{Reason: v1alpha1.ReasonSecretValueInvalid, Message: "The proxy does not get the value: " + why + "."}
	}
	return reconcile.Result{}, r.report(ctx, &object, verdict)
}

// refusedRetry is the time after which a Secret that the operator may not read is tried again.
const refusedRetry = 10 * time.Second

// read reads the objects that the verdict depends on: the Project, older Credentials with the same claim, and the Secret.
func (r *reconciler) read(ctx context.Context, object *v1alpha1.Credential) (seen manifest.Objects, err error) {
	seen.RequireProject = !r.AllowUndeclared
	declaring, err := ownership.Declaring(ctx, r.client, object.Spec.ProjectID)
	if err != nil {
		return seen, err
	}
	if declaring != nil {
		seen.Projects = append(seen.Projects, manifests.Project(declaring))
	}
	claimants, err := Claimants(ctx, r.client, object.Spec.ProjectID, object.Spec.Environment, object.Spec.ID)
	if err != nil {
		return seen, err
	}
	for i := range claimants {
		if claimants[i].UID != object.UID && manifests.Older(&claimants[i], object) < 0 {
			seen.Credentials = append(seen.Credentials, manifests.Credential(&claimants[i]))
		}
	}
	seen.Credentials = append(seen.Credentials, manifests.Credential(object))
	name := types.NamespacedName{Namespace: object.Namespace, Name: object.Spec.ValueFrom.SecretKeyRef.Name}
	data, err := r.secrets.values(ctx, name)
	if err != nil {
		return seen, err
	}
	if data != nil {
		seen.Secrets = append(seen.Secrets, manifest.Secret{Metadata: manifest.Metadata{Namespace: name.Namespace, Name: name.Name}, Data: data})
	}
	return seen, nil
}

// decide returns the verdict on a Credential from the objects that it depends on.
func decide(object *v1alpha1.Credential, seen manifest.Objects) controller.Verdict {
	_, faults, warnings := manifest.BuildEach(seen)
	self := manifest.ObjectKey{Kind: "Credential", Namespace: object.Namespace, Name: object.Name}
	ref := object.Spec.ValueFrom.SecretKeyRef
	well := fmt.Sprintf("Its value is the key %q of the Secret %q.", ref.Key, ref.Name)
	for i := range seen.Secrets {
		if n := len(seen.Secrets[i].Data[ref.Key]); n > 0 && n < policy.MinScrubbed {
			well += fmt.Sprintf(" The value has fewer than %d bytes: endpoints that scrub answers cannot use it.", policy.MinScrubbed)
		}
	}
	return proxyfault.Verdict(proxyfault.Of(faults, self), proxyfault.Of(warnings, self), well)
}

// report applies the status if it has changed, and logs the verdict.
func (r *reconciler) report(ctx context.Context, object *v1alpha1.Credential, verdict controller.Verdict) error {
	before := object.Status.Conditions
	condition := verdict.Condition(before, object.Generation, r.Now())
	status := v1alpha1.CredentialStatus{ObservedGeneration: object.Generation, Conditions: []metav1.Condition{condition}}
	if equality.Semantic.DeepEqual(object.Status, status) {
		return nil
	}
	wanted := apply.Credential(object.Name, object.Namespace).WithUID(object.UID).WithStatus(
		apply.CredentialStatus().WithObservedGeneration(status.ObservedGeneration).WithConditions(controller.ApplyCondition(condition)))
	if err := r.client.Status().Apply(ctx, wanted, controller.FieldOwner, client.ForceOwnership); err != nil {
		return controller.IgnoreGone(fmt.Errorf("apply the status: %w", err))
	}
	verdict.Report(ctx, r.Log, r.events, object, before)
	return nil
}
