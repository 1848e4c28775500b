package apikey

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
)

// Two operators that both believe to be the leader reconcile the same objects at the same time. Each requested
// rotation happens once.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	controllers := []*reconciler{b.controller(b.options()), b.controller(b.options()), b.controller(b.options())}
	const objects, rounds = 4, 4
	var keys []*v1alpha1.APIKey
	for i := range objects {
		keys = append(keys, b.newKey(fmt.Sprintf("reports-%d", i)))
	}
	for round := range rounds {
		if round > 0 {
			b.clock.advance(time.Minute)
			for i, k := range keys {
				if i%2 == 0 {
					kubetest.Change(t, b.Cluster, k, annotate(v1alpha1.AnnotationRotate, fmt.Sprint(round)))
				} else {
					kubetest.Change(t, b.Cluster, b.secretOf(k), func(s *corev1.Secret) { s.Data["api-key"] = []byte(fmt.Sprint(round)) })
				}
			}
		}
		var wg sync.WaitGroup
		for _, r := range controllers {
			wg.Go(func() {
				for range 5 {
					for _, k := range keys {
						_, _ = once(r, k) // the late one may fail
					}
				}
			})
		}
		wg.Wait()
		for _, k := range keys {
			if lost := b.lost(k); lost > 1 {
				t.Errorf("%s: %d keys that nobody has", k.Name, lost)
			}
			b.settle(controllers[round%len(controllers)], k)
			o := b.outcome(k)
			if want := round + 1; o.Delivered != want || !o.Works || !o.Noted || b.lost(k) != 0 {
				t.Errorf("round %d: %+v; lost %d; want %d delivered", round, o, b.lost(k), want)
			}
		}
	}
}

// An operator pauses before one of its effects and loses its lease. When it continues after its successor has finished,
// it changes nothing.
func TestStalled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, w := range walks {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			b := b.fork(t, w.name)
			want, effects := w.unbroken(b)
			for n := 1; n <= effects; n++ {
				k := w.prepare(b, fmt.Sprintf("%s-%d", w.name, n))
				reached, goOn := make(chan struct{}), make(chan struct{})
				f := &injector{stall: func(effect int) {
					if effect == n {
						close(reached)
						<-goOn
					}
				}}
				stalled := b.controller(f.over(b.options(), b.client))
				done := make(chan struct{})
				go func() { defer close(done); _, _ = once(stalled, k) }()
				select {
				case <-reached:
				case <-time.After(5 * time.Minute):
					t.Fatalf("effect %d is not reached", n)
				}
				other := b.controller(b.options())
				b.settle(other, k)
				key := ""
				if s := b.secretOf(k); s != nil {
					key = string(s.Data["api-key"])
				}
				close(goOn)
				<-done
				if s := b.secretOf(k); s != nil && string(s.Data["api-key"]) != key {
					t.Errorf("effect %d: the one that stood still wrote its key into the Secret", n)
				}
				b.settle(other, k)
				if diff := cmp.Diff(want, b.outcome(k)); diff != "" {
					t.Errorf("effect %d (-alone +with one that stood still):\n%s", n, diff)
				}
				if lost := b.lost(k); lost != 0 {
					t.Errorf("effect %d: %d keys that nobody has", n, lost)
				}
			}
		})
	}
}
