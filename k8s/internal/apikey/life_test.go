package apikey

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/auth"
)

func TestLife(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.controller(b.options())
	k := b.newKey("reports", every(24*time.Hour, time.Hour))
	b.settle(r, k)
	if c := kubetest.Ready(k); c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonIssued || c.ObservedGeneration != k.Generation {
		t.Fatalf("condition %+v", c)
	}
	s := b.secretOf(k)
	first := string(s.Data["api-key"])
	if _, err := auth.ParseKey(first); err != nil || !b.works(first) {
		t.Fatalf("the Secret's key does not work: %v", err)
	}
	if diff := cmp.Diff([]string{"api-key", "project-id", "url"}, slices.Sorted(maps.Keys(s.Data))); diff != "" {
		t.Error(diff)
	}
	if string(s.Data["project-id"]) != b.project || string(s.Data["url"]) != "https://api.example.com" || s.Type != corev1.SecretTypeOpaque {
		t.Errorf("%s %q %q", s.Type, s.Data["project-id"], s.Data["url"])
	}
	if o := metav1.GetControllerOf(s); o == nil || o.UID != k.UID || s.Labels[v1alpha1.LabelManaged] != "true" || s.Annotations["lectern.dev/key-id"] != k.Status.KeyID {
		t.Errorf("%+v", s.ObjectMeta)
	}
	want := v1alpha1.APIKeyStatus{
		ObservedGeneration: 1, KeyID: b.rows()[0].ID, SecretName: "reports",
		IssuedAt: seconds(b.clock.now()), NextRotationAt: seconds(b.clock.now().Add(24 * time.Hour)), Conditions: k.Status.Conditions,
	}
	if diff := cmp.Diff(want, k.Status); diff != "" {
		t.Errorf("status (-want +got): %s", diff)
	}

	b.clock.advance(24*time.Hour - time.Second)
	if result, err := once(r, k); err != nil || result.RequeueAfter != time.Second || b.held(k) != first {
		t.Fatalf("%v, %v: want it to be looked at in a second", result, err)
	}
	b.clock.advance(time.Second)
	b.settle(r, k)
	second := b.held(k)
	if second == first || !b.works(first) || !b.works(second) {
		t.Fatalf("after the rotation: same %v, works %v and %v", second == first, b.works(first), b.works(second))
	}
	if diff := cmp.Diff([]string{want.KeyID}, k.Status.PreviousKeyIDs); diff != "" {
		t.Error(diff)
	}
	b.clock.advance(time.Hour)
	if b.works(first) || !b.works(second) {
		t.Error("after the overlap: want the second key alone to work")
	}
	b.settle(r, k)
	if k.Status.PreviousKeyIDs != nil || b.held(k) != second {
		t.Errorf("status after the overlap: %+v", k.Status)
	}

	b.Delete(t, k)
	b.settle(r, k)
	b.Gone(t, k)
	if b.works(second) {
		t.Error("a key works after the deletion")
	}
	for _, text := range []string{"Normal Minted: Key key_", "Normal Rotated: Key key_", "the previous key was due for rotation", "Normal Issued: The Secret reports holds"} {
		if !b.events.has(text) {
			t.Errorf("no event says %q: %q", text, b.events.all)
		}
	}
}

