// Package project is the controller of Projects. It decides which Project declares a project, writes that one to the
// region service, and reports the result in the status. It keeps no copy of a project. It reads the service's record
// before it writes, so it corrects changes by others and writes nothing that is already correct.
package project

import (
	"context"
	stderrors "errors"
	"fmt"
	"time"
	_ "time/tzdata" // images have no tz database

	"go.opentelemetry.io/otel/metric"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	apply "github.com/lectern-dev/lectern/k8s/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/proxy/resource"
	regionclient "github.com/lectern-dev/lectern/services/region/client"
)

// Region is the region service's store of projects. regionclient.Projects implements it.
type Region interface {
	// Get returns a project as it is stored, or regionclient.ErrNotFound.
	Get(ctx context.Context, id string) (regionclient.StoredProject, error)
	// Put stores a project. It returns a *regionclient.Rejected if the service does not accept the project.
	Put(ctx context.Context, p regionclient.Project) error
	// Delete deletes a project. A project that does not exist is no error.
	Delete(ctx context.Context, id string) error
}

// Options configures the controller.
type Options struct {
	controller.Common

	// Region is the region service. Nil: there is none, and a Project only declares a project and its namespaces.
	Region Region

	// ForgetWithin is how long the deletion of a Project with deletionPolicy Delete waits for the region service to
	// delete the project.
	ForgetWithin time.Duration

	// CheckEvery is the longest interval between checks of the region service. Zero: 1h.
	CheckEvery time.Duration
}

// The controller watches Projects, and applies their finalizer and status.
// +kubebuilder:rbac:groups=lectern.dev,resources=projects,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=lectern.dev,resources=projects/status,verbs=patch
//
// It reports its decisions as events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controller to mgr, whose Projects are indexed by [ownership.Index]. It measures:
//
//	lectern.project.forgets.abandoned     objects deleted whose project the region service still has
func Setup(mgr ctrl.Manager, o Options) error {
	if o.CheckEvery <= 0 {
		o.CheckEvery = time.Hour
	}
	abandoned, err := o.Meter.Meter("github.com/lectern-dev/lectern/k8s/internal/project").Int64Counter("lectern.project.forgets.abandoned",
		metric.WithDescription("Projects deleted before the region service could forget them."))
	if err != nil {
		return err
	}
	abandoned.Add(context.Background(), 0) // export 0 from the start, so that alerts see the first increase
	r := &reconciler{Options: o, client: mgr.GetClient(), events: mgr.GetEventRecorder(controller.Reporter), abandoned: abandoned}
	written := builder.WithPredicates(predicate.GenerationChangedPredicate{}) // ignores the operator's own writes
	return o.Controller(mgr, "project", &v1alpha1.Project{}, written).
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(r.rivals), builder.WithPredicates(ownership.Changed())).
		Complete(o.Traced("project", r))
}

type reconciler struct {
	Options
	client    client.Client
	events    events.EventRecorder
	abandoned metric.Int64Counter
}

// Reconcile writes one Project to the region service, and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var object v1alpha1.Project
	if err := r.client.Get(ctx, request.NamespacedName, &object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	declaring, err := ownership.Declaring(ctx, r.client, object.Spec.ProjectID)
	if err != nil {
		return reconcile.Result{}, err
	}
	counts := declaring != nil && declaring.UID == object.UID
	if !object.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.end(ctx, &object, counts)
	}
	if err := r.hold(ctx, &object, counts && r.Region != nil && object.Spec.DeletionPolicy == resource.DeleteOnDelete); err != nil {
		return reconcile.Result{}, err
	}
	if !counts {
		return reconcile.Result{}, r.report(ctx, &object, statusOf(&object, nil), conflictVerdict(&object, declaring))
	}
	if r.Region == nil {
		return reconcile.Result{}, r.report(ctx, &object, statusOf(&object, nil), declaredVerdict())
	}
	stored, fault := r.sync(ctx, &object)
	if fault != nil {
		verdict := verdictOfFault(fault)
		err := r.report(ctx, &object, statusOf(&object, nil), verdict)
		if verdict.Reason == v1alpha1.ReasonRegionRefused {
			return reconcile.Result{RequeueAfter: r.CheckEvery}, err // the service would refuse it again
		}
		return reconcile.Result{}, stderrors.Join(err, fault)
	}
	verdict := controller.Verdict{Ready: true, Reason: v1alpha1.ReasonSynced, Message: "The region service knows the project as it stands here."}
	err = r.report(ctx, &object, statusOf(&object, &stored), verdict)
	return reconcile.Result{RequeueAfter: untilNextLook(stored.Zone, r.Now(), r.CheckEvery)}, err
}

