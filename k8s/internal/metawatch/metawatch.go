// Package metawatch follows changes of Secrets and of ServiceAccounts for the operator's controllers. It holds only their
// metadata, and no values.
//
// The package follows each namespace separately. A namespace that is missing, or whose objects the operator may not
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// remembered is how long after its last refusal a namespace counts as refused. The client library asks the API server
// again at least once a minute.
const remembered = 2 * time.Minute

// Errors of [Watch.UID].
var (
	// ErrUnread: the Watch has not read the objects of the namespace yet.
	ErrUnread = errors.New("the objects of the namespace have not been read yet")
	// ErrRefused: the API server lately refused to let the operator read the objects of the namespace.
	ErrRefused = errors.New("the operator may not read the objects of the namespace")
)

// Watch follows the metadata of the objects of one kind in some namespaces, or in all namespaces. The manager starts a
// Watch as a manager.Runnable.
type Watch struct {
	kind      schema.GroupVersionKind
	caches    map[string]cache.Cache    // by namespace; "": all
	informers map[string]cache.Informer // one of each cache
	log       *slog.Logger

	mu      sync.Mutex
	refused map[string]time.Time // when the API server last refused a namespace
}

// New returns a Watch of the objects of a core kind, such as "Secret", in the given namespaces; "" stands for all
// namespaces.
func New(mgr ctrl.Manager, kind string, namespaces []string, log *slog.Logger) (*Watch, error) {
	w := &Watch{
		kind: corev1.SchemeGroupVersion.WithKind(kind), caches: map[string]cache.Cache{}, informers: map[string]cache.Informer{},
		log: log, refused: map[string]time.Time{},
	}
	for _, namespace := range namespaces {
		c, err := cache.New(mgr.GetConfig(), cache.Options{
			HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
			DefaultTransform:  w.identity,
			DefaultWatchErrorHandler: func(ctx context.Context, _ *toolscache.Reflector, err error) {
				w.failed(ctx, namespace, err)
			},
		})
		if err != nil {
			return nil, fmt.Errorf("watch the kind %s: %w", kind, err)
		}
		w.caches[namespace] = c
		w.informers[namespace], err = c.GetInformer(context.Background(), w.object(), cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch the kind %s: %w", kind, err)
		}
	}
	return w, nil
}

// object returns an object of the kind without metadata.
func (w *Watch) object() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(w.kind)
	return o
}

// Export exports the metric of a Watch of Secrets
//
//	lectern.operator.namespace.refused{watched_namespace}   1 while the operator may not read the namespace's Secrets, else 0
func (w *Watch) Export(meter metric.MeterProvider) error {
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
	return err
}

// identity reduces the metadata of an object to its namespace, name, UID and resourceVersion. Annotations must not stay,
// because kubectl apply stores the whole object in an annotation, including the values of a Secret.
func (w *Watch) identity(o any) (any, error) {
	object, err := meta.Accessor(o)
	if err != nil {
		return o, nil // the marker of a deletion that was missed: it holds what was transformed before
	}
	small := w.object()
	small.Namespace, small.Name, small.UID, small.ResourceVersion = object.GetNamespace(), object.GetName(), object.GetUID(), object.GetResourceVersion()
	return small, nil
}

// NeedLeaderElection returns false, so that a standby operator is already up to date when it becomes the leader.
func (*Watch) NeedLeaderElection() bool { return false }

// Start follows the objects of the Watch's namespaces until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	var all errgroup.Group
	for _, c := range w.caches {
		all.Go(func() error { return c.Start(ctx) })
	}
	return all.Wait()
}

// UID returns the UID of an object, or "" if there is no such object. The answer is as old as the last event of the watch.
// The error is [ErrUnread] or [ErrRefused].
func (w *Watch) UID(ctx context.Context, name types.NamespacedName) (types.UID, error) {
	namespace := name.Namespace
	if w.caches[namespace] == nil {
		namespace = metav1.NamespaceAll
	}
	switch informer := w.informers[namespace]; {
	case w.Refused(namespace):
		return "", ErrRefused
	case informer == nil || !informer.HasSynced():
		return "", ErrUnread
	}
	o := w.object()
	err := w.caches[namespace].Get(ctx, name, o)
	return o.UID, client.IgnoreNotFound(err)
}

// Source returns a source of requests for a controller. For each object that exists, changes or is deleted, the
// controller gets the requests that the function requests returns. The controller does not wait until all objects have
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
		w.log.DebugContext(ctx, "a watch of "+w.kind.Kind+"s ended; it is begun again", slog.String("namespace", namespace), slog.Any("error", err))
		return
	}
	if !w.Refused(namespace) {
		w.log.WarnContext(ctx, "the operator may not read the "+w.kind.Kind+"s of a namespace: it is missing, or has no role for the operator; all others go on",
			slog.String("namespace", namespace), slog.Any("error", err))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused[namespace] = time.Now()
}

// Refused reports whether the API server has lately refused to let the operator read the objects of a namespace. The
// operator does not see changes of such objects.
func (w *Watch) Refused(namespace string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ever := w.refused[namespace]
	if w.caches[metav1.NamespaceAll] != nil {
		at, ever = w.refused[metav1.NamespaceAll]
	}
	return ever && time.Since(at) < remembered
}
