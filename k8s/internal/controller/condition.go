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

// Verdict is a controller's decision about an object. The controller writes a Verdict as the condition Ready, an event
// and a log line.
type Verdict struct {
	// Ready reports whether the desired state has been reached.
	Ready bool
	// Warns reports whether an object that is ready needs attention: the event is then a warning.
	Warns bool
	// Reason is one of the constants of v1alpha1.
	Reason string
	// Message explains the reason to people. It must not contain a secret.
	Message string
}

// maxMessage is the number of bytes after which a message of a condition or an event is cut. Kubernetes allows 1024
// bytes in an event.
const maxMessage = 1000

// Condition returns the verdict as the condition Ready of an object with this generation. before holds the object's
// conditions. LastTransitionTime stays as before while the status stays, so that an unchanged condition is equal to the
// previous condition.
func (v Verdict) Condition(before []metav1.Condition, generation int64, now time.Time) metav1.Condition {
	return v.ConditionOf(v1alpha1.ConditionReady, before, generation, now)
}

// ConditionOf returns the verdict as a condition of the type kind, in the same way as [Verdict.Condition]. The
// verdict's field Ready is the status of the condition.
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

// ApplyCondition returns c in the form that a server-side apply of a status needs.
func ApplyCondition(c metav1.Condition) *metav1ac.ConditionApplyConfiguration {
	return metav1ac.Condition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
		WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime)
}

// Report records the verdict as an event on the object and in the log. The argument before holds the object's previous
// conditions. If the condition Ready there has the same content, Report does nothing.
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

// kindOf returns the name of an object's Go type, which is the object's kind. A client leaves the field Kind of the
// objects that it reads empty.
func kindOf(object client.Object) string { return reflect.TypeOf(object).Elem().Name() }
