// Package controller holds the common parts of the operator's controllers. It builds controllers, and turns a verdict
// into a condition, an event and a log line. Nothing in the package depends on a kind of Lectern.
//
// A controller's package has
//
//	func Setup(mgr ctrl.Manager, o Options) error
//
// where Options embeds [Common]. The controller's Reconcile reads objects, and a pure function computes the desired
// state. Reconcile then writes the differences, and the status by server-side apply, under [FieldOwner].
package controller

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

// FieldOwner is the field manager of everything that the operator applies.
const FieldOwner = client.FieldOwner("lectern-operator")

// Reporter is the name of the operator as the reporting controller of events.
const Reporter = "lectern-operator"

// Common holds the dependencies of every controller. The caller sets all fields.
type Common struct {
	// Log receives a line for each changed verdict, and errors.
	Log *slog.Logger
	// Tracer makes a span of each reconcile.
	Tracer trace.TracerProvider
	// Meter receives a controller's own metrics. controller-runtime collects those common to all controllers.
	Meter metric.MeterProvider
	// Now is the clock.
	Now func() time.Time
	// Workers is the largest number of objects of a kind that are reconciled concurrently.
	Workers int
}

// The first and the longest delay before a failed reconcile is retried. The delay doubles after each failure.
const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// Controller returns the builder of a controller for objects of a kind. The caller adds watches, and completes the
// builder with the reconciler of [Common.Traced].
func (c Common) Controller(mgr ctrl.Manager, name string, object client.Object, options ...builder.ForOption) *builder.Builder {
	return c.Builder(mgr, name).For(object, options...)
}

// Builder returns the builder of a controller that has no main kind, with the workers and the log of c. A reconcile may
// take a minute. The caller adds all watches.
func (c Common) Builder(mgr ctrl.Manager, name string) *builder.Builder {
	log := logr.FromSlogHandler(c.Log.Handler()).WithValues("controller", name)
	return ctrl.NewControllerManagedBy(mgr).Named(name).
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

// Traced returns r with a span around each reconcile. An error of the reconcile sets the span's status.
func (c Common) Traced(name string, r reconcile.Reconciler) reconcile.Reconciler {
	return traced{name: name, tracer: c.Tracer.Tracer("github.com/lectern-dev/lectern/k8s"), next: r}
}

type traced struct {
	name   string
	tracer trace.Tracer
	next   reconcile.Reconciler
}

// Reconcile calls the next reconciler in a span with the namespace and the name of the object.
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
