package credential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
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
	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/policy"
)

const (
	// namespaceBytes bounds the values of one namespace in the Secret for the proxy, in bytes, with their names counted
	// twice. So one namespace cannot fill the Secret. Kubernetes limits all values of a Secret to corev1.MaxSecretSize.
	namespaceBytes = 128 << 10

	// repeat is the time after which the controller checks the Secret for the proxy again, in case somebody has changed
	// the Secret.
	repeat = time.Minute
)

// proxy is the controller of the Secret for the credential proxy. The Secret holds the values of Credentials, so that
// the proxy needs no right on any other Secret. The controller computes the whole Secret each time.
type proxy struct {
	Options
	client  client.Client
	secrets *secrets
	// flips and fetchedFlips deliver the Credentials for which leftOut has changed: those that name their value, and
	// fetched ones.
	flips, fetchedFlips chan event.GenericEvent

	// The last run saw these. Only Reconcile uses them.
	seen map[types.UID]origin
	uses map[string][]types.UID // the Credentials that an endpoint may use, by the endpoint's namespace/name

	mu      sync.Mutex
	leftOut map[string]string // why the Secret has no current value of a Credential, by the name of the value
}

// The controller writes the Secret for the proxy, which the chart makes. Where the operator may create Secrets, as in a watched
// namespace, the controller makes one that was deleted.
// +kubebuilder:rbac:groups="",namespace=lectern,resources=secrets,resourceNames=lectern-proxy-values,verbs=get;update

// all is the only request of the controller proxy, because every change makes the controller compute the whole Secret.
var all = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

func (p *proxy) setup(mgr ctrl.Manager) error {
	always := func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{all} }
	ofSecret := func(_ context.Context, name types.NamespacedName) []reconcile.Request {
		if p.secrets.changed(name) || name == p.Values {
			return []reconcile.Request{all}
		}
		return nil
	}
	// Without any Credential the proxy waits for the Secret, too.
	begin := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(all)
		return nil
	})
	return p.Builder(mgr, "proxyvalues").
		Watches(&v1alpha1.Credential{}, handler.EnqueueRequestsFromMapFunc(always), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.ProxyEndpoint{}, handler.EnqueueRequestsFromMapFunc(always), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(always), builder.WithPredicates(ownership.Changed())).
		WatchesRawSource(p.Secrets.Source(ofSecret)).
		WatchesRawSource(begin).
		Complete(p.Traced("proxyvalues", p))
}

// Reconcile writes the values of the Credentials to the Secret for the proxy. It leaves out values that are empty or
// exceed a limit of size. While the Secret of a Credential cannot be read, the proxy keeps the last value of the
// Credential.
func (p *proxy) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var list v1alpha1.CredentialList
	if err := p.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Credentials: %w", err)
	}
	now, err := p.read(ctx)
	if err != nil {
		if apierrors.IsNotFound(err) {
			p.remember(ctx, list.Items, allLeftOut(list.Items, fmt.Sprintf("the Secret %s is gone; helm upgrade makes it", p.Values.Name)))
		}
		return reconcile.Result{}, fmt.Errorf("read the Secret %s for the proxy, which the chart makes: %w", p.Values, err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Credential) int { return manifests.Older(&a, &b) })
	var (
		data    = map[string][]byte{}
		leftOut = map[string]string{}
		named   = map[types.NamespacedName]bool{}
		sizes   = map[string]int{} // of a namespace's values with their names; "": of all
		errs    []error
		seen    = map[types.UID]origin{}
	)
	for i := range list.Items {
		c := &list.Items[i]
		ref := manifests.ValueRef(c.Name, c.Spec.ValueFrom)
		from := types.NamespacedName{Namespace: c.Namespace, Name: ref.Name}
		if !c.DeletionTimestamp.IsZero() || from == p.Values {
			continue
		}
		named[from] = true
		name, short := valueName(c)
		if p.Secrets.Refused(c.Namespace) {
			p.secrets.changed(from) // the Secret may have changed, unseen
			leftOut[name] = refused
		}
		held, err := p.secrets.values(ctx, from)
		value, known := held[ref.Key], origin{namespace: c.Namespace}
		switch {
		case err != nil:
			errs = append(errs, err)
			value, known.ends = now.Data[name], p.seen[c.UID].ends
		case c.Spec.ValueFrom.OAuth2 != nil:
			known.ends = stateOf(&corev1.Secret{Data: held}).ExpiresAt
		}
		seen[c.UID] = known
		if len(value) == 0 || len(value) > policy.MaxValue {
			continue // the status of the Credential says so
		}
		size := len(value) + 2*len(name) // the object's managed fields have the names, too
		switch {
		case !short:
			leftOut[name] = "the names of the Secret and the key have more than 215 characters together"
		case sizes[c.Namespace]+size > namespaceBytes:
			leftOut[name] = fmt.Sprintf("the values of the Credentials of a namespace have more than %d bytes together; the oldest Credentials come first", namespaceBytes)
		case sizes[""]+size > corev1.MaxSecretSize:
			leftOut[name] = fmt.Sprintf("the values of all Credentials have more than %d bytes together; the oldest Credentials come first", corev1.MaxSecretSize)
		default:
			data[name] = value
			sizes[c.Namespace] += size
			sizes[""] += size
		}
	}
	p.secrets.keep(func(name types.NamespacedName) bool { return named[name] })
	uses, err := p.usesOf(ctx, list.Items)
	if err != nil {
		return reconcile.Result{}, err
	}
	former, err := p.former(now.Data, data, uses, sizes)
	if err != nil {
		return reconcile.Result{}, err
	}
	if former != nil {
		data[manifests.FormerKey] = former
	}
	if err := p.write(ctx, now, data); err != nil {
		return reconcile.Result{}, fmt.Errorf("write the Secret %s for the proxy: %w", p.Values, err)
	}
	p.seen, p.uses = seen, uses
	p.remember(ctx, list.Items, leftOut)
	if err := errors.Join(errs...); err != nil {
		p.Log.WarnContext(ctx, "the proxy keeps the value of a Secret that cannot be read; the operator retries", slog.Any("error", err))
		return reconcile.Result{RequeueAfter: repeat / 10}, nil
	}
	return reconcile.Result{RequeueAfter: repeat}, nil
}

