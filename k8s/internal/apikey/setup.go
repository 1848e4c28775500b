package apikey

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/k8s/internal/metawatch"
	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
)

// Keys is the key database. authn.Admin implements Keys. With Redis, authn.Admin also replaces the copy of each changed
// key there.
type Keys interface {
	Owned(ctx context.Context, projectID string, o auth.Owner) (active []pgkeys.Owned, last int64, err error)
	EachOwned(ctx context.Context, realm string, do func(pgkeys.Owned) error) error
	MintOwned(ctx context.Context, o pgkeys.OwnedOptions) (config.Secret, pgkeys.Owned, error)
	Deliver(ctx context.Context, projectID, keyID string) (pgkeys.Owned, error)
	Amend(ctx context.Context, projectID, keyID string, t pgkeys.Terms) (auth.Record, error)
	Expire(ctx context.Context, projectID, keyID string, at time.Time) (auth.Record, error)
	Revoke(ctx context.Context, projectID, keyID string) (auth.Record, error)
}

// Accounts has the uids of ServiceAccounts. [metawatch.Watch] implements Accounts.
type Accounts interface {
	UID(ctx context.Context, name types.NamespacedName) (types.UID, error)
	Source(requests func(context.Context, types.NamespacedName) []reconcile.Request) source.Source
}

// Options holds the dependencies and the intervals of the controller of APIKeys. [Setup] replaces an interval of zero
// by its default.
type Options struct {
	controller.Common

	// Secrets follows the Secrets of the watched namespaces. Required.
	Secrets *metawatch.Watch

	// Accounts follows the ServiceAccounts of all namespaces. Required.
	Accounts Accounts

	// Keys is the key database, with a role that can mint and revoke. Required.
	Keys Keys

	// Realm identifies the operator among those that share the database; see [ClusterRealm]. The controller never
	// changes keys of other realms. Required.
	Realm string

	// Namespaces are the watched namespaces, which are those of the manager's cache. The sweep treats objects elsewhere
	// as unwatched. Empty: all.
	Namespaces []string

	// AllowUndeclared lets every namespace have keys of a project that no Project declares.
	AllowUndeclared bool

	// PublicURL is the API address in the Secrets of objects without spec.url. Empty: none.
	PublicURL string

	// ClusterIssuer is the issuer of the tokens of the cluster's ServiceAccounts. Empty: no object may have
	// spec.identity.serviceAccountRef.
	ClusterIssuer string

	// SweepEvery is the interval between sweeps of all keys. Default: 5m.
	SweepEvery time.Duration

	// UseEvery is the smallest step by which the last use in the status changes. Default: 6h.
	UseEvery time.Duration

	// Settle is how long an undelivered key is left to the operator that minted it, which gives up after half of that
	// time. It must exceed the clock difference of two operators. Default: 10s.
	Settle time.Duration

	// Client reads from the cache and writes. Reader reads from the API server. Default: those of the manager.
	Client client.Client
	Reader client.Reader
}

func (o *Options) complete(mgr ctrl.Manager) error {
	var errs []error
	if o.Secrets == nil {
		errs = append(errs, errors.New("apikey: Secrets is not set"))
	}
	if o.Accounts == nil {
		errs = append(errs, errors.New("apikey: Accounts is not set"))
	}
	if o.Keys == nil {
		errs = append(errs, errors.New("apikey: Keys is not set"))
	}
	if o.Realm == "" {
		errs = append(errs, errors.New("apikey: Realm is not set"))
	}
	for _, d := range []struct {
		value *time.Duration
		usual time.Duration
	}{
		{&o.SweepEvery, 5 * time.Minute}, {&o.UseEvery, 6 * time.Hour}, {&o.Settle, 10 * time.Second},
	} {
		if *d.value <= 0 {
			*d.value = d.usual
		}
	}
	if o.Client == nil {
		o.Client = mgr.GetClient()
	}
	if o.Reader == nil {
		o.Reader = mgr.GetAPIReader()
	}
	return errors.Join(errs...)
}

// ClusterRealm returns the realm of the cluster: "kubernetes/" and the UID of the namespace kube-system. The UID is
// unique and lasts as long as the cluster.
func ClusterRealm(ctx context.Context, reader client.Reader) (string, error) {
	ns := metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := reader.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &ns); err != nil {
		return "", fmt.Errorf("identify this cluster: %w", err)
	}
	return "kubernetes/" + string(ns.UID), nil
}

