package controller

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Verdict is a controller's decision about an object: its condition Ready.
type Verdict struct {
	// Ready reports whether the desired state has been reached.
	Ready bool
	// Warns reports whether an object that is ready needs attention: the event is then a warning.
	Warns bool
	// Reason is one of the constants of v1alpha1.
	Reason string
	// Message explains the reason to people. It never contains a secret, a host or another namespace's names.
	Message string
}

// maxMessage keeps conditions and events readable, in bytes; events take 1024.
const maxMessage = 1000

// Condition returns the condition Ready of an object. If nothing changed, it equals the previous one, so that applying
// it changes nothing.
func (v Verdict) Condition(before []metav1.Condition, generation int64, now time.Time) metav1.Condition {
	return v.ConditionOf(v1alpha1.ConditionReady, before, generation, now)
}

// ConditionOf does the same for a condition of another type. Ready is the condition's status.
func (v Verdict) ConditionOf(kind string, before []metav1.Condition, generation int64, now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: v.Reason, Message: wire.Shorten(v.Message, maxMessage),
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now.UTC().Truncate(time.Second)),
	}
	if v.Ready {
		c.Status = metav1.ConditionTrue
	}
	if last := meta.FindStatusCondition(before, c.Type); last != nil && last.Status == c.Status {
		c.LastTransitionTime = last.LastTransitionTime
	}
	return c
}

// ApplyCondition returns the apply configuration of a condition.
func ApplyCondition(c metav1.Condition) *metav1ac.ConditionApplyConfiguration {
	return metav1ac.Condition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
		WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime)
}

// Report records a changed verdict, once: as an event on the object and in the log. before holds the object's previous
// conditions.
func (v Verdict) Report(ctx context.Context, log *slog.Logger, recorder events.EventRecorder, object client.Object, before []metav1.Condition) {
	last := meta.FindStatusCondition(before, v1alpha1.ConditionReady)
	if last != nil && (last.Status == metav1.ConditionTrue) == v.Ready && last.Reason == v.Reason && last.Message == wire.Shorten(v.Message, maxMessage) {
		return
	}
	kind, level := corev1.EventTypeWarning, slog.LevelWarn
	if v.Ready && !v.Warns {
		kind, level = corev1.EventTypeNormal, slog.LevelInfo
	}
	recorder.Eventf(object, nil, kind, v.Reason, "Judge", "%s", wire.Shorten(v.Message, maxMessage))
	log.LogAttrs(ctx, level, "decided", slog.String("kind", kindOf(object)), slog.String("namespace", object.GetNamespace()), slog.String("name", object.GetName()),
		slog.Bool("ready", v.Ready), slog.String("reason", v.Reason), slog.String("message", v.Message),
		slog.Int64("generation", object.GetGeneration()))
}

// kindOf returns an object's kind. Objects that were read do not contain it.
func kindOf(object client.Object) string { return reflect.TypeOf(object).Elem().Name() }
