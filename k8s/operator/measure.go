package operator

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
)

// measure exports the number of objects of each kind, by readiness and reason:
//
//	lectern.operator.objects{kind, ready, reason}
//
// An object that was not reconciled yet has the reason "".
func measure(provider metric.MeterProvider, memory client.Reader) error {
	_, err := provider.Meter("github.com/lectern-dev/lectern/k8s/operator").Int64ObservableGauge("lectern.operator.objects",
		metric.WithDescription("Objects of lectern.dev, by kind, by whether they are ready, and why."),
		metric.WithInt64Callback(func(ctx context.Context, o metric.Int64Observer) error {
			counts := map[state]int64{}
			if err := count(ctx, memory, counts); err != nil {
				return err
			}
			for s, n := range counts {
				o.Observe(n, metric.WithAttributes(
					attribute.String("kind", s.kind), attribute.Bool("ready", s.ready), attribute.String("reason", s.reason)))
			}
			return nil
		}))
	return err
}

type state struct {
	kind   string
	ready  bool
	reason string
}

func count(ctx context.Context, memory client.Reader, counts map[state]int64) error {
	add := func(kind string, conditions []metav1.Condition) {
		s := state{kind: kind}
		if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); c != nil {
			s.ready, s.reason = c.Status == metav1.ConditionTrue, c.Reason
		}
		counts[s]++
	}
	// The objects are only read.
	list := func(into client.ObjectList) error {
		if err := memory.List(ctx, into, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("count the objects: %w", err)
		}
		return nil
	}
	var (
		projects    v1alpha1.ProjectList
		keys        v1alpha1.APIKeyList
		credentials v1alpha1.CredentialList
		endpoints   v1alpha1.ProxyEndpointList
	)
	for _, l := range []client.ObjectList{&projects, &keys, &credentials, &endpoints} {
		if err := list(l); err != nil {
			return err
		}
	}
	for i := range projects.Items {
		add("Project", projects.Items[i].Status.Conditions)
	}
	for i := range keys.Items {
		add("APIKey", keys.Items[i].Status.Conditions)
	}
	for i := range credentials.Items {
		add("Credential", credentials.Items[i].Status.Conditions)
	}
	for i := range endpoints.Items {
		add("ProxyEndpoint", endpoints.Items[i].Status.Conditions)
	}
	return nil
}
