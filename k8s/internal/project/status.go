package project

import (
	"context"
	stderrors "errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	apply "github.com/lectern-dev/lectern/k8s/internal/applyconfiguration/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	regionclient "github.com/lectern-dev/lectern/services/region/client"
)

// statusOf returns the status of an object without its conditions. stored is the region service's record of the
// project. If stored is nil, the zone and the offset in the status stay unchanged.
func statusOf(object *v1alpha1.Project, stored *regionclient.StoredProject) v1alpha1.ProjectStatus {
	status := *object.Status.DeepCopy()
	status.ObservedGeneration, status.Conditions = object.Generation, nil
	if stored != nil {
		offset := int32(stored.OffsetMinutes)
		status.Region, status.OffsetInMinutes, status.UTCOffset = stored.Zone, &offset, utcOffset(stored.OffsetMinutes)
	}
	return status
}

// utcOffset formats an offset in minutes east of UTC, such as "+05:45".
func utcOffset(minutes int) string {
	sign := '+'
	if minutes < 0 {
		sign, minutes = '-', -minutes
	}
	return fmt.Sprintf("%c%02d:%02d", sign, minutes/60, minutes%60)
}

// untilNextLook returns the time until the next check of a zone's offset. The check is just after the zone's next
// change, but after longest at most. The result is longest if this process does not know the zone.
func untilNextLook(zone string, now time.Time, longest time.Duration) time.Duration {
	location, err := time.LoadLocation(zone)
	if err != nil {
		return longest
	}
	_, change := now.In(location).ZoneBounds()
	if change.IsZero() {
		return longest
	}
	// A second later, so that the service's clock has passed it too.
	return max(min(change.Add(time.Second).Sub(now), longest), time.Second)
}

// conflictVerdict returns the verdict on a Project whose project another Project has declared first. The argument
// declaring is the other Project, or nil if the other Project no longer exists. The message names declaring only if
// both Projects have the same namespace.
func conflictVerdict(object, declaring *v1alpha1.Project) controller.Verdict {
	first := "which a Project of another namespace declares"
	switch {
	case declaring == nil:
		first = "which another Project declared first"
	case declaring.Namespace == object.Namespace:
		first = fmt.Sprintf("which the Project %q declares", declaring.Name)
	}
	return controller.Verdict{Reason: v1alpha1.ReasonConflict, Message: fmt.Sprintf(
		"spec.projectId: is %q, %s. This Project stays in conflict, even if the other one is deleted, until it is changed or created again.",
		object.Spec.ProjectID, first)}
}

// declaredVerdict returns the verdict on a Project that declares its project while the operator has no region service.
func declaredVerdict() controller.Verdict {
	return controller.Verdict{Ready: true, Reason: v1alpha1.ReasonDeclared, Message: "It declares the project. It is not stored in a region service (REGION_INTERNAL_URL is not set)."}
}

// acceptedCondition returns the condition Accepted of a Project. The condition is False if the verdict on the Project
// is a conflict, and otherwise True.
func (r *reconciler) acceptedCondition(object *v1alpha1.Project, verdict controller.Verdict) metav1.Condition {
	accepted := controller.Verdict{Ready: true, Reason: v1alpha1.ReasonDeclared, Message: "It declares the project."}
	if verdict.Reason == v1alpha1.ReasonConflict {
		accepted = controller.Verdict{Reason: v1alpha1.ReasonConflict, Message: verdict.Message}
	}
	return accepted.ConditionOf(v1alpha1.ConditionAccepted, object.Status.Conditions, object.Generation, r.Now())
}

// verdictOfFault returns the verdict on a Project that the region service did not store, because of fault. The reason
// is RegionRefused if the service rejects the project, and otherwise RegionUnavailable.
func verdictOfFault(fault error) controller.Verdict {
	if rejected, ok := stderrors.AsType[*regionclient.Rejected](fault); ok {
		return controller.Verdict{Reason: v1alpha1.ReasonRegionRefused, Message: "The region service does not take the project: " + rejected.Message}
	}
	message := "The region service cannot be reached. The operator retries."
	if refused, ok := stderrors.AsType[*regionclient.Error](fault); ok {
		message = fmt.Sprintf("The region service answered with status %d. The operator retries.", refused.Status)
	}
	if stderrors.Is(fault, regionclient.ErrUnauthorized) {
		message = "The region service does not accept the operator's key (INGEST_API_KEYS). The operator retries."
	}
	return controller.Verdict{Reason: v1alpha1.ReasonRegionUnavailable, Message: message}
}

// report applies the status with the conditions Ready and Accepted, if the status has changed. It then records the
// verdict in the log and as an event. A Project that no longer exists is no error.
func (r *reconciler) report(ctx context.Context, object *v1alpha1.Project, status v1alpha1.ProjectStatus, verdict controller.Verdict) error {
	before := object.Status.Conditions
	condition := verdict.Condition(before, object.Generation, r.Now())
	accepted := r.acceptedCondition(object, verdict)
	status.Conditions = []metav1.Condition{condition, accepted}
	if equality.Semantic.DeepEqual(object.Status, status) {
		return nil
	}
	applied := apply.ProjectStatus().WithObservedGeneration(status.ObservedGeneration).WithConditions(controller.ApplyCondition(condition), controller.ApplyCondition(accepted))
	if status.Region != "" {
		applied = applied.WithRegion(status.Region).WithUTCOffset(status.UTCOffset)
	}
	if status.OffsetInMinutes != nil {
		applied = applied.WithOffsetInMinutes(*status.OffsetInMinutes)
	}
	wanted := apply.Project(object.Name, object.Namespace).WithUID(object.UID).WithStatus(applied)
	if err := r.client.Status().Apply(ctx, wanted, controller.FieldOwner, client.ForceOwnership); err != nil {
		return controller.IgnoreGone(fmt.Errorf("apply the status: %w", err))
	}
	verdict.Report(ctx, r.Log, r.events, object, before)
	return nil
}
