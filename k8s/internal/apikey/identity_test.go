package apikey

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/metawatch"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
)

const (
	company = "https://id.example.com"
	cluster = "https://kubernetes.default.svc.cluster.local"
)

func identified(i v1alpha1.APIKeyIdentity) func(*v1alpha1.APIKey) {
	return func(k *v1alpha1.APIKey) { k.Spec.Identity = &i }
}

// granted returns the project's records that are accepted now.
func (b *bench) granted() (active []auth.Record) {
	b.t.Helper()
	all, err := b.admin.List(b.t.Context(), b.project)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, r := range all {
		if r.Active(b.clock.now()) {
			active = append(active, r)
		}
	}
	return active
}

// account creates the ServiceAccount reports of a namespace, and returns its uid.
func (b *bench) account(namespace string) string {
	b.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reports"}}
	b.Create(b.t, account)
	return string(account.UID)
}

// An identity has a grant while its object exists. The grant follows the object's scopes, rate and expiry. No Secret is
// written.
func TestIdentity(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.options()
	o.ClusterIssuer = cluster
	r := b.controller(o)
	shop := b.NewNamespace(t)
	for _, tt := range []struct {
		name string
		in   v1alpha1.APIKeyIdentity
		want auth.Identity
		says string
	}{
		{"subject", v1alpha1.APIKeyIdentity{Issuer: company, Subject: "ana"}, auth.Identity{Issuer: company, Subject: "ana"}, `The subject "ana" of https://id.example.com has the grant key_`},
		{"group", v1alpha1.APIKeyIdentity{Issuer: company, Group: "staff"}, auth.Identity{Issuer: company, Group: "staff"}, `The group "staff" of https://id.example.com has the grant key_`},
		{"account", v1alpha1.APIKeyIdentity{ServiceAccountRef: &v1alpha1.APIKeyServiceAccountRef{Name: "reports"}},
			auth.Identity{Issuer: cluster, Subject: "system:serviceaccount:" + b.Namespace + ":reports", UID: b.account(b.Namespace)}, ":reports\" of " + cluster + " has the grant key_"},
		{"account-elsewhere", v1alpha1.APIKeyIdentity{ServiceAccountRef: &v1alpha1.APIKeyServiceAccountRef{Name: "reports", Namespace: shop}},
			auth.Identity{Issuer: cluster, Subject: "system:serviceaccount:" + shop + ":reports", UID: b.account(shop)}, `The subject "system:serviceaccount:` + shop + `:reports" of ` + cluster + " has the grant key_"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := b.newKey(tt.name, identified(tt.in), func(k *v1alpha1.APIKey) {
				k.Spec.Rate = 5
				k.Spec.ExpiresAt = &metav1.Time{Time: b.clock.now().Add(2 * time.Hour)}
			})
			// check settles the object, and returns its condition and the ids of its grants that are accepted.
			check := func(scopes auth.Scopes, rate int) (metav1.Condition, []string) {
				t.Helper()
				b.settle(r, k)
				var ids []string
				for _, g := range b.granted() {
					ids = append(ids, g.ID)
					var until time.Time
					if k.Spec.ExpiresAt != nil {
						until = k.Spec.ExpiresAt.UTC()
					}
					got := auth.Record{Identity: g.Identity, Name: g.Name, Scopes: g.Scopes, Rate: g.Rate, ExpiresAt: g.ExpiresAt, Owner: g.Owner}
					want := auth.Record{Identity: tt.want, Name: k.Name, Scopes: scopes, Rate: rate, ExpiresAt: until, Owner: ownerOf(b.realm, k)}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("the grant (-want +got): %s", diff)
					}
				}
				return *kubetest.Ready(k), ids
			}
			c, ids := check(auth.DefaultScopes, 5)
			if len(ids) != 1 || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonIssued || !strings.Contains(c.Message, tt.says+ids[0][4:]) {
				t.Fatalf("condition %+v, grants %q; want it to say %q", c, ids, tt.says)
			}
			want := v1alpha1.APIKeyStatus{ObservedGeneration: 1, KeyID: ids[0], IssuedAt: k.Status.IssuedAt, ExpiresAt: k.Spec.ExpiresAt, Conditions: k.Status.Conditions}
			if diff := cmp.Diff(want, k.Status); diff != "" {
				t.Errorf("status (-want +got): %s", diff)
			}
			same := func(c metav1.Condition, now []string) {
				t.Helper()
				if c.Reason != v1alpha1.ReasonIssued || !cmp.Equal(now, ids) {
					t.Errorf("condition %+v, grants %q; want it issued as %q", c, now, ids)
				}
			}

			kubetest.Change(t, b.Cluster, k, func(k *v1alpha1.APIKey) {
				k.Spec.Scopes, k.Spec.Rate = []v1alpha1.Scope{"proxy:use"}, 0
				k.Spec.ExpiresAt = &metav1.Time{Time: b.clock.now().Add(time.Hour)}
			})
			proxy := auth.ScopesOf(auth.ProxyUse)
			same(check(proxy, 0))
			b.clock.advance(time.Hour)
			if c, ids := check(proxy, 0); c.Reason != v1alpha1.ReasonExpired || len(ids) != 0 {
				t.Errorf("after the expiry: condition %+v, grants %q", c, ids)
			}
			kubetest.Change(t, b.Cluster, k, func(k *v1alpha1.APIKey) { k.Spec.ExpiresAt = nil })
			same(check(proxy, 0))

			// Annotations about keys have no effect, and the condition says so.
			for _, name := range []string{v1alpha1.AnnotationRotate, v1alpha1.AnnotationRevokeKeys} {
				kubetest.Change(t, b.Cluster, k, annotate(name, ids[0]))
				c, now := check(proxy, 0)
				same(c, now)
				if !strings.Contains(c.Message, name) || !strings.Contains(c.Message, "have no effect on an identity, which has no key") {
					t.Errorf("%s: condition %+v", name, c)
				}
				kubetest.Change(t, b.Cluster, k, func(k *v1alpha1.APIKey) { delete(k.Annotations, name) })
			}

			// The object decides: a grant that people revoke comes back.
			if _, err := b.admin.Revoke(t.Context(), b.project, ids[0]); err != nil {
				t.Fatal(err)
			}
			if names, err := b.sweep(o); err != nil || !cmp.Equal(names, []string{k.Name}) {
				t.Errorf("the sweep looks at %q, %v", names, err)
			}
			same(check(proxy, 0))

			var secrets corev1.SecretList
			if err := b.client.List(t.Context(), &secrets, client.InNamespace(b.Namespace)); err != nil || len(secrets.Items) != 0 {
				t.Errorf("%d Secrets, %v; want none", len(secrets.Items), err)
			}
			b.Delete(t, k)
			b.settle(r, k)
			b.Gone(t, k)
			if left := b.granted(); len(left) != 0 {
				t.Errorf("after the deletion: %+v", left)
			}
		})
	}
}