// Each reason to rotate mints a key or not, and the previous key works for the expected time.
func TestReplacement(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.controller(b.options())
	for _, tt := range []struct {
		name string
		do   func(k *v1alpha1.APIKey)
		new  bool
		old  time.Duration // how long the old key works; negative: as long as the object
		says string
	}{
		{"asked", func(k *v1alpha1.APIKey) { kubetest.Change(t, b.Cluster, k, annotate(v1alpha1.AnnotationRotate, "1")) }, true, time.Hour, "lectern.dev/rotate asked for it"},
		{"asked-long", func(k *v1alpha1.APIKey) {
			kubetest.Change(t, b.Cluster, k, annotate(v1alpha1.AnnotationRotate, strings.Repeat("x", 5000)))
		}, true, time.Hour, "lectern.dev/rotate asked for it"},
		{"secret-deleted", func(k *v1alpha1.APIKey) { b.Delete(t, b.secretOf(k)) }, true, time.Hour, "the Secret was deleted"},
		{"secret-edited", func(k *v1alpha1.APIKey) {
			kubetest.Change(t, b.Cluster, b.secretOf(k), func(s *corev1.Secret) { s.Data["api-key"] = []byte("hand-made") })
		}, true, time.Hour, "held no working key"},
		{"secret-emptied", func(k *v1alpha1.APIKey) {
			kubetest.Change(t, b.Cluster, b.secretOf(k), func(s *corev1.Secret) { s.Data = nil })
		}, true, time.Hour, "held no working key"},
		{"leaked", func(k *v1alpha1.APIKey) {
			kubetest.Change(t, b.Cluster, k, annotate(v1alpha1.AnnotationRevokeKeys, "key_other, "+k.Status.KeyID))
		}, true, 0, "lectern.dev/revoke-keys names it"},
		{"revoked-by-people", func(k *v1alpha1.APIKey) {
			if _, err := b.admin.Revoke(t.Context(), b.project, k.Status.KeyID); err != nil {
				t.Fatal(err)
			}
		}, true, 0, "held no working key"},
		{"rotated-by-people", func(k *v1alpha1.APIKey) {
			if _, _, err := b.admin.Rotate(t.Context(), b.project, k.Status.KeyID, 10*time.Minute); err != nil {
				t.Fatal(err)
			}
		}, true, 10 * time.Minute, "was set outside Kubernetes"},
		{"other-value-edited", func(k *v1alpha1.APIKey) {
			kubetest.Change(t, b.Cluster, b.secretOf(k), func(s *corev1.Secret) { s.Data["project-id"] = []byte("pr_2") })
		}, false, -1, "is restored"},
		{"label-removed", func(k *v1alpha1.APIKey) {
			kubetest.Change(t, b.Cluster, b.secretOf(k), func(s *corev1.Secret) { s.Labels = nil })
		}, false, -1, "is restored"},
		{"value-added", func(k *v1alpha1.APIKey) {
			kubetest.Change(t, b.Cluster, b.secretOf(k), func(s *corev1.Secret) { s.Data["mine"] = []byte("x") })
		}, false, -1, ""},
		{"scopes", func(k *v1alpha1.APIKey) {
			kubetest.Change(t, b.Cluster, k, func(k *v1alpha1.APIKey) { k.Spec.Scopes = []v1alpha1.Scope{"proxy:use"} })
		}, false, -1, "have changed"},
		{"names", func(k *v1alpha1.APIKey) {
			kubetest.Change(t, b.Cluster, k, func(k *v1alpha1.APIKey) { k.Spec.Secret.Keys.ProjectID = "project" })
		}, false, -1, "is restored"},
		{"expiry", func(k *v1alpha1.APIKey) {
			kubetest.Change(t, b.Cluster, k, func(k *v1alpha1.APIKey) { k.Spec.ExpiresAt = seconds(b.clock.now().Add(5 * time.Minute)) })
		}, false, 5 * time.Minute, "have changed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.events.all = nil
			k := b.newKey(tt.name)
			b.settle(r, k)
			old, before := b.held(k), k.Status
			b.clock.advance(time.Minute)
			tt.do(k)
			at := b.clock.now()
			b.settle(r, k)
			if got := b.held(k) != old; got != tt.new {
				t.Fatalf("a new key: %v, want %v", got, tt.new)
			}
			if tt.new && k.Status.KeyID == before.KeyID || !b.works(b.held(k)) {
				t.Errorf("the Secret's key works: %v; status %+v", b.works(b.held(k)), k.Status)
			}
			if c := kubetest.Ready(k); c.Status != metav1.ConditionTrue {
				t.Errorf("condition %+v", c)
			}
			if tt.says != "" && !b.events.has(tt.says) {
				t.Errorf("no event says %q: %q", tt.says, b.events.all)
			}
			// Once more changes nothing.
			n, version := len(b.rows()), k.ResourceVersion
			b.settle(r, k)
			if len(b.rows()) != n || k.ResourceVersion != version {
				t.Error("it was done twice")
			}
			if tt.old < 0 {
				b.clock.advance(100 * time.Hour)
				if !b.works(old) {
					t.Error("the key ended")
				}
				return
			}
			b.clock.advance(at.Add(tt.old).Sub(b.clock.now()) - time.Second)
			if tt.old > 0 && !b.works(old) {
				t.Errorf("the old key ended within %v", tt.old)
			}
			b.clock.advance(2 * time.Second)
			if b.works(old) {
				t.Errorf("the old key works after %v", tt.old)
			}
		})
	}
}

func TestScopesHoldForAllKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.controller(b.options())
	k := b.newKey("reports")
	b.settle(r, k)
	kubetest.Change(t, b.Cluster, k, annotate(v1alpha1.AnnotationRotate, "1"))
	b.settle(r, k)
	kubetest.Change(t, b.Cluster, k, func(k *v1alpha1.APIKey) { k.Spec.Scopes = []v1alpha1.Scope{"entries:read"} })
	b.settle(r, k)
	active := b.active(k)
	if len(active) != 2 {
		t.Fatalf("%+v, want two keys", active)
	}
	for _, one := range active {
		if one.Scopes != auth.ScopesOf(auth.EntriesRead) {
			t.Errorf("key %d has %v", one.number, one.Scopes)
		}
	}
	if active[0].ExpiresAt.IsZero() || !active[1].ExpiresAt.IsZero() {
		t.Errorf("ends %v and %v: the overlap was lost", active[0].ExpiresAt, active[1].ExpiresAt)
	}
}

func TestNamesInTheSecret(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.controller(b.options())
	k := b.newKey("reports", func(k *v1alpha1.APIKey) {
		k.Spec.Secret = v1alpha1.APIKeySecret{Name: "lectern", Keys: v1alpha1.APIKeySecretKeys{APIKey: "KEY", ProjectID: "PROJECT", URL: "URL"}}
		k.Spec.URL = "http://other.example.com"
	})
	b.settle(r, k)
	names := func() []string { return slices.Sorted(maps.Keys(b.secretOf(k).Data)) }
	if diff := cmp.Diff([]string{"KEY", "PROJECT", "URL"}, names()); diff != "" {
		t.Error(diff)
	}
	key := string(b.secretOf(k).Data["KEY"])
	kubetest.Change(t, b.Cluster, b.secretOf(k), func(s *corev1.Secret) { s.Data["mine"] = []byte("x") })
	kubetest.Change(t, b.Cluster, k, func(k *v1alpha1.APIKey) { k.Spec.Secret.Keys.APIKey, k.Spec.Secret.Keys.URL = "TOKEN", "" })
	b.settle(r, k)
	if diff := cmp.Diff([]string{"PROJECT", "TOKEN", "mine", "url"}, names()); diff != "" {
		t.Errorf("after other names: %s", diff)
	}
	if string(b.secretOf(k).Data["TOKEN"]) != key || !b.works(key) {
		t.Error("another name made another key")
	}
	// Without an address there is no value of that name; the name is a user's to take.
	o := b.options()
	o.PublicURL = ""
	kubetest.Change(t, b.Cluster, k, func(k *v1alpha1.APIKey) { k.Spec.URL = "" })
	r = b.controller(o)
	b.settle(r, k)
	if diff := cmp.Diff([]string{"PROJECT", "TOKEN", "mine"}, names()); diff != "" {
		t.Errorf("without an address: %s", diff)
	}
	kubetest.Change(t, b.Cluster, b.secretOf(k), func(s *corev1.Secret) { s.Data["url"] = []byte("mine") })
	b.settle(r, k)
	if string(b.secretOf(k).Data["url"]) != "mine" {
		t.Error("a user's value was taken")
	}
}