// Names of the indexes of APIKeys in the cache: by the Secret's name, by the ServiceAccount's namespace and name, and by
// the project's id.
const (
	secretIndex  = "apikey.secretName"
	accountIndex = "apikey.serviceAccount"
	projectIndex = "apikey.project"
)

// The controller reads and watches APIKeys, applies their status, and removes the finalizer of version 0.1.0.
// +kubebuilder:rbac:groups=lectern.dev,resources=apikeys,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=lectern.dev,resources=apikeys/status,verbs=patch
//
// It watches Projects, which decide which namespaces may have keys of a project.
// +kubebuilder:rbac:groups=lectern.dev,resources=projects,verbs=get;list;watch
//
// It watches the metadata of Secrets, to notice deletions and edits. It reads, creates and patches the Secret of each
// APIKey.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
//
// It watches the metadata of ServiceAccounts, whose uids are in the grants.
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=list;watch
//
// kube-system's UID identifies this cluster among those that share the key database.
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get

// Setup adds the controller of APIKeys and the sweep of their keys to mgr. The caller must have indexed the Projects of
// mgr with [ownership.Index].
func Setup(mgr ctrl.Manager, o Options) error {
	if err := o.complete(mgr); err != nil {
		return err
	}
	figures, err := newMeters(o.Meter)
	if err != nil {
		return err
	}
	sweep := &sweeper{Options: o, meters: figures, nudged: make(chan struct{}, 1), look: make(chan event.GenericEvent), seen: map[types.UID]bool{}}
	if err := mgr.Add(sweep); err != nil {
		return err
	}
	for name, of := range map[string]func(*v1alpha1.APIKey) string{
		secretIndex:  secretNameOf,
		accountIndex: func(k *v1alpha1.APIKey) string { return accountOf(k).String() },
		projectIndex: func(k *v1alpha1.APIKey) string { return k.Spec.ProjectID },
	} {
		err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.APIKey{}, name, func(object client.Object) []string {
			return []string{of(object.(*v1alpha1.APIKey))}
		})
		if err != nil {
			return err
		}
	}
	r := &reconciler{Options: o, events: mgr.GetEventRecorder(controller.Reporter), meters: figures, sweep: sweep.nudge, saw: sweep.saw}
	// Ignore changes of the status, which the controller itself makes.
	changed := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	return o.Controller(mgr, "apikey", &v1alpha1.APIKey{}, builder.WithPredicates(changed)).
		WatchesRawSource(o.Secrets.Source(r.ofSecret)).
		WatchesRawSource(o.Accounts.Source(r.ofAccount)).
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(r.ofProject), builder.WithPredicates(ownership.Changed())).
		WatchesRawSource(source.Channel(sweep.look, &handler.EnqueueRequestForObject{})).
		Complete(o.Traced("apikey", r))
}

// ofSecret returns a request for each APIKey that names the Secret, whether or not the APIKey owns the Secret.
func (r *reconciler) ofSecret(ctx context.Context, name types.NamespacedName) []reconcile.Request {
	return r.find(ctx, client.InNamespace(name.Namespace), client.MatchingFields{secretIndex: name.Name})
}

// ofAccount returns a request for each APIKey that grants a project to the ServiceAccount.
func (r *reconciler) ofAccount(ctx context.Context, name types.NamespacedName) []reconcile.Request {
	return r.find(ctx, client.MatchingFields{accountIndex: name.String()})
}

// ofProject returns a request for each APIKey of the project that the given Project names.
func (r *reconciler) ofProject(ctx context.Context, project client.Object) []reconcile.Request {
	return r.find(ctx, client.MatchingFields{projectIndex: project.(*v1alpha1.Project).Spec.ProjectID})
}

func (r *reconciler) find(ctx context.Context, by ...client.ListOption) []reconcile.Request {
	var objects v1alpha1.APIKeyList
	if err := r.Client.List(ctx, &objects, by...); err != nil {
		r.Log.ErrorContext(ctx, "cannot list the APIKeys that a change affects", "error", err)
		return nil
	}
	var requests []reconcile.Request
	for _, object := range objects.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&object)})
	}
	return requests
}