// An identity that another object or a person granted in the project is refused, until that grant ends.
func TestIdentityConflict(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.controller(b.options())
	ana := auth.Identity{Issuer: company, Subject: "ana"}
	_, byHand, err := b.admin.Mint(t.Context(), pgkeys.MintOptions{ProjectID: b.project, Identity: ana})
	if err != nil {
		t.Fatal(err)
	}
	first := b.newKey("first", identified(v1alpha1.APIKeyIdentity{Issuer: company, Subject: "ana"}))
	second := b.newKey("second", identified(v1alpha1.APIKeyIdentity{Issuer: company, Subject: "ana"}))
	refused := func(k *v1alpha1.APIKey) {
		t.Helper()
		if _, err := once(r, k); err == nil {
			t.Error("no error, so the object is not looked at again")
		}
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(k), k); err != nil {
			t.Fatal(err)
		}
		want := `The project has another active grant for the subject "ana" of https://id.example.com`
		if c := kubetest.Ready(k); c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonConflict || !strings.Contains(c.Message, want) {
			t.Errorf("%s: condition %+v", k.Name, c)
		}
		if n := len(b.granted()); n != 1 {
			t.Errorf("%d grants, want 1", n)
		}
	}
	refused(first)
	if _, err := b.admin.Revoke(t.Context(), b.project, byHand.ID); err != nil {
		t.Fatal(err)
	}
	b.settle(r, first)
	if c := kubetest.Ready(first); c.Reason != v1alpha1.ReasonIssued {
		t.Errorf("condition %+v", c)
	}
	refused(second)
	b.Delete(t, first)
	b.settle(r, first)
	b.settle(r, second)
	if c, all := kubetest.Ready(second), b.granted(); c.Reason != v1alpha1.ReasonIssued || len(all) != 1 || all[0].Owner != ownerOf(b.realm, second) {
		t.Errorf("condition %+v, grants %+v", c, all)
	}
}

// A ServiceAccount has a grant of the operator's CLUSTER_ISSUER alone.
func TestClusterIssuer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.account(b.Namespace)
	k := b.newKey("reports", identified(v1alpha1.APIKeyIdentity{ServiceAccountRef: &v1alpha1.APIKeyServiceAccountRef{Name: "reports"}}))
	b.settle(b.controller(b.options()), k)
	if c := kubetest.Ready(k); c == nil || c.Reason != v1alpha1.ReasonInvalid || !strings.HasPrefix(c.Message, "spec.identity.serviceAccountRef: the operator has no CLUSTER_ISSUER") || len(b.granted()) != 0 {
		t.Fatalf("condition %+v, grants %+v", c, b.granted())
	}
	for _, issuer := range []string{cluster, "https://oidc.example.com/cluster-1"} {
		o := b.options()
		o.ClusterIssuer = issuer
		b.settle(b.controller(o), k)
		if c, all := kubetest.Ready(k), b.granted(); c.Reason != v1alpha1.ReasonIssued || len(all) != 1 || all[0].Identity.Issuer != issuer || k.Status.PreviousKeyIDs != nil {
			t.Errorf("condition %+v, grants %+v, previous %q", c, all, k.Status.PreviousKeyIDs)
		}
	}
}

