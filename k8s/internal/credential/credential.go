// Package credential has three controllers. One validates the Credentials that name their value, with the credential
// proxy's own code, and writes their status. One does the same for fetched Credentials, and fetches their tokens. The
// third writes the values of the Credentials to the Secret that the proxy reads.
package credential

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	"github.com/lectern-dev/lectern/k8s/internal/metawatch"
	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/k8s/internal/proxyfault"
	"github.com/lectern-dev/lectern/k8s/internal/tokenendpoint"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/manifest"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/proxy/resource"
	"github.com/lectern-dev/lectern/shared/limits"
)

// Options holds the dependencies and the settings of the controllers, for [Setup].
type Options struct {
	controller.Common

	// Secrets follows the Secrets of the watched namespaces. Required.
	Secrets *metawatch.Watch

	// Values is the Secret with the values of all Credentials, which the proxy reads. Required.
	Values types.NamespacedName

	// Tokens requests the tokens of fetched Credentials. Nil: the operator fetches none.
	Tokens *tokenendpoint.Client

	// AllowUndeclared lets every namespace have Credentials of a project that no Project declares.
	AllowUndeclared bool
}

// Names of the indexes of Credentials in the cache: by claim, by project and by the name of the Secret.
const (
	byClaim   = "credential.claim" // see [Claim]
	byProject = "credential.project"
	bySecret  = "credential.secret" // each Secret that the Credential reads, including the operator's own
)

// Claim returns the identity of a Credential within its namespace, as one string: project, environment and id.
func Claim(project, environment, id string) string {
	return project + "\x00" + environment + "\x00" + id
}

// Claimants returns the Credentials that have the id in the project and environment, in all watched namespaces, the
// oldest first. The reader r needs the indexes that [Setup] adds.
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
// It watches the metadata of Secrets, and reads those that Credentials name. It makes those of fetched tokens.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
//
// It reports its decisions as events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the three controllers and the indexes of Credentials to mgr. The caller must have indexed the Projects of
// mgr with [ownership.Index].
func Setup(mgr ctrl.Manager, o Options) error {
	for name, values := range map[string]func(*v1alpha1.Credential) []string{
		byClaim: func(c *v1alpha1.Credential) []string {
			return []string{Claim(c.Spec.ProjectID, c.Spec.Environment, c.Spec.ID)}
		},
		byProject: func(c *v1alpha1.Credential) []string { return []string{c.Spec.ProjectID} },
		bySecret:  secretsOf,
	} {
		err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Credential{}, name, func(object client.Object) []string {
			return values(object.(*v1alpha1.Credential))
		})
		if err != nil {
			return fmt.Errorf("index Credentials: %w", err)
		}
	}
	known := &secrets{client: mgr.GetClient(), held: map[types.NamespacedName]*held{}}
	values := &proxy{Options: o, client: mgr.GetClient(), secrets: known, flips: make(chan event.GenericEvent), fetchedFlips: make(chan event.GenericEvent)}
	if err := values.setup(mgr); err != nil {
		return err
	}
	tokens, err := newTokens(o.Common, mgr.GetClient(), o.Tokens)
	if err != nil {
		return err
	}
	r := reconciler{Options: o, client: mgr.GetClient(), events: mgr.GetEventRecorder(controller.Reporter), secrets: known, proxy: values}
	if err := r.setup(mgr, "credential", values.flips); err != nil {
		return err
	}
	// Token endpoints are slow. So fetched Credentials have workers of their own, of which each namespace has a share.
	r.tokens, r.Workers = tokens, fetchers
	return r.setup(mgr, "fetchedcredential", values.fetchedFlips)
}

// reconciler reconciles the Credentials that name their value if tokens is nil, and otherwise the fetched Credentials.
type reconciler struct {
	Options
	client  client.Client
	events  events.EventRecorder
	secrets *secrets
	proxy   *proxy
	tokens  *tokens
}

// setup adds a controller with the given name to mgr. The channel flips delivers the Credentials to reconcile again.
func (r reconciler) setup(mgr ctrl.Manager, name string, flips chan event.GenericEvent) error {
	written := builder.WithPredicates(predicate.GenerationChangedPredicate{}) // ignores the operator's own writes
	asked := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	return r.Controller(mgr, name, &v1alpha1.Credential{}, asked).
		Watches(&v1alpha1.Credential{}, handler.EnqueueRequestsFromMapFunc(r.rivals), written).
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(r.ofProject), builder.WithPredicates(ownership.Changed())).
		WatchesRawSource(r.Secrets.Source(r.ofSecret)).
		WatchesRawSource(source.Channel(flips, &handler.EnqueueRequestForObject{})).
		Complete(r.Traced(name, &r))
}

// secretsOf returns the names of the Secrets that a Credential's value comes from.
func secretsOf(c *v1alpha1.Credential) []string {
	names := []string{manifests.ValueRef(c.Name, c.Spec.ValueFrom).Name}
	if from := c.Spec.ValueFrom.OAuth2; from != nil {
		for _, ref := range []*resource.SecretKeyRef{from.ClientSecretRef, from.RefreshTokenRef, from.PrivateKeyRef} {
			if ref != nil {
				names = append(names, ref.Name)
			}
		}
	}
	return names
}

