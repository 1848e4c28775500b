package apikey

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	v1alpha1ac "github.com/lectern-dev/lectern/k8s/internal/applyconfiguration/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
)

// statusOf returns the status of an object in state s, with the verdict as its condition. The status contains key ids
// and times, never a key. LastUsedAt changes only for the first known use, and for a use that is at least useEvery
// later.
func statusOf(object *v1alpha1.APIKey, s state, verdict controller.Verdict, now time.Time, useEvery time.Duration) v1alpha1.APIKeyStatus {
	before := object.Status
	status := v1alpha1.APIKeyStatus{
		ObservedGeneration: object.Generation,
		SecretName:         secretNameOf(object),
		LastUsedAt:         before.LastUsedAt,
		RotateHandled:      before.RotateHandled,
		Conditions:         []metav1.Condition{verdict.Condition(before.Conditions, object.Generation, now)},
	}
	current := s.current()
	if current != nil {
		status.KeyID = current.ID
		status.IssuedAt = seconds(current.CreatedAt)
		status.ExpiresAt = seconds(current.ExpiresAt)
		status.RotateHandled = current.Request
		if s.want.every > 0 {
			status.NextRotationAt = seconds(current.CreatedAt.Add(s.want.every))
		}
	}
	var used time.Time
	for _, k := range s.keys {
		if !k.DeliveredAt.IsZero() && (current == nil || k.ID != current.ID) {
			status.PreviousKeyIDs = append(status.PreviousKeyIDs, k.ID)
		}
		if k.LastUsedAt.After(used) {
			used = k.LastUsedAt
		}
	}
	if !used.IsZero() && (before.LastUsedAt == nil || !used.Before(before.LastUsedAt.Add(useEvery))) {
		status.LastUsedAt = seconds(used)
	}
	return status
}

// seconds returns t in whole seconds, as the API stores times, or nil if t is zero.
func seconds(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}

// settledVerdict returns the verdict on an object in state s if no step has failed.
func settledVerdict(object *v1alpha1.APIKey, s state, now time.Time) controller.Verdict {
	current := s.current()
	over := s.want.terms.ExpiresAt
	what := "key"
	if !s.want.identity.IsZero() {
		what = "grant"
	}
	switch {
	case s.deleting:
		return controller.Verdict{Reason: v1alpha1.ReasonDeleting, Message: "The object is being deleted. No " + what + " of the object works."}
	case s.project == ownership.Foreign || s.project == ownership.Undeclared && current == nil:
		reason, message := s.project.Refused(object.Namespace, object.Spec.ProjectID)
		return controller.Verdict{Reason: reason, Message: message}
	case !over.IsZero() && !now.Before(over):
		return controller.Verdict{Reason: v1alpha1.ReasonExpired,
			Message: "spec.expiresAt has passed, and no " + what + " of this object works. Set a later one, or delete the object."}
	case s.want.noAccount():
		return controller.Verdict{Reason: v1alpha1.ReasonServiceAccountNotFound,
			Message: fmt.Sprintf("The ServiceAccount %s does not exist. The operator grants it the project as soon as it exists.", s.want.account)}
	case s.secret.exists && !s.secret.owned:
		return controller.Verdict{Reason: v1alpha1.ReasonSecretNotOwned,
			Message: fmt.Sprintf("The Secret %s was not made for this APIKey, so the operator leaves the Secret unchanged. Delete the Secret, or make another APIKey with another secret.name.", secretNameOf(object))}
	case current == nil:
		return controller.Verdict{Reason: v1alpha1.ReasonPending, Message: "The " + what + " is being made."}
	case s.project == ownership.Undeclared:
		return controller.Verdict{Ready: true, Reason: v1alpha1.ReasonIssued, Message: fmt.Sprintf(
			"%s The %s still works. The operator issues no other %[2]s, because no Project declares project %[3]q any more.",
			issued(object, current), what, object.Spec.ProjectID)}
	}
	return controller.Verdict{Ready: true, Reason: v1alpha1.ReasonIssued, Message: issued(object, current)}
}

// issued returns the message about the current key or grant of a ready object. It names the identity of a grant, and
// annotations that have no effect on a grant.
func issued(object *v1alpha1.APIKey, current *pgkeys.Owned) string {
	if current.Identity.IsZero() {
		return fmt.Sprintf("The Secret %s holds the key %s.", secretNameOf(object), current.ID)
	}
	message := fmt.Sprintf("The %v has the grant %s.", current.Identity, current.ID)
	if object.Annotations[v1alpha1.AnnotationRotate] != "" || object.Annotations[v1alpha1.AnnotationRevokeKeys] != "" {
		message += " " + v1alpha1.AnnotationRotate + " and " + v1alpha1.AnnotationRevokeKeys + " have no effect on an identity, which has no key."
	}
	return message
}

// report writes the status of object if it differs from the current status. If the content of the condition has
// changed, it also logs the verdict and records it as an event.
func (r *reconciler) report(ctx context.Context, object *v1alpha1.APIKey, status v1alpha1.APIKeyStatus, verdict controller.Verdict) error {
	if equality.Semantic.DeepEqual(object.Status, status) {
		return nil
	}
	applied := v1alpha1ac.APIKeyStatus().
		WithObservedGeneration(status.ObservedGeneration).
		WithPreviousKeyIDs(status.PreviousKeyIDs...)
	if status.SecretName != "" {
		applied.WithSecretName(status.SecretName)
	}
	if status.KeyID != "" {
		applied.WithKeyID(status.KeyID)
	}
	if status.RotateHandled != "" {
		applied.WithRotateHandled(status.RotateHandled)
	}
	applied.IssuedAt, applied.ExpiresAt = status.IssuedAt, status.ExpiresAt
	applied.NextRotationAt, applied.LastUsedAt = status.NextRotationAt, status.LastUsedAt
	for _, c := range status.Conditions {
		applied.WithConditions(controller.ApplyCondition(c))
	}
	whole := v1alpha1ac.APIKey(object.Name, object.Namespace).WithUID(object.UID).WithStatus(applied)
	if err := r.Client.Status().Apply(ctx, whole, controller.FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	verdict.Report(ctx, r.Log, r.events, object, object.Status.Conditions)
	object.Status = status
	return nil
}

// verdictOfFault returns the verdict on an object whose state could not be read. A ready object stays ready during such
// a failure, unless its spec has changed since.
func verdictOfFault(object *v1alpha1.APIKey, f *fault) controller.Verdict {
	i := slices.IndexFunc(object.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == v1alpha1.ConditionReady && c.Status == metav1.ConditionTrue && c.ObservedGeneration == object.Generation
	})
	if i >= 0 {
		return controller.Verdict{Ready: true, Reason: object.Status.Conditions[i].Reason, Message: object.Status.Conditions[i].Message}
	}
	return controller.Verdict{Reason: f.reason, Message: f.message}
}