// sync stores the project in the region service if it differs there, and returns the stored project.
func (r *reconciler) sync(ctx context.Context, object *v1alpha1.Project) (regionclient.StoredProject, error) {
	want := regionclient.Project{ID: object.Spec.ProjectID, Title: object.Spec.Title, Region: object.Spec.Region}
	stored, err := r.Region.Get(ctx, want.ID)
	switch {
	case err == nil && stored.Project == want:
		return stored, nil
	case err != nil && !stderrors.Is(err, regionclient.ErrNotFound):
		return stored, err
	}
	if err := r.Region.Put(ctx, want); err != nil {
		return stored, err
	}
	r.Log.InfoContext(ctx, "stored a project in the region service", "namespace", object.Namespace, "name", object.Name, "project_id", want.ID)
	return r.Region.Get(ctx, want.ID)
}

// hold adds the finalizer to the object if held is set, and otherwise removes it.
func (r *reconciler) hold(ctx context.Context, object *v1alpha1.Project, held bool) error {
	if controllerutil.ContainsFinalizer(object, v1alpha1.FinalizerProject) == held {
		return nil
	}
	wanted := apply.Project(object.Name, object.Namespace).WithUID(object.UID)
	if held {
		wanted = wanted.WithFinalizers(v1alpha1.FinalizerProject)
	}
	if err := r.client.Apply(ctx, wanted, controller.FieldOwner, client.ForceOwnership); err != nil {
		return controller.IgnoreGone(fmt.Errorf("apply the finalizer: %w", err))
	}
	return nil
}

// end finishes the deletion of an object. If its deletionPolicy is Delete, end deletes the project in the region
// service. It removes the finalizer afterwards, or when the service did not delete the project in time.
func (r *reconciler) end(ctx context.Context, object *v1alpha1.Project, counts bool) error {
	if !controllerutil.ContainsFinalizer(object, v1alpha1.FinalizerProject) {
		return nil
	}
	if counts && r.Region != nil && object.Spec.DeletionPolicy == resource.DeleteOnDelete {
		if fault := r.Region.Delete(ctx, object.Spec.ProjectID); fault != nil {
			waited := r.Now().Sub(object.DeletionTimestamp.Time)
			if waited < r.ForgetWithin {
				verdict := controller.Verdict{Reason: v1alpha1.ReasonDeleting, Message: "The region service is still to forget the project. " + verdictOfFault(fault).Message}
				return stderrors.Join(r.report(ctx, object, statusOf(object, nil), verdict), fault)
			}
			r.abandoned.Add(ctx, 1)
			r.reportAbandoned(ctx, object, fault)
		} else {
			r.Log.InfoContext(ctx, "the region service forgot a project", "namespace", object.Namespace, "name", object.Name, "project_id", object.Spec.ProjectID)
		}
	}
	return r.hold(ctx, object, false)
}

// rivals finds the other Projects that name the same project.
func (r *reconciler) rivals(ctx context.Context, object client.Object) []reconcile.Request {
	projects, err := ownership.Projects(ctx, r.client, object.(*v1alpha1.Project).Spec.ProjectID)
	if err != nil {
		r.Log.ErrorContext(ctx, "cannot list the Projects that a change affects", "error", err)
		return nil
	}
	var requests []reconcile.Request
	for i := range projects {
		if projects[i].UID != object.GetUID() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&projects[i])})
		}
	}
	return requests
}
