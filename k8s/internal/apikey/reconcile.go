package apikey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
)

const (
	// mostSteps bounds the steps of a run. A run that needs more steps fails and is retried.
	mostSteps = 64

	// requeueDelay is the delay before the next reconcile of an object that changed during a run.
	requeueDelay = 200 * time.Millisecond
)

// reconciler is the controller of APIKeys. It keeps a working key in the Secret of each APIKey by the steps of [plan].
type reconciler struct {
	Options
	events events.EventRecorder
	meters *meters
	sweep  func()          // requests a sweep
	saw    func(types.UID) // notes that the object exists
}

var _ reconcile.Reconciler = (*reconciler)(nil)

// Reconcile executes the steps that one APIKey needs, and writes its status. If the APIKey is gone, Reconcile requests a
// sweep, which revokes the keys.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var object v1alpha1.APIKey
	if err := r.Client.Get(ctx, request.NamespacedName, &object); err != nil {
		if apierrors.IsNotFound(err) {
			r.sweep()
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.saw(object.UID)
	switch err := r.removeFinalizer(ctx, &object); {
	case errors.Is(err, errAgain):
		return reconcile.Result{RequeueAfter: requeueDelay}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	one := &run{reconciler: r, object: &object}
	err := one.read(ctx)
	if err == nil {
		if next, _ := plan(one.state, r.Now(), r.Settle); next.do != nothing {
			// The cache can be out of date. It is good enough to find that there is nothing to do.
			object = v1alpha1.APIKey{}
			if err := r.Reader.Get(ctx, request.NamespacedName, &object); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			err = one.read(ctx)
		}
	}
	var wake time.Time
	if err == nil {
		wake, err = one.steps(ctx)
	}
	return one.conclude(ctx, wake, err)
}

// steps executes steps until none is left, and returns the time of the next reconcile, or zero. If minting fails for
// another reason than errAgain, it continues with the steps that need no new key, and returns the error at the end. Any
// other failure ends the run.
func (r *run) steps(ctx context.Context) (wake time.Time, err error) {
	for range mostSteps {
		next, wake := plan(r.state, r.Now(), r.Settle)
		if next.do == nothing {
			return wake, err
		}
		switch failed := r.do(ctx, next); {
		case failed == nil:
		case next.do == mint && !r.state.stuck && !errors.Is(failed, errAgain):
			r.state.stuck = true
			err = failed
		default:
			return wake, errors.Join(err, failed)
		}
	}
	return time.Time{}, errors.Join(err, fmt.Errorf("there is still something to do after %d steps", mostSteps))
}

// conclude writes the status after a run, and returns when to reconcile next. The argument err is the error of the run,
// or nil.
func (r *run) conclude(ctx context.Context, wake time.Time, err error) (reconcile.Result, error) {
	now := r.Now()
	verdict := settledVerdict(r.object, r.state, now)
	var f *fault
	switch faulty := errors.As(err, &f); {
	case !faulty:
	case !r.known && f.reason != v1alpha1.ReasonInvalid:
		verdict = verdictOfFault(r.object, f)
	case r.state.current() == nil:
		verdict = controller.Verdict{Reason: f.reason, Message: f.message}
	default:
		// The key in the Secret works, so the object stays ready. Only an event reports the failure.
		r.events.Eventf(r.object, nil, corev1.EventTypeWarning, f.reason, "Reconcile", "%s", f.message)
	}
	status := r.object.Status
	switch {
	case r.known:
		status = statusOf(r.object, r.state, verdict, now, r.UseEvery)
	case f != nil:
		// The keys could not be read, so their part of the status stays unchanged.
		status.ObservedGeneration = r.object.Generation
		status.Conditions = []metav1.Condition{verdict.Condition(r.object.Status.Conditions, r.object.Generation, now)}
	}
	if failed := r.report(ctx, r.object, status, verdict); failed != nil && !apierrors.IsNotFound(failed) {
		err = errors.Join(err, failed)
	}
	switch {
	case f != nil && f.reason == v1alpha1.ReasonInvalid:
		return reconcile.Result{}, nil // only a change of the spec can help
	case errors.Is(err, errAgain):
		r.Log.InfoContext(ctx, "the object is not settled; the operator reads the object again", slog.String("namespace", r.object.Namespace), slog.String("name", r.object.Name), slog.Any("error", err))
		return reconcile.Result{RequeueAfter: requeueDelay}, nil
	case err != nil:
		return reconcile.Result{}, err
	case wake.IsZero():
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(wake.Sub(now), time.Millisecond)}, nil
}

// removeFinalizer removes the finalizer that the operator of version 0.1.0 added, so that no object waits for an operator that
// is gone. The error is errAgain if the object has changed since it was read, or is gone.
func (r *reconciler) removeFinalizer(ctx context.Context, object *v1alpha1.APIKey) error {
	before := object.DeepCopy()
	if !controllerutil.RemoveFinalizer(object, v1alpha1.FinalizerAPIKey) {
		return nil
	}
	err := r.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), controller.FieldOwner)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return errAgain
	}
	if err != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	return nil
}