// The operator neither writes nor adopts a Secret of somebody else, whatever its labels. It notices when that Secret
// is deleted.
func TestSecretOfSomebodyElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.controller(b.options())
	theirs := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "reports", Labels: map[string]string{v1alpha1.LabelManaged: "true"}},
		Data:       map[string][]byte{"api-key": []byte("theirs")},
	}
	b.Create(t, theirs)
	k := b.newKey("reports")
	b.settle(r, k)
	if c := kubetest.Ready(k); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonSecretNotOwned {
		t.Errorf("condition %+v", c)
	}
	if got := b.secretOf(k); got.ResourceVersion != theirs.ResourceVersion || len(b.rows()) != 0 {
		t.Errorf("the Secret was written, or a key was minted: %+v, %v", got.ObjectMeta, b.rows())
	}
	b.Delete(t, theirs)
	b.settle(r, k)
	if !b.works(b.held(k)) || kubetest.Ready(k).Status != metav1.ConditionTrue {
		t.Error("no key was made when the Secret had gone")
	}
	// Ours no more, the Secret is left alone, and its key works on.
	key := b.held(k)
	kubetest.Change(t, b.Cluster, b.secretOf(k), func(s *corev1.Secret) { s.OwnerReferences = nil })
	kubetest.Change(t, b.Cluster, k, annotate(v1alpha1.AnnotationRotate, "1"))
	b.settle(r, k)
	if b.held(k) != key || !b.works(key) || kubetest.Ready(k).Reason != v1alpha1.ReasonSecretNotOwned {
		t.Errorf("same key %v, works %v, %+v", b.held(k) == key, b.works(key), kubetest.Ready(k))
	}
}

// An object of the same name is another object. The Secret of the earlier one is not its own.
func TestObjectMadeAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.controller(b.options())
	k := b.newKey("reports")
	b.settle(r, k)
	first := b.held(k)
	b.Delete(t, k)
	b.settle(r, k)
	b.Gone(t, k)
	k = b.newKey("reports")
	b.settle(r, k)
	if kubetest.Ready(k).Reason != v1alpha1.ReasonSecretNotOwned || b.works(first) {
		t.Errorf("%+v; the first key works: %v", kubetest.Ready(k), b.works(first))
	}
	b.Delete(t, b.secretOf(k)) // as the garbage collector does
	b.settle(r, k)
	if !b.works(b.held(k)) {
		t.Error("no new key was made")
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.controller(b.options())
	k := b.newKey("reports", func(k *v1alpha1.APIKey) { k.Spec.ExpiresAt = seconds(b.clock.now().Add(time.Hour)) })
	b.settle(r, k)
	key := b.held(k)
	if k.Status.ExpiresAt == nil || !k.Status.ExpiresAt.Equal(k.Spec.ExpiresAt) || !b.works(key) {
		t.Errorf("%+v", k.Status)
	}
	b.clock.advance(time.Hour)
	b.settle(r, k)
	if c := kubetest.Ready(k); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonExpired || b.works(key) {
		t.Errorf("%+v; works: %v", c, b.works(key))
	}
	kubetest.Change(t, b.Cluster, k, func(k *v1alpha1.APIKey) { k.Spec.ExpiresAt = seconds(b.clock.now().Add(time.Hour)) })
	b.settle(r, k)
	if c := kubetest.Ready(k); c.Status != metav1.ConditionTrue || !b.works(b.held(k)) {
		t.Errorf("with a later expiry: %+v", c)
	}
	kubetest.Change(t, b.Cluster, k, func(k *v1alpha1.APIKey) { k.Spec.ExpiresAt = seconds(b.clock.now().Add(-time.Hour)) })
	b.settle(r, k)
	if n := len(b.active(k)); n != 0 {
		t.Errorf("%d keys work after an expiry in the past", n)
	}
}

func TestLastUseIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.options()
	r := b.controller(o)
	k := b.newKey("reports")
	b.settle(r, k)
	use := func() {
		t.Helper()
		if _, err := b.db.Exec(t.Context(), `UPDATE api_keys SET last_used_at = $1 WHERE key_id = $2`, b.clock.now(), k.Status.KeyID); err != nil {
			t.Fatal(err)
		}
	}
	look := func(want bool) {
		t.Helper()
		names, err := b.sweep(o)
		if err != nil || slices.Contains(names, k.Name) != want {
			t.Errorf("%v, %v; want it to be looked at: %v", names, err, want)
		}
		b.settle(r, k)
	}
	look(false)
	use()
	used := b.clock.now()
	look(true)
	if k.Status.LastUsedAt == nil || !k.Status.LastUsedAt.Time.Equal(used) {
		t.Errorf("last used at %v, want %v", k.Status.LastUsedAt, used)
	}
	b.clock.advance(o.UseEvery - time.Second)
	use()
	look(false)
	if !k.Status.LastUsedAt.Time.Equal(used) {
		t.Errorf("updated before UseEvery has passed: %v", k.Status.LastUsedAt)
	}
	b.clock.advance(time.Second)
	use()
	look(true)
	if !k.Status.LastUsedAt.Time.Equal(b.clock.now()) {
		t.Errorf("last used at %v, want %v", k.Status.LastUsedAt, b.clock.now())
	}
}