// read returns the Secret for the proxy. If somebody has deleted the Secret, read creates an empty Secret. If the
// operator may not create a Secret, the error is NotFound.
func (p *proxy) read(ctx context.Context) (*corev1.Secret, error) {
	var now corev1.Secret
	missing := p.client.Get(ctx, p.Values, &now)
	if !apierrors.IsNotFound(missing) {
		return &now, missing
	}
	now = corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Values.Namespace, Name: p.Values.Name}, Type: corev1.SecretTypeOpaque}
	err := p.client.Create(ctx, &now, controller.FieldOwner)
	switch {
	case apierrors.IsForbidden(err):
		return nil, missing
	case err != nil:
		return nil, err
	}
	p.Log.WarnContext(ctx, "the Secret for the proxy was deleted; made another", slog.String("secret", p.Values.String()))
	return &now, nil
}

// allLeftOut returns the reason in why for each of the Credentials, by the name of the Credential's value.
func allLeftOut(credentials []v1alpha1.Credential, why string) map[string]string {
	all := map[string]string{}
	for i := range credentials {
		name, _ := valueName(&credentials[i])
		all[name] = why
	}
	return all
}

// refused is the reason in leftOut of a Credential whose Secret the operator may not read.
const refused = "the operator may not read Secrets in its namespace"

// write replaces the values of the Secret for the proxy by data and sets the label LabelManaged, unless both are there
// already. The label tells the proxy that the operator has filled the Secret, even if there are no values.
func (p *proxy) write(ctx context.Context, now *corev1.Secret, data map[string][]byte) error {
	if now.Labels[v1alpha1.LabelManaged] == "true" && maps.EqualFunc(now.Data, data, bytes.Equal) {
		return nil
	}
	metav1.SetMetaDataLabel(&now.ObjectMeta, v1alpha1.LabelManaged, "true")
	now.Data = data
	return p.client.Update(ctx, now, controller.FieldOwner)
}

// remember stores in leftOut the reasons why values are missing. It triggers a reconcile of each Credential whose
// reason has changed.
func (p *proxy) remember(ctx context.Context, credentials []v1alpha1.Credential, leftOut map[string]string) {
	p.mu.Lock()
	before := p.leftOut
	p.leftOut = leftOut
	p.mu.Unlock()
	for i := range credentials {
		c := &credentials[i]
		if name, _ := valueName(c); before[name] != leftOut[name] {
			flips := p.flips
			if c.Spec.ValueFrom.OAuth2 != nil {
				flips = p.fetchedFlips
			}
			select {
			case flips <- event.GenericEvent{Object: c.DeepCopy()}:
			case <-ctx.Done():
				p.mu.Lock()
				p.leftOut = before // so that the next run judges all of them again
				p.mu.Unlock()
				return
			}
		}
	}
}

// valueName returns the key of a Credential's value in the Secret for the proxy, and whether Kubernetes allows its
// length.
func valueName(c *v1alpha1.Credential) (name string, ok bool) {
	return manifests.ValueName(c, manifests.ValueRef(c.Name, c.Spec.ValueFrom))
}

// missing returns the reason why the Secret for the proxy has no current value of a Credential, or "" if no reason is
// known.
func (p *proxy) missing(c *v1alpha1.Credential) string {
	name, _ := valueName(c)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leftOut[name]
}
