// Package metawatch follows changes of Secrets for the operator's controllers. It holds only metadata of Secrets, and
// no values.
//
// The package follows each namespace separately. A namespace that is missing, or whose Secrets the operator may not
// read, does not affect other namespaces. The package follows such a namespace within about a minute after the operator
// may read it.
package metawatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// remembered is how long after its last refusal a namespace counts as refused. The client library asks the API server
// again at least once a minute.
const remembered = 2 * time.Minute

// Watch follows the metadata of the Secrets of some namespaces, or of all namespaces. The manager starts a Watch as a
// manager.Runnable.
type Watch struct {
	caches    map[string]cache.Cache // by namespace; "": all
	informers []cache.Informer       // of Secrets, one of each cache
	log       *slog.Logger

	mu      sync.Mutex
	refused map[string]time.Time // when the API server last refused a namespace
}

// New returns a Watch of the given namespaces; "" stands for all namespaces. It exports the metric
//
//	lectern.operator.namespace.refused{watched_namespace}   1 while the operator may not read the namespace's Secrets, else 0
func New(mgr ctrl.Manager, namespaces []string, log *slog.Logger, meter metric.MeterProvider) (*Watch, error) {
	w := &Watch{caches: map[string]cache.Cache{}, log: log, refused: map[string]time.Time{}}
	for _, namespace := range namespaces {
		c, err := cache.New(mgr.GetConfig(), cache.Options{
			HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
			DefaultTransform:  identity,
			DefaultWatchErrorHandler: func(ctx context.Context, _ *toolscache.Reflector, err error) {
				w.failed(ctx, namespace, err)
			},
		})
		if err != nil {
			return nil, fmt.Errorf("watch Secrets: %w", err)
		}
		w.caches[namespace] = c
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		informer, err := c.GetInformer(context.Background(), secret, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch Secrets: %w", err)
		}
		w.informers = append(w.informers, informer)
	}
	_, err := meter.Meter("github.com/lectern-dev/lectern/k8s/internal/metawatch").Int64ObservableGauge("lectern.operator.namespace.refused",
		metric.WithDescription("1 while the operator may not read the Secrets of a watched namespace."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for namespace := range w.caches {
				refused := int64(0)
				if w.Refused(namespace) {
					refused = 1
				}
				o.Observe(refused, metric.WithAttributes(attribute.String("watched_namespace", namespace)))
			}
			return nil
		}))
	return w, err
}

// identity reduces the metadata of a Secret to its namespace, name, UID and resourceVersion. Annotations must not stay,
// because kubectl apply stores the whole object in an annotation, including the values of a Secret.
func identity(o any) (any, error) {
	object, err := meta.Accessor(o)
	if err != nil {
		return o, nil // the marker of a deletion that was missed: it holds what was transformed before
	}
	small := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}}
	small.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return small, nil
}

// NeedLeaderElection returns false, so that a standby operator is already up to date when it becomes the leader.
func (*Watch) NeedLeaderElection() bool { return false }

// Start follows the Secrets of the Watch's namespaces until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	var all errgroup.Group
	for _, c := range w.caches {
		all.Go(func() error { return c.Start(ctx) })
	}
	return all.Wait()
}

// Source returns a source of requests for a controller. For each Secret that exists, changes or is deleted, the
// controller gets the requests that the function requests returns. The controller does not wait until all Secrets have
// been read.
func (w *Watch) Source(requests func(context.Context, types.NamespacedName) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		changed := func(o any) {
			name, err := toolscache.DeletionHandlingObjectToName(o)
			if err != nil {
				return // not an object
			}
			for _, request := range requests(ctx, types.NamespacedName(name)) {
				queue.Add(request)
			}
		}
		var errs []error
		for _, informer := range w.informers {
			_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				AddFunc: changed, UpdateFunc: func(_, now any) { changed(now) }, DeleteFunc: changed,
			})
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// failed logs that the watch of a namespace has ended with err, and records a refusal for [Watch.Refused]. Of several
// refusals in a row, it logs the first.
func (w *Watch) failed(ctx context.Context, namespace string, err error) {
	if !apierrors.IsForbidden(err) {
		w.log.DebugContext(ctx, "a watch of Secrets ended; it is begun again", slog.String("namespace", namespace), slog.Any("error", err))
		return
	}
	if !w.Refused(namespace) {
		w.log.WarnContext(ctx, "the operator may not read the Secrets of a namespace: it is missing, or has no role for the operator; all others go on",
			slog.String("namespace", namespace), slog.Any("error", err))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused[namespace] = time.Now()
}

// Refused reports whether the API server has lately refused to let the operator read the Secrets of a namespace. The
// operator does not see changes of such Secrets.
func (w *Watch) Refused(namespace string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ever := w.refused[namespace]
	if w.caches[metav1.NamespaceAll] != nil {
		at, ever = w.refused[metav1.NamespaceAll]
	}
	return ever && time.Since(at) < remembered
}