// Reconcile validates one Credential, and reports the result in the status of the Credential. With tokens, it handles
// only fetched Credentials and fetches a token that is due. Without tokens, it handles all others.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var object v1alpha1.Credential
	if err := r.client.Get(ctx, request.NamespacedName, &object); err != nil {
		if r.tokens != nil && errors.IsNotFound(err) {
			r.tokens.forget(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if fetched := object.Spec.ValueFrom.OAuth2 != nil; !object.DeletionTimestamp.IsZero() || fetched != (r.tokens != nil) {
		return reconcile.Result{}, nil
	}
	if r.tokens != nil {
		share := limits.Share{Holder: limits.Namespace(object.Namespace), Most: namespaceFetchers}
		if r.tokens.workers.Take(1, share) != nil {
			return reconcile.Result{RequeueAfter: shareRetry/2 + rand.N(shareRetry)}, nil // at different times, because turns become free one by one
		}
		defer r.tokens.workers.Give(1, share)
	}
	if object.Namespace == r.Values.Namespace && slices.Contains(secretsOf(&object), r.Values.Name) {
		verdict := controller.Verdict{Reason: v1alpha1.ReasonInvalid, Message: fmt.Sprintf("spec.valueFrom: names the Secret %q, which holds the values of all Credentials; allowed: any other", r.Values.Name)}
		return reconcile.Result{}, r.report(ctx, &object, verdict)
	}
	verdict, again, err := r.judge(ctx, &object)
	if errors.IsForbidden(err) {
		verdict = controller.Verdict{Reason: v1alpha1.ReasonSecretRefused, Message: "The operator may not read Secrets in this namespace: its role is missing here. Run helm upgrade, which makes the role."}
		return reconcile.Result{RequeueAfter: refusedRetry}, r.report(ctx, &object, verdict)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if why := r.proxy.missing(&object); why != "" && verdict.Ready {
		verdict = controller.Verdict{Reason: v1alpha1.ReasonSecretValueInvalid, Message: "The proxy does not get the value: " + why + "."}
	}
	if err := r.report(ctx, &object, verdict); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// judge returns the verdict on a Credential, and the time until the next reconcile; 0: none is scheduled. For a fetched
// Credential without other faults, it fetches the token if that is due.
func (r *reconciler) judge(ctx context.Context, object *v1alpha1.Credential) (controller.Verdict, time.Duration, error) {
	seen, err := r.read(ctx, object)
	if err != nil {
		return controller.Verdict{}, 0, err
	}
	verdict := decide(object, seen)
	if r.tokens == nil || !verdict.Ready {
		return verdict, 0, nil
	}
	return r.tokens.keep(ctx, object)
}

// refusedRetry is the time after which the controller tries again to read or write a Secret to which the operator has
// no right.
const refusedRetry = 10 * time.Second

// read returns the objects that the verdict on a Credential depends on. These objects are the Project, the Secret, the
// Credential itself, and the older Credentials with the same claim. A fetched Credential without a token gets a valid
// value, so that its other faults show.
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
	ref := manifests.ValueRef(object.Name, object.Spec.ValueFrom)
	name := types.NamespacedName{Namespace: object.Namespace, Name: ref.Name}
	data, err := r.secrets.values(ctx, name)
	if err != nil {
		return seen, err
	}
	if r.tokens != nil && data[ref.Key] == nil { // the other faults count while there is no token
		data = map[string][]byte{ref.Key: make([]byte, policy.MinScrubbed)}
	}
	if data != nil {
		seen.Secrets = append(seen.Secrets, manifest.Secret{Metadata: manifest.Metadata{Namespace: name.Namespace, Name: name.Name}, Data: data})
	}
	return seen, nil
}

// decide returns the verdict on a Credential. seen holds the objects that the verdict depends on, as [reconciler.read]
// returns them.
func decide(object *v1alpha1.Credential, seen manifest.Objects) controller.Verdict {
	_, faults, warnings := manifest.BuildEach(seen)
	self := manifest.ObjectKey{Kind: "Credential", Namespace: object.Namespace, Name: object.Name}
	ref := manifests.ValueRef(object.Name, object.Spec.ValueFrom)
	well := fmt.Sprintf("Its value is the key %q of the Secret %q.", ref.Key, ref.Name)
	for i := range seen.Secrets {
		if n := len(seen.Secrets[i].Data[ref.Key]); n > 0 && n < policy.MinScrubbed {
			well += fmt.Sprintf(" The value has fewer than %d bytes: endpoints that scrub answers cannot use it.", policy.MinScrubbed)
		}
	}
	return proxyfault.Verdict(proxyfault.Of(faults, self), proxyfault.Of(warnings, self), well)
}

// report applies the verdict as the status of object, if the status has changed. It then records the verdict in the log
// and as an event. An object that no longer exists is no error.
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