// A ServiceAccount has a grant for its uid while it exists. An object waits for an account that does not exist.
func TestServiceAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.options()
	o.ClusterIssuer = cluster
	r := b.controller(o)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "reports"}}
	k := b.newKey("reports", identified(v1alpha1.APIKeyIdentity{ServiceAccountRef: &v1alpha1.APIKeyServiceAccountRef{Name: "reports"}}))
	waits := func() {
		t.Helper()
		b.settle(r, k)
		want := "The ServiceAccount " + b.Namespace + "/reports does not exist. The operator grants it the project as soon as it exists."
		if c, all := kubetest.Ready(k), b.granted(); c.Reason != v1alpha1.ReasonServiceAccountNotFound || c.Message != want || len(all) != 0 || k.Status.KeyID != "" {
			t.Fatalf("without the account: condition %+v, grants %+v, status %+v", c, all, k.Status)
		}
	}
	works := func(uid string) {
		t.Helper()
		began := b.clock.now()
		b.settle(r, k)
		if c, all := kubetest.Ready(k), b.granted(); c.Reason != v1alpha1.ReasonIssued || len(all) != 1 || all[0].Identity.UID != uid || b.clock.now().Sub(began) > time.Second {
			t.Fatalf("with the account %s: condition %+v, grants %+v after %v", uid, c, all, b.clock.now().Sub(began))
		}
	}
	waits()
	works(b.account(b.Namespace))
	b.Delete(t, account)
	waits()
	works(b.account(b.Namespace))
	b.Delete(t, account)
	works(b.account(b.Namespace)) // no reconcile saw the deletion

	o.Accounts = refusing{}
	other := b.newKey("other", identified(v1alpha1.APIKeyIdentity{ServiceAccountRef: &v1alpha1.APIKeyServiceAccountRef{Name: "other"}}))
	for want, k := range map[string]*v1alpha1.APIKey{v1alpha1.ReasonIssued: k, v1alpha1.ReasonPending: other} {
		if _, err := once(b.controller(o), k); err == nil {
			t.Error("no error, so the object is not looked at again")
		}
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(k), k); err != nil {
			t.Fatal(err)
		}
		if c, all := kubetest.Ready(k), b.granted(); c.Reason != want || len(all) != 1 {
			t.Errorf("%s while accounts cannot be read: condition %+v, grants %+v", k.Name, c, all)
		}
	}
}

// refusing are accounts that the operator may not read.
type refusing struct{ accounts }

func (refusing) UID(context.Context, types.NamespacedName) (types.UID, error) {
	return "", metawatch.ErrRefused
}

// A grant of version 0.1.0 for a ServiceAccount has no uid. A grant with the uid replaces it after an hour, in which pods of
// both versions serve. Terms end the grant, so an operator of 0.1.0 prolongs it. The grant ends at once if the account goes.
func TestGrantOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"kept": false, "deleted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			o := b.options()
			o.ClusterIssuer = cluster
			r := b.controller(o)
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "reports"}}
			b.Create(t, account)
			k := b.newKey("reports", identified(v1alpha1.APIKeyIdentity{ServiceAccountRef: &v1alpha1.APIKeyServiceAccountRef{Name: "reports"}}))
			plain := auth.Identity{Issuer: cluster, Subject: "system:serviceaccount:" + b.Namespace + ":reports"}
			_, before, err := b.admin.MintOwned(t.Context(), pgkeys.OwnedOptions{
				MintOptions: pgkeys.MintOptions{ProjectID: b.project, Name: k.Name, Identity: plain}, Owner: ownerOf(b.realm, k), Number: 1,
			})
			if err == nil {
				_, err = b.admin.Deliver(t.Context(), b.project, before.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
			b.settle(r, k)
			keys, _, err := b.admin.Owned(t.Context(), b.project, ownerOf(b.realm, k))
			if err != nil || len(keys) != 2 || keys[0].ID != before.ID || keys[0].Ended || !keys[0].ExpiresAt.Equal(keys[1].DeliveredAt.Add(time.Hour)) || keys[1].Identity.UID != string(account.UID) {
				t.Fatalf("after the upgrade: %+v, %v", keys, err)
			}
			want := 1
			if deleted {
				want = 0
				b.Delete(t, account)
			} else {
				b.clock.advance(time.Hour)
			}
			b.settle(r, k)
			if all := b.granted(); len(all) != want || want == 1 && all[0].ID != k.Status.KeyID {
				t.Errorf("at the end: %+v", all)
			}
		})
	}
}
