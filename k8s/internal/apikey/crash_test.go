package apikey

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/auth"
)

// outcome is the final state of an object. The tests compare that of an unbroken run with that of a broken one.
type outcome struct {
	There     bool // the object
	Ready     string
	Works     bool // the Secret's key
	Noted     bool // the status names the key that the Secret holds
	Active    int
	Ended     int // of the active ones, those with an end
	Previous  int // of the status
	Delivered int // ever
	Names     string
}

func (b *bench) outcome(k *v1alpha1.APIKey) outcome {
	b.t.Helper()
	var o outcome
	fresh := &v1alpha1.APIKey{}
	if err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(k), fresh); client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	} else if err == nil {
		o.There = true
		if c := kubetest.Ready(fresh); c != nil {
			o.Ready = c.Reason
		}
		o.Previous = len(fresh.Status.PreviousKeyIDs)
	}
	if s := b.secretOf(k); s != nil {
		key := s.Data["api-key"]
		one, ok := b.row(auth.HashKey(string(key)))
		o.Works = ok && one.Active(b.clock.now())
		o.Noted = one.ID == fresh.Status.KeyID
		o.Names = fmt.Sprintf("%s %s %s", s.Data["project-id"], s.Data["url"], s.Labels[v1alpha1.LabelManaged])
	}
	for _, one := range b.rows() {
		if one.Owner.ID != string(k.UID) {
			continue
		}
		if one.delivered {
			o.Delivered++
		}
		if one.Active(b.clock.now()) {
			o.Active++
			if !one.ExpiresAt.IsZero() {
				o.Ended++
			}
		}
	}
	return o
}

// lost returns the object's working keys that nobody has: not in the Secret and never delivered.
func (b *bench) lost(k *v1alpha1.APIKey) int {
	b.t.Helper()
	n := 0
	var inSecret string
	if s := b.secretOf(k); s != nil {
		if one, ok := b.row(auth.HashKey(string(s.Data["api-key"]))); ok {
			inSecret = one.ID
		}
	}
	for _, one := range b.active(k) {
		if !one.delivered && one.ID != inSecret {
			n++
		}
	}
	return n
}

// walk is a sequence of the crash walk.
type walk struct {
	name string
	new  bool
	do   func(b *bench, k *v1alpha1.APIKey)
	// dead reports that the walk itself makes the Secret's key invalid until its end.
	dead bool
}

// prepare returns an object called name, for which a controller has to walk w.
func (w walk) prepare(b *bench, name string) *v1alpha1.APIKey {
	b.t.Helper()
	k := b.newKey(name)
	if !w.new {
		b.settle(b.controller(b.options()), k)
		b.clock.advance(time.Minute)
	}
	w.do(b, k)
	return k
}

// unbroken walks w without a fault. It returns the outcome, and the number of external effects.
func (w walk) unbroken(b *bench) (outcome, int) {
	b.t.Helper()
	count := &injector{}
	k := w.prepare(b, w.name)
	b.settle(b.controller(count.over(b.options(), b.client)), k)
	return b.outcome(k), count.effects()
}

// walks are the sequences of the crash walk. Each begins with an object without pending steps, or with a new one.
var walks = []walk{
	{name: "mint", new: true, do: func(*bench, *v1alpha1.APIKey) {}},
	{name: "rotate-by-schedule", do: func(b *bench, k *v1alpha1.APIKey) {
		kubetest.Change(b.t, b.Cluster, k, every(24*time.Hour, time.Hour))
		b.clock.advance(24 * time.Hour)
	}},
	{name: "rotate-when-asked", do: func(b *bench, k *v1alpha1.APIKey) {
		kubetest.Change(b.t, b.Cluster, k, annotate(v1alpha1.AnnotationRotate, "now"))
	}},
	{name: "rotate-without-overlap", do: func(b *bench, k *v1alpha1.APIKey) {
		kubetest.Change(b.t, b.Cluster, k, every(24*time.Hour, 0))
		kubetest.Change(b.t, b.Cluster, k, annotate(v1alpha1.AnnotationRotate, "now"))
	}},
	{name: "secret-deleted", dead: true, do: func(b *bench, k *v1alpha1.APIKey) { b.Delete(b.t, b.secretOf(k)) }},
	{name: "secret-edited", dead: true, do: func(b *bench, k *v1alpha1.APIKey) {
		kubetest.Change(b.t, b.Cluster, b.secretOf(k), func(s *corev1.Secret) { s.Data["api-key"] = []byte("x") })
	}},
	{name: "secret-untidy", do: func(b *bench, k *v1alpha1.APIKey) {
		kubetest.Change(b.t, b.Cluster, b.secretOf(k), func(s *corev1.Secret) { s.Data["url"] = []byte("x"); s.Labels = nil })
	}},
	// Where no key can be minted, a leak is ended all the same.
	{name: "leaked", dead: true, do: func(b *bench, k *v1alpha1.APIKey) {
		kubetest.Change(b.t, b.Cluster, k, annotate(v1alpha1.AnnotationRevokeKeys, k.Status.KeyID))
	}},
	{name: "other-scopes", do: func(b *bench, k *v1alpha1.APIKey) {
		kubetest.Change(b.t, b.Cluster, k, func(k *v1alpha1.APIKey) { k.Spec.Scopes = []v1alpha1.Scope{"entries:read"} })
	}},
	{name: "expire", dead: true, do: func(b *bench, k *v1alpha1.APIKey) {
		kubetest.Change(b.t, b.Cluster, k, func(k *v1alpha1.APIKey) { k.Spec.ExpiresAt = &metav1.Time{Time: b.clock.now().Add(-time.Hour)} })
	}},
	{name: "delete", dead: true, do: func(b *bench, k *v1alpha1.APIKey) {
		kubetest.Change(b.t, b.Cluster, k, annotate(v1alpha1.AnnotationRotate, "last"))
		b.settle(b.controller(b.options()), k)
		kubetest.Change(b.t, b.Cluster, k, func(k *v1alpha1.APIKey) { k.Finalizers = []string{"example.com/held"} })
		b.Delete(b.t, k)
	}},
}

