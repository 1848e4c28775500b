package apikey

import (
	"context"
	"flag"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pgregory.net/rapid"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/auth"
)

// world is an object that people, other programs, faults and crashes change, with the expected state.
type world struct {
	*bench
	rt       *rapid.T
	name     string
	object   *v1alpha1.APIKey // nil: there is none
	process  *reconciler
	injector *injector
	away     bool // the database

	asked     int           // for new keys, in whatever way
	passed    time.Duration // on the clock
	values    int
	disturbed bool // since it was last at rest: its Secret may hold a key that does not work
}

const (
	worldEvery   = 24 * time.Hour
	worldOverlap = time.Hour
)

// start starts the operator, initially or after a crash.
func (w *world) start() {
	w.injector = &injector{noDatabase: w.away}
	w.process = w.controller(w.injector.over(w.options(), w.client))
}

func (w *world) advance(d time.Duration) {
	w.clock.advance(d)
	w.passed += d
}

// run lets the operator reconcile the object once.
func (w *world) run() {
	if w.object == nil {
		return
	}
	_, _ = once(w.process, w.object) // the injected faults may make it fail
	if w.injector.dead {
		w.start()
	}
	w.refresh()
}

// refresh reads the object again. If it is gone, refresh deletes its Secret, as the garbage collector does.
func (w *world) refresh() {
	fresh := &v1alpha1.APIKey{}
	err := w.client.Get(context.Background(), client.ObjectKeyFromObject(w.object), fresh)
	if client.IgnoreNotFound(err) != nil {
		w.rt.Fatal(err)
	}
	if err == nil {
		w.object = fresh
		return
	}
	if s := w.secretOf(w.object); s != nil {
		if c := metav1.GetControllerOf(s); c != nil && c.UID == w.object.UID {
			if err := w.client.Delete(context.Background(), s); err != nil {
				w.rt.Fatal(err)
			}
		}
	}
	w.object = nil
}

// change changes the object as a user does.
func (w *world) change(do func(*v1alpha1.APIKey)) {
	w.refresh()
	if w.object == nil || !w.object.DeletionTimestamp.IsZero() {
		return
	}
	do(w.object)
	if err := w.client.Update(context.Background(), w.object); err != nil {
		w.rt.Fatal(err)
	}
}

// changeSecret changes the Secret as another program does.
func (w *world) changeSecret(do func(*corev1.Secret)) {
	if w.object == nil {
		return
	}
	if s := w.secretOf(w.object); s != nil {
		do(s)
		if err := w.client.Update(context.Background(), s); err != nil {
			w.rt.Fatal(err)
		}
	}
}

// inSecret returns the row of the working key in the Secret, if any.
func (w *world) inSecret() (row, bool) {
	if w.object == nil {
		return row{}, false
	}
	s := w.secretOf(w.object)
	if s == nil {
		return row{}, false
	}
	one, ok := w.row(auth.HashKey(string(s.Data["api-key"])))
	return one, ok && one.Active(w.clock.now())
}

