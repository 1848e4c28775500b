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
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/policy"
)

const (
	// namespaceBytes is how many bytes the values of one namespace and their names may have together. So one namespace cannot
	// fill the Secret for the proxy. Kubernetes limits all values of a Secret to corev1.MaxSecretSize.
	namespaceBytes = 128 << 10

	// repeat is the time after which the Secret for the proxy is written again, in case somebody has changed it.
	repeat = time.Minute
)

// proxy is the controller of the Secret for the credential proxy. It holds the values of all Credentials, so that the
// proxy needs no right on any other Secret. The controller computes it as a whole each time.
type proxy struct {
	Options
	client  client.Client
	secrets *secrets
	flips   chan event.GenericEvent // Credentials for which leftOut has changed

	mu      sync.Mutex
	leftOut map[string]string // why the Secret has no current value of a Credential, by the name of the value
}

// The controller writes the Secret for the proxy, which the chart makes. Where the operator may create Secrets, as in a watched
// namespace, the controller makes one that was deleted.
// +kubebuilder:rbac:groups="",namespace=lectern,resources=secrets,resourceNames=lectern-proxy-values,verbs=get;update

// all is the request of a controller with one object.
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
		WatchesRawSource(p.Secrets.Source(ofSecret)).
		WatchesRawSource(begin).
		Complete(p.Traced("proxyvalues", p))
}

// Reconcile writes the Secret for the proxy. While a Secret cannot be read, its values there stay.
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
	)
	for i := range list.Items {
		c := &list.Items[i]
		ref := c.Spec.ValueFrom.SecretKeyRef
		from := types.NamespacedName{Namespace: c.Namespace, Name: ref.Name}
		if !c.DeletionTimestamp.IsZero() || from == p.Values {
			continue
		}
		named[from] = true
		name, short := manifests.ValueName(c, ref)
		if p.Secrets.Refused(c.Namespace) {
			p.secrets.changed(from) // it may have, unseen
			leftOut[name] = refused
		}
		held, err := p.secrets.values(ctx, from)
		value := held[ref.Key]
		if err != nil {
			errs = append(errs, err)
			value = now.Data[name]
		}
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
	if err := p.write(ctx, now, data); err != nil {
		return reconcile.Result{}, fmt.Errorf("write the Secret %s for the proxy: %w", p.Values, err)
	}
	p.remember(ctx, list.Items, leftOut)
	if err := errors.Join(errs...); err != nil {
		p.Log.WarnContext(ctx, "the proxy keeps the value of a Secret that cannot be read; the operator retries", slog.Any("error", err))
		return reconcile.Result{RequeueAfter: repeat / 10}, nil
	}
	return reconcile.Result{RequeueAfter: repeat}, nil
}

// read returns the Secret for the proxy. If somebody has deleted the Secret, read makes another. The error is that of a Secret
// that is not found if the operator may not do so.
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

// allLeftOut returns the same reason for each Credential.
func allLeftOut(credentials []v1alpha1.Credential, why string) map[string]string {
	all := map[string]string{}
	for i := range credentials {
		name, _ := manifests.ValueName(&credentials[i], credentials[i].Spec.ValueFrom.SecretKeyRef)
		all[name] = why
	}
	return all
}

// refused is why a Credential is judged again whose Secret the operator may not read.
const refused = "the operator may not read Secrets in its namespace"

// write makes data the values of the Secret for the proxy, unless they are already. The label tells the proxy that it has
// been filled, if only with nothing.
func (p *proxy) write(ctx context.Context, now *corev1.Secret, data map[string][]byte) error {
	if now.Labels[v1alpha1.LabelManaged] == "true" && maps.EqualFunc(now.Data, data, bytes.Equal) {
		return nil
	}
	metav1.SetMetaDataLabel(&now.ObjectMeta, v1alpha1.LabelManaged, "true")
	now.Data = data
	return p.client.Update(ctx, now, controller.FieldOwner)
}

// remember keeps why values are left out, and has the Credentials judged again for which that has changed.
func (p *proxy) remember(ctx context.Context, credentials []v1alpha1.Credential, leftOut map[string]string) {
	p.mu.Lock()
	before := p.leftOut
	p.leftOut = leftOut
	p.mu.Unlock()
	for i := range credentials {
		c := &credentials[i]
		if name, _ := manifests.ValueName(c, c.Spec.ValueFrom.SecretKeyRef); before[name] != leftOut[name] {
			select {
			case p.flips <- event.GenericEvent{Object: c.DeepCopy()}:
			case <-ctx.Done():
				p.mu.Lock()
				p.leftOut = before // so that the next run judges all of them again
				p.mu.Unlock()
				return
			}
		}
	}
}

// missing returns why the proxy has no current value of a Credential, or "".
func (p *proxy) missing(c *v1alpha1.Credential) string {
	name, _ := manifests.ValueName(c, c.Spec.ValueFrom.SecretKeyRef)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leftOut[name]
}
