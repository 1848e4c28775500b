// Package frame owns what all controllers of the operator do alike: how they are built, how a decision
// becomes a condition, an event and a line of the log, and that nothing is written when nothing changed. It
// knows none of the kinds.
//
// A controller's package has
//
//	func Setup(mgr ctrl.Manager, o Options) error
//
// where its Options embed [Common]. Its Reconcile reads, computes what should be by a pure function, applies
// that once and then the status, each by server-side apply under [FieldOwner], and only what differs.
package frame

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// FieldOwner is the field manager of all that the operator applies.
const FieldOwner = client.FieldOwner("lectern-operator")

// Reporter is whom events come from.
const Reporter = "lectern-operator"

// Common holds the dependencies of every controller. All fields are set.
type Common struct {
	// Log hears of decisions, one line each, and of faults.
	Log *slog.Logger
	// Tracer makes a span of each reconcile.
	Tracer trace.TracerProvider
	// Meter takes a controller's own figures; those of all controllers are taken by controller-runtime.
	Meter metric.MeterProvider
	// Now is the clock.
	Now func() time.Time
	// Workers is how many objects of a kind are reconciled at a time.
	Workers int
}

// How long a failing object rests before it is tried again: twice as long each time.
const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// Controller begins a controller of that name for objects of a kind. The caller adds what is watched, and
// completes it with [Common.Traced].
func (c Common) Controller(mgr ctrl.Manager, name string, object client.Object, options ...builder.ForOption) *builder.Builder {
	log := logr.FromSlogHandler(c.Log.Handler()).WithValues("controller", name)
	return ctrl.NewControllerManagedBy(mgr).Named(name).For(object, options...).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: c.Workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
			ReconciliationTimeout:   time.Minute,
		}).
		WithLogConstructor(func(request *reconcile.Request) logr.Logger {
			if request == nil {
				return log
			}
			return log.WithValues("namespace", request.Namespace, "name", request.Name)
		})
}

// Traced makes a span of each reconcile of r. A fault that passes by itself is not one of the span.
func (c Common) Traced(name string, r reconcile.Reconciler) reconcile.Reconciler {
	return traced{name: name, tracer: c.Tracer.Tracer("github.com/lectern-dev/lectern/k8s"), next: r}
}

type traced struct {
	name   string
	tracer trace.Tracer
	next   reconcile.Reconciler
}

// Reconcile reconciles one object.
func (t traced) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, span := t.tracer.Start(ctx, "reconcile "+t.name, trace.WithAttributes(
		attribute.String("k8s.namespace.name", request.Namespace), attribute.String("lectern.object.name", request.Name)))
	defer span.End()
	result, err := t.next.Reconcile(ctx, request)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	return result, err
}