// The sweep also covers namespaces that are no longer watched. Keys without an object are revoked at once, and the keys of
// an object after an hour.
func TestSweepOfUnwatchedNamespaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	was := b.NewNamespace(t)
	kubetest.Change(t, b.Cluster, b.declared, func(p *v1alpha1.Project) { p.Spec.AllowedNamespaces = []string{was} })
	o := b.options()
	before := b.options()
	before.Namespaces = append(before.Namespaces, was)
	r := b.controller(before)
	there := func(k *v1alpha1.APIKey) { k.Namespace = was }
	stays, gone := b.newKey("stays", there), b.newKey("gone", there)
	b.settle(r, stays)
	b.settle(r, gone)
	kept, lost := b.held(stays), b.held(gone)
	b.Delete(t, gone)
	s := b.sweeper(o)
	sweep := func() {
		t.Helper()
		if err := s.once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if b.works(lost) || !b.works(kept) {
		t.Errorf("after the first sweep: the key without an object works %v, the other %v", b.works(lost), b.works(kept))
	}
	b.clock.advance(59 * time.Minute)
	if sweep(); !b.works(kept) {
		t.Error("the key of an object was revoked before an hour had passed")
	}
	b.clock.advance(2 * time.Minute)
	if sweep(); b.works(kept) {
		t.Error("the key of an object that is not watched for an hour works")
	}
}

// The sweep changes no key of another realm, or whose object exists.
func TestSweep(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.options()
	r := b.controller(o)
	k := b.newKey("reports")
	b.settle(r, k)
	kubetest.Change(t, b.Cluster, k, annotate(v1alpha1.AnnotationRotate, "1"))
	b.settle(r, k)
	gone := b.newKey("gone")
	b.settle(r, gone)
	lost := b.held(gone)
	b.Delete(t, gone)
	elsewhere := b.options()
	elsewhere.Realm = "test/another"
	other := b.newKey("other")
	b.settle(b.controller(elsewhere), other)
	foreign := b.held(other)

	if names, err := b.sweep(o); err != nil || !slices.Equal(names, []string{"other"}) {
		t.Errorf("%v, %v", names, err)
	}
	if b.works(lost) || !b.works(b.held(k)) || !b.works(foreign) || len(b.active(k)) != 2 {
		t.Errorf("after the sweep: gone %v, there %v (%d), of another realm %v", b.works(lost), b.works(b.held(k)), len(b.active(k)), b.works(foreign))
	}
	// The sweep finds keys that people revoked.
	if _, err := b.admin.Revoke(t.Context(), b.project, k.Status.KeyID); err != nil {
		t.Fatal(err)
	}
	if names, err := b.sweep(o); err != nil || !slices.Contains(names, "reports") {
		t.Errorf("%v, %v; want reports", names, err)
	}
}

// An operator that finds no object of any key, and saw no deletion, may be in a cluster that lost them. So the sweep waits an
// hour before it revokes more than five keys, even if somebody makes an object meanwhile.
func TestSweepOfAnEmptyCluster(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.controller(b.options())
	var keys []string
	for i := range mostUnseen + 1 {
		k := b.newKey(fmt.Sprint("gone-", i))
		b.settle(r, k)
		keys = append(keys, b.held(k))
		b.Delete(t, k)
		b.Gone(t, k)
	}
	s := b.sweeper(b.options())
	clear(s.seen)
	working := func() (n int) {
		t.Helper()
		if err := s.once(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if b.works(key) {
				n++
			}
		}
		return n
	}
	if n := working(); n != len(keys) {
		t.Errorf("%d keys work after the first sweep; want all", n)
	}
	b.settle(r, b.newKey("made-meanwhile"))
	b.clock.advance(spareFor - time.Second)
	if n := working(); n != len(keys) {
		t.Errorf("%d keys work within the hour; want all", n)
	}
	b.clock.advance(time.Second)
	if n := working(); n != 0 {
		t.Errorf("%d keys work after an hour", n)
	}
}
