package frame

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
)

// Verdict is a controller's decision about an object: its condition Ready.
type Verdict struct {
	// Ready says that what the object asks for is so.
	Ready bool
	// Reason is one of the constants of v1alpha1.
	Reason string
	// Message says more, for people. It never holds a secret, a host or another namespace's names.
	Message string
}

// maxMessage keeps conditions and events readable, in bytes; events take 1024.
const maxMessage = 1000

// Condition makes the condition Ready of an object: as it was where nothing changed, so that applying it
// changes nothing.
func (v Verdict) Condition(before []metav1.Condition, generation int64, now time.Time) metav1.Condition {
	return v.ConditionOf(v1alpha1.ConditionReady, before, generation, now)
}

// ConditionOf makes a condition of another type, in the same way. Ready is the condition's status.
func (v Verdict) ConditionOf(kind string, before []metav1.Condition, generation int64, now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: v.Reason, Message: shortened(v.Message),
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

// ApplyCondition gives a condition the form in which it is applied.
func ApplyCondition(c metav1.Condition) *metav1ac.ConditionApplyConfiguration {
	return metav1ac.Condition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
		WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime)
}

func shortened(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + "…"
}

// Tell says once that the verdict of an object has become another one: an event on the object, and a line of
// the log. before is the object's conditions as they were.
func (v Verdict) Tell(ctx context.Context, log *slog.Logger, recorder events.EventRecorder, object client.Object, before []metav1.Condition) {
	last := meta.FindStatusCondition(before, v1alpha1.ConditionReady)
	if last != nil && (last.Status == metav1.ConditionTrue) == v.Ready && last.Reason == v.Reason && last.Message == shortened(v.Message) {
		return
	}
	kind, level := corev1.EventTypeWarning, slog.LevelWarn
	if v.Ready {
		kind, level = corev1.EventTypeNormal, slog.LevelInfo
	}
	recorder.Eventf(object, nil, kind, v.Reason, "Judge", "%s", shortened(v.Message))
	log.LogAttrs(ctx, level, "decided", slog.String("kind", kindOf(object)), slog.String("namespace", object.GetNamespace()), slog.String("name", object.GetName()),
		slog.Bool("ready", v.Ready), slog.String("reason", v.Reason), slog.String("message", v.Message),
		slog.Int64("generation", object.GetGeneration()))
}

// kindOf names an object's kind, which objects that were read do not say of themselves.
func kindOf(object client.Object) string { return reflect.TypeOf(object).Elem().Name() }