func (w *world) actions() map[string]func(*rapid.T) {
	value := func() string { w.values++; return fmt.Sprint(w.values) }
	return map[string]func(*rapid.T){
		"create": func(*rapid.T) {
			if w.object != nil {
				return
			}
			w.object = &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Name: w.name, Namespace: w.Namespace}, Spec: v1alpha1.APIKeySpec{ProjectID: w.project}}
			every(worldEvery, worldOverlap)(w.object)
			if err := w.client.Create(context.Background(), w.object); err != nil {
				w.rt.Fatal(err)
			}
			w.asked++
		},
		"look":  func(*rapid.T) { w.run() },
		"look2": func(*rapid.T) { w.run() }, // twice as often as others
		"look harmed": func(rt *rapid.T) {
			if w.object == nil {
				return
			}
			w.injector.mu.Lock()
			w.injector.at = w.injector.n + rapid.IntRange(1, 7).Draw(rt, "effect")
			w.injector.failure = rapid.SampledFrom([]failure{killed, unheard, refused}).Draw(rt, "failure")
			w.injector.mu.Unlock()
			w.run()
			w.injector.mu.Lock()
			w.injector.at = 0
			w.injector.mu.Unlock()
		},
		"time passes": func(rt *rapid.T) {
			w.advance(rapid.SampledFrom([]time.Duration{time.Second, 11 * time.Second, time.Minute, time.Hour, 25 * time.Hour}).Draw(rt, "time"))
		},
		"restart": func(*rapid.T) { w.start() },
		"ask": func(*rapid.T) {
			if w.object != nil {
				w.change(annotate(v1alpha1.AnnotationRotate, value()))
				w.asked++
			}
		},
		"delete Secret": func(*rapid.T) {
			if w.object == nil {
				return
			}
			if s := w.secretOf(w.object); s != nil {
				if err := w.client.Delete(context.Background(), s); err != nil {
					w.rt.Fatal(err)
				}
				w.asked++
			}
		},
		"edit key": func(*rapid.T) {
			w.changeSecret(func(s *corev1.Secret) { s.Data["api-key"] = []byte(value()) })
			w.asked++
			w.disturbed = true
		},
		"edit other value": func(*rapid.T) {
			w.changeSecret(func(s *corev1.Secret) { s.Data["project-id"] = []byte(value()) })
		},
		"disown Secret": func(*rapid.T) {
			w.changeSecret(func(s *corev1.Secret) { s.OwnerReferences = nil })
			w.asked++ // when it goes
		},
		"leak": func(*rapid.T) {
			if one, ok := w.inSecret(); ok {
				w.change(annotate(v1alpha1.AnnotationRevokeKeys, one.ID))
				w.asked++
				w.disturbed = true // where no other can be put there
			}
		},
		"other scopes": func(*rapid.T) {
			if w.object != nil {
				w.change(func(k *v1alpha1.APIKey) {
					k.Spec.Scopes = [][]v1alpha1.Scope{{"entries:read"}, {"proxy:use"}}[len(k.Spec.Scopes)%2]
				})
			}
		},
		"expiry": func(rt *rapid.T) {
			if w.object == nil {
				return
			}
			in := rapid.SampledFrom([]time.Duration{-time.Minute, 2 * time.Hour, 0}).Draw(rt, "in")
			w.change(func(k *v1alpha1.APIKey) {
				k.Spec.ExpiresAt = nil
				if in != 0 {
					k.Spec.ExpiresAt = seconds(w.clock.now().Add(in))
				}
			})
			w.asked++ // when it is lifted
			w.disturbed = true
		},
		"people revoke": func(*rapid.T) {
			if one, ok := w.inSecret(); ok {
				if _, err := w.admin.Revoke(context.Background(), w.project, one.ID); err != nil {
					w.rt.Fatal(err)
				}
				w.asked++
				w.disturbed = true
			}
		},
		"people rotate": func(*rapid.T) {
			if one, ok := w.inSecret(); ok {
				if _, _, err := w.admin.Rotate(context.Background(), w.project, one.ID, time.Minute); err != nil {
					w.rt.Fatal(err)
				}
				w.asked++
				w.disturbed = true
			}
		},
		"database goes or comes": func(*rapid.T) {
			w.away = !w.away
			w.injector.mu.Lock()
			w.injector.noDatabase = w.away
			w.injector.mu.Unlock()
		},
		"delete": func(*rapid.T) {
			if w.object != nil {
				if err := client.IgnoreNotFound(w.client.Delete(context.Background(), w.object)); err != nil {
					w.rt.Fatal(err)
				}
				w.refresh()
				w.disturbed = true
			}
		},
		"sweep": func(*rapid.T) {
			names, err := w.sweep(w.process.Options)
			if err == nil && len(names) > 0 {
				w.run()
			}
		},
		"": w.check,
	}
}