// TestCrashWalk breaks each walk at each of its external effects, in each of three ways. It checks the state at once and
// after another run.
func TestCrashWalk(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, w := range walks {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			b := b.fork(t, w.name)
			want, effects := w.unbroken(b)
			if effects == 0 || w.name != "expire" && w.name != "delete" && !want.Works {
				t.Fatalf("unbroken: %d effects, %+v", effects, want)
			}
			for n := 1; n <= effects; n++ {
				for _, h := range []failure{killed, unheard, refused} {
					name := fmt.Sprintf("%s-%d-%s", w.name, n, h)
					k := w.prepare(b, name)
					f := &injector{at: n, failure: h}
					o := f.over(b.options(), b.client)
					r := b.controller(o)
					result, err := once(r, k)
					if f.effects() < n {
						t.Fatalf("%s: %d effects, %v, %v", name, f.effects(), result, err)
					}
					if lost := b.lost(k); lost > 1 {
						t.Errorf("%s: %d keys that nobody has", name, lost)
					}
					if s := b.secretOf(k); !w.dead && s != nil && !b.works(string(s.Data["api-key"])) {
						t.Errorf("%s: the Secret holds a key that does not work", name)
					}
					if h == killed {
						r = b.controller(b.options())
					}
					b.settle(r, k)
					if diff := cmp.Diff(want, b.outcome(k)); diff != "" {
						t.Errorf("%s (-unbroken +broken):\n%s", name, diff)
					}
					if lost := b.lost(k); lost != 0 {
						t.Errorf("%s: %d keys that nobody has, at the end", name, lost)
					}
				}
			}
			t.Logf("%d effects, each in 3 ways", effects)
		})
	}
}

// A deletion waits for nothing, also without the database. The sweep after it revokes the keys when the database is back.
func TestDeletion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f := &injector{}
	o := f.over(b.options(), b.client)
	r := b.controller(o)
	nudged := 0
	r.sweep = func() { nudged++ }
	k := b.newKey("reports")
	b.settle(r, k)
	key := b.held(k)
	f.noDatabase = true
	b.Delete(t, k)
	b.Gone(t, k)
	if _, err := once(r, k); err != nil || nudged != 1 {
		t.Errorf("%v; %d sweeps were asked for; want one", err, nudged)
	}
	if _, err := b.sweep(o); err == nil || !b.works(key) {
		t.Errorf("a sweep without a database: %v; the key works: %v", err, b.works(key))
	}
	f.noDatabase = false
	if _, err := b.sweep(o); err != nil || b.works(key) {
		t.Errorf("%v; works after the sweep: %v", err, b.works(key))
	}
}

// An unreachable database makes no object unready whose key works.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f := &injector{}
	r := b.controller(f.over(b.options(), b.client))
	k := b.newKey("reports", every(time.Hour, time.Minute))
	f.noDatabase = true
	if _, err := once(r, k); err == nil {
		t.Error("no error, so it is not tried again")
	}
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(k), k); err != nil {
		t.Fatal(err)
	}
	if c := kubetest.Ready(k); c == nil || c.Reason != v1alpha1.ReasonDatabaseUnavailable || b.secretOf(k) != nil {
		t.Errorf("%+v", c)
	}
	f.noDatabase = false
	b.settle(r, k)
	f.noDatabase = true
	b.clock.advance(time.Hour)
	if _, err := once(r, k); err == nil {
		t.Error("no error, so it is not tried again")
	}
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(k), k); err != nil {
		t.Fatal(err)
	}
	if c := kubetest.Ready(k); c.Status != metav1.ConditionTrue || !b.works(b.held(k)) {
		t.Errorf("%+v: its key works", c)
	}
	f.noDatabase = false
	key := b.held(k)
	b.settle(r, k)
	if b.held(k) == key {
		t.Error("it was not rotated when the database was back")
	}
}

// If the Secret cannot be written, retries mint no further keys, and the previous key stays valid.
func TestSecretRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.controller(b.options())
	k := b.newKey("reports")
	b.settle(r, k)
	key := b.held(k)
	kubetest.Change(t, b.Cluster, b.secretOf(k), func(s *corev1.Secret) { yes := true; s.Immutable = &yes })
	kubetest.Change(t, b.Cluster, k, annotate(v1alpha1.AnnotationRotate, "1"))
	for range 3 {
		if _, err := once(r, k); err == nil {
			t.Error("no error, so it is not tried again")
		}
		b.clock.advance(time.Minute)
	}
	if len(b.rows()) != 1 || !b.works(key) || b.held(k) != key || !b.events.has("Warning SecretRefused") {
		t.Errorf("%d keys; the old one works: %v; events %q", len(b.rows()), b.works(key), b.events.all)
	}
	// A leak is ended all the same.
	kubetest.Change(t, b.Cluster, k, annotate(v1alpha1.AnnotationRevokeKeys, k.Status.KeyID))
	if _, err := once(r, k); err == nil || b.works(key) {
		t.Errorf("%v; the leaked key works: %v", err, b.works(key))
	}
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(k), k); err != nil {
		t.Fatal(err)
	}
	if c := kubetest.Ready(k); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonSecretRefused {
		t.Errorf("%+v", c)
	}
	b.Delete(t, b.secretOf(k))
	b.settle(r, k)
	if !b.works(b.held(k)) {
		t.Error("no new key when the Secret could be written")
	}
}
