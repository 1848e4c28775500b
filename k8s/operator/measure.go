package operator

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
)

// measure registers these metrics, which it computes from the cached objects in memory:
//
//	lectern.operator.objects{kind, ready, reason}   number of objects
//	lectern.operator.deletion.age{kind}             seconds since the oldest deletion that has not ended; 0: none
//
// An object that was not reconciled yet has the reason "".
func measure(provider metric.MeterProvider, memory client.Reader, now func() time.Time) error {
	meter := provider.Meter("github.com/lectern-dev/lectern/k8s/operator")
	objects, err := meter.Int64ObservableGauge("lectern.operator.objects",
		metric.WithDescription("Objects of lectern.dev, by kind, by whether they are ready, and why."))
	if err != nil {
		return err
	}
	age, err := meter.Float64ObservableGauge("lectern.operator.deletion.age", metric.WithUnit("s"),
		metric.WithDescription("How long the oldest object that is being deleted has waited. 0: there is none."))
	if err != nil {
		return err
	}
	_, err = meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		counts, deleted, err := count(ctx, memory)
		if err != nil {
			return err
		}
		for s, n := range counts {
			o.ObserveInt64(objects, n, metric.WithAttributes(
				attribute.String("kind", s.kind), attribute.Bool("ready", s.ready), attribute.String("reason", s.reason)))
		}
		for kind, at := range deleted {
			waited := 0.0
			if !at.IsZero() {
				waited = max(0, now().Sub(at).Seconds())
			}
			o.ObserveFloat64(age, waited, metric.WithAttributes(attribute.String("kind", kind)))
		}
		return nil
	}, objects, age)
	return err
}

type state struct {
	kind   string
	ready  bool
	reason string
}

// count returns the number of cached objects by state. For each kind, it also returns the earliest deletion time of an
// object that still exists, or zero. It reads the cached objects without a copy, and does not change them.
func count(ctx context.Context, memory client.Reader) (counts map[state]int64, deleted map[string]time.Time, err error) {
	counts, deleted = map[state]int64{}, map[string]time.Time{}
	add := func(kind string, list client.ObjectList, conditions func(o runtime.Object) []metav1.Condition) {
		if err != nil {
			return
		}
		if err = memory.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			err = fmt.Errorf("count the objects: %w", err)
			return
		}
		deleted[kind] = time.Time{}
		err = meta.EachListItem(list, func(o runtime.Object) error {
			s := state{kind: kind}
			if c := meta.FindStatusCondition(conditions(o), v1alpha1.ConditionReady); c != nil {
				s.ready, s.reason = c.Status == metav1.ConditionTrue, c.Reason
			}
			counts[s]++
			at := o.(client.Object).GetDeletionTimestamp()
			if at != nil && (deleted[kind].IsZero() || at.Time.Before(deleted[kind])) {
				deleted[kind] = at.Time
			}
			return nil
		})
	}
	add("Project", &v1alpha1.ProjectList{}, func(o runtime.Object) []metav1.Condition { return o.(*v1alpha1.Project).Status.Conditions })
	add("APIKey", &v1alpha1.APIKeyList{}, func(o runtime.Object) []metav1.Condition { return o.(*v1alpha1.APIKey).Status.Conditions })
	add("Credential", &v1alpha1.CredentialList{}, func(o runtime.Object) []metav1.Condition { return o.(*v1alpha1.Credential).Status.Conditions })
	add("ProxyEndpoint", &v1alpha1.ProxyEndpointList{}, func(o runtime.Object) []metav1.Condition { return o.(*v1alpha1.ProxyEndpoint).Status.Conditions })
	return counts, deleted, err
}