// check checks the rules that hold at every moment.
func (w *world) check(*rapid.T) {
	lost := map[string]int{}
	var inSecret string
	if w.object != nil {
		w.refresh()
	}
	if w.object != nil {
		if s := w.secretOf(w.object); s != nil {
			if one, ok := w.row(auth.HashKey(string(s.Data["api-key"]))); ok {
				inSecret = one.ID
				if c := metav1.GetControllerOf(s); !w.disturbed && c != nil && c.UID == w.object.UID && !one.Active(w.clock.now()) {
					w.rt.Fatalf("the Secret holds the key %s, which does not work: %+v", one.ID, one)
				}
			} else if !w.disturbed {
				w.rt.Fatal("the Secret holds a key that the database does not know")
			}
		}
	}
	for _, one := range w.rows() {
		if one.Active(w.clock.now()) && !one.delivered && one.ID != inSecret {
			if lost[one.Owner.ID]++; lost[one.Owner.ID] > 1 {
				w.rt.Fatalf("more than one key of %s works that nobody has", one.Owner.ID)
			}
		}
	}
}

// end runs without faults until nothing is left to do, and compares the state with the desired one.
func (w *world) end() {
	w.away = false
	w.start()
	if w.object != nil {
		w.settle(w.process, w.object)
		w.refresh()
	}
	if _, err := w.sweep(w.process.Options); err != nil {
		w.rt.Fatal(err)
	}
	// Undelivered keys of before are given their time.
	w.advance(time.Minute)
	if w.object != nil {
		w.settle(w.process, w.object)
		w.refresh()
	}
	now, delivered := w.clock.now(), 0
	for _, one := range w.rows() {
		if one.delivered {
			delivered++
		}
		switch {
		case !one.Active(now):
		case w.object == nil || one.Owner.ID != string(w.object.UID):
			w.rt.Fatalf("the key %s works, and its object is gone", one.ID)
		case !one.delivered:
			w.rt.Fatalf("the key %s works, and nobody has it", one.ID)
		}
	}
	if most := w.asked + int(w.passed/worldEvery); delivered > most {
		w.rt.Fatalf("%d keys were made, and %d were asked for", delivered, most)
	}
	if w.object == nil {
		return
	}
	condition := kubetest.Ready(w.object)
	current, works := w.inSecret()
	s := w.secretOf(w.object)
	switch {
	case w.object.Spec.ExpiresAt != nil && !now.Before(w.object.Spec.ExpiresAt.Time):
		if condition.Reason != v1alpha1.ReasonExpired || len(w.active(w.object)) > 0 {
			w.rt.Fatalf("expired: %+v, %d keys work", condition, len(w.active(w.object)))
		}
		return
	case s != nil && metav1.GetControllerOf(s) == nil:
		if condition.Reason != v1alpha1.ReasonSecretNotOwned {
			w.rt.Fatalf("the Secret is not owned: %+v", condition)
		}
		return
	case !works || condition.Status != metav1.ConditionTrue || w.object.Status.KeyID != current.ID:
		w.rt.Fatalf("at rest the Secret's key works: %v, %s; status %+v\n%s", works, current.ID, w.object.Status, w.log)
	}
	for _, one := range w.active(w.object) {
		if one.ID != current.ID && (one.ExpiresAt.IsZero() || one.ExpiresAt.After(now.Add(worldOverlap))) {
			w.rt.Fatalf("the key %s of before works until %v", one.ID, one.ExpiresAt)
		}
		if want, _ := wantOf(w.object, ""); one.Scopes != want.terms.Scopes {
			w.rt.Fatalf("the key %s has the scopes %v", one.ID, one.Scopes)
		}
	}
}

// TestProperty runs random sequences, and checks that nothing is lost. It runs 25, or those of -rapid.checks.
func TestProperty(t *testing.T) {
	t.Parallel()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("25"); err != nil {
			t.Fatal(err)
		}
	}
	b := setup(t)
	var worlds atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		n := worlds.Add(1)
		w := &world{bench: b.fork(t, fmt.Sprint(n)), rt: rt, name: fmt.Sprintf("world-%d", n)}
		w.start()
		actions := w.actions()
		actions["create"](rt)
		rt.Repeat(actions)
		w.end()
		if w.object != nil { // out of the way of the next
			_ = w.client.Delete(context.Background(), w.object)
		}
	})
}
