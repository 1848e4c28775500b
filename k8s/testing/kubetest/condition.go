package kubetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

func conflict(err error) bool { return errors.IsConflict(err) }

// Ready returns the condition Ready of an object of Lectern, or nil if it has none.
func Ready(o client.Object) *metav1.Condition {
	var conditions []metav1.Condition
	switch o := o.(type) {
	case *v1alpha1.Project:
		conditions = o.Status.Conditions
	case *v1alpha1.APIKey:
		conditions = o.Status.Conditions
	case *v1alpha1.Credential:
		conditions = o.Status.Conditions
	case *v1alpha1.ProxyEndpoint:
		conditions = o.Status.Conditions
	}
	return meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
}

// AwaitReady waits until the condition Ready of the object's current generation has the given reason, which implies the
// status. It updates o and returns the condition.
func (c *Cluster) AwaitReady(t testing.TB, o client.Object, reason string) metav1.Condition {
	t.Helper()
	var got *metav1.Condition
	eventually.Succeeds(t, fmt.Sprintf("%T %s: Ready with %s", o, o.GetName(), reason), seldom(func() error {
		if err := c.Client.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		if got = Ready(o); got == nil || got.Reason != reason || got.ObservedGeneration != o.GetGeneration() {
			return fmt.Errorf("it is %+v", got)
		}
		return nil
	}))
	return *got
}

// seldom returns look with a pause after each failure, of a tenth of the time since the first look and at most 50 ms. Each
// look is a request, and many tests that look at once would keep the API server from its work.
func seldom(look func() error) func() error {
	begin := time.Now()
	return func() error {
		err := look()
		if err != nil {
			time.Sleep(min(time.Since(begin)/10, 50*time.Millisecond)) // in a wait for a state
		}
		return err
	}
}

// Events returns the reasons and notes of the events about an object, in the order of their time.
func (c *Cluster) Events(t testing.TB, o client.Object) []string {
	t.Helper()
	var list eventsv1.EventList
	if err := c.Client.List(context.WithoutCancel(t.Context()), &list, client.InNamespace(o.GetNamespace())); err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, e := range list.Items {
		if e.Regarding.UID == o.GetUID() {
			notes = append(notes, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Note))
		}
	}
	return notes
}

// AwaitEvent waits for an event about an object that contains text.
func (c *Cluster) AwaitEvent(t testing.TB, o client.Object, text string) {
	t.Helper()
	eventually.True(t, "there is an event with "+text, func() bool {
		for _, e := range c.Events(t, o) {
			if strings.Contains(e, text) {
				return true
			}
		}
		return false
	})
}
