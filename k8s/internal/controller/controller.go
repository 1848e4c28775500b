// Package controller holds the common parts of the operator's controllers. It builds them, and turns a verdict into a
// condition, an event and a log line. Nothing in it depends on a kind.
//
// A controller's package has
//
//	func Setup(mgr ctrl.Manager, o Options) error
//
// where its Options embed [Common]. Its Reconcile reads, and a pure function computes the desired state. Reconcile then
// applies differences and the status by server-side apply under [FieldOwner].
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

// Reporter is the reporting controller of events.
const Reporter = "lectern-operator"

// Common holds the dependencies of every controller. All fields are set.
type Common struct {
	// Log receives one line for each verdict, and errors.
	Log *slog.Logger
	// Tracer makes a span of each reconcile.
	Tracer trace.TracerProvider
	// Meter receives a controller's own metrics. controller-runtime collects those common to all controllers.
	Meter metric.MeterProvider
	// Now is the clock.
	Now func() time.Time
	// Workers is the number of objects of a kind that are reconciled concurrently.
	Workers int
}

// The first and the longest delay before a failed reconcile is retried. The delay doubles each time.
const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// Controller returns the builder of a controller for objects of a kind. The caller adds watches, and completes it with
// [Common.Traced].
func (c Common) Controller(mgr ctrl.Manager, name string, object client.Object, options ...builder.ForOption) *builder.Builder {
	return c.Builder(mgr, name).For(object, options...)
}

// Builder returns the builder of a controller without a kind of its own.
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
