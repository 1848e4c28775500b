// Package project is the controller of Projects. It decides which Project declares a project, stores the declared
// project in the region service, and reports the result in the status. The controller keeps no copy of a project. It
// reads the service's record before it writes, so it corrects changes by other programs and writes nothing that is
// already correct.
package project

import (
	"context"
	stderrors "errors"
	"time"
	_ "time/tzdata" // images have no tz database

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	regionclient "github.com/lectern-dev/lectern/services/region/client"
)

// Region reads and writes the region service's projects. regionclient.Projects implements Region.
type Region interface {
	// Get returns a project as it is stored. The error is regionclient.ErrNotFound if there is none.
	Get(ctx context.Context, id string) (regionclient.StoredProject, error)
	// Put stores a project. It returns a *regionclient.Rejected if the service does not accept the project.
	Put(ctx context.Context, p regionclient.Project) error
}

// Options holds the dependencies of the controller of Projects. [Setup] sets the defaults.
type Options struct {
	controller.Common

	// Region is the region service. Nil: there is none, and a Project only declares a project and its namespaces.
	Region Region

	// CheckEvery is the longest interval between checks of the region service. Zero: 1h.
	CheckEvery time.Duration
}

// The controller watches Projects, and applies their status.
// +kubebuilder:rbac:groups=lectern.dev,resources=projects,verbs=get;list;watch
// +kubebuilder:rbac:groups=lectern.dev,resources=projects/status,verbs=patch
//
// It reports its decisions as events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controller of Projects to mgr. The caller must have indexed the Projects of mgr with
// [ownership.Index].
func Setup(mgr ctrl.Manager, o Options) error {
	if o.CheckEvery <= 0 {
		o.CheckEvery = time.Hour
	}
	r := &reconciler{Options: o, client: mgr.GetClient(), events: mgr.GetEventRecorder(controller.Reporter)}
	written := builder.WithPredicates(predicate.GenerationChangedPredicate{}) // ignores the operator's own writes
	return o.Controller(mgr, "project", &v1alpha1.Project{}, written).
		Watches(&v1alpha1.Project{}, handler.EnqueueRequestsFromMapFunc(r.rivals), builder.WithPredicates(ownership.Changed())).
		Complete(o.Traced("project", r))
}

type reconciler struct {
	Options
	client client.Client
	events events.EventRecorder
}

// Reconcile decides whether one Project declares its project, stores a declared project in the region service, and
// reports the result in the status. It checks a stored project again when the zone's offset changes, and at least every
// CheckEvery.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var object v1alpha1.Project
	if err := r.client.Get(ctx, request.NamespacedName, &object); err != nil || !object.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	declaring, err := ownership.Declaring(ctx, r.client, object.Spec.ProjectID)
	if err != nil {
		return reconcile.Result{}, err
	}
	if declaring == nil || declaring.UID != object.UID {
		return reconcile.Result{}, r.report(ctx, &object, statusOf(&object, nil), conflictVerdict(&object, declaring))
	}
	if r.Region == nil {
		return reconcile.Result{}, r.report(ctx, &object, statusOf(&object, nil), declaredVerdict())
	}
	asked := r.Now() // the zone may change while the answer is on its way and is reported
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
	return reconcile.Result{RequeueAfter: untilNextLook(stored.Zone, asked, r.CheckEvery)}, err
}

// sync stores the project in the region service if the service's record is missing or differs, and returns the stored
// project.
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

// rivals returns a request for each other Project that names the same project as object.
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
