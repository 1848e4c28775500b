package apikey

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/testing/golden"
)

// stored has the state that the operator of a version stored for an APIKey: the object, its Secret, and the key's row in
// the database. The texts UID, PROJECT and NAMESPACE stand for those of a test.
type stored struct {
	Object v1alpha1.APIKey
	Secret corev1.Secret
	Row    map[string]any
}

// TestUpgrades checks that the operator goes on with an APIKey of each released version. It keeps the key, rotates the key
// when it is asked to, and revokes all keys of a deleted object.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.controller(b.options())
	golden.EachVersion(t, "apikey.json", func() string {
		k := b.newKey("reports", annotate(v1alpha1.AnnotationRotate, "once"))
		b.settle(r, k)
		s := stored{Object: *k, Secret: *b.secretOf(k)}
		if err := b.db.QueryRow(t.Context(), `SELECT to_jsonb(k) FROM api_keys k WHERE owner_id = $1`, string(k.UID)).Scan(&s.Row); err != nil {
			t.Fatal(err)
		}
		for _, m := range []*metav1.ObjectMeta{&s.Object.ObjectMeta, &s.Secret.ObjectMeta} {
			m.ManagedFields, m.ResourceVersion, m.Generation, m.CreationTimestamp = nil, "", 0, metav1.Time{}
		}
		s.Secret.StringData, s.Secret.Data = texts(s.Secret.Data), nil
		text, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		return strings.NewReplacer(b.project, "PROJECT", b.Namespace, "NAMESPACE", string(k.UID), "UID").Replace(string(text)) + "\n"
	}, func(t *testing.T, content string) {
		read := func(uid string) (s stored) {
			t.Helper()
			if err := json.Unmarshal([]byte(strings.NewReplacer("PROJECT", b.project, "NAMESPACE", b.Namespace, `"UID"`, `"`+uid+`"`).Replace(content)), &s); err != nil {
				t.Fatal(err)
			}
			return s
		}
		was := read("")
		k := was.Object.DeepCopy()
		k.UID = ""
		b.Create(t, k)
		k.Status = was.Object.Status
		if err := b.client.Status().Update(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		was = read(string(k.UID))
		was.Secret.UID = ""
		if err := b.client.Create(t.Context(), &was.Secret, controller.FieldOwner); err != nil {
			t.Fatal(err)
		}
		var system corev1.Namespace
		if err := b.client.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &system); err != nil {
			t.Fatal(err)
		}
		if realm, err := ClusterRealm(t.Context(), b.client); err != nil || realm != "kubernetes/"+string(system.UID) {
			t.Errorf("the keys of the cluster belong to the realm %q, %v", realm, err)
		}
		columns := strings.Join(slices.Sorted(maps.Keys(was.Row)), ", ")
		if _, err := b.db.Exec(t.Context(), `INSERT INTO api_keys (`+columns+`) SELECT `+columns+` FROM jsonb_populate_record(NULL::api_keys, $1)`, was.Row); err != nil {
			t.Fatal(err)
		}
		key := b.held(k)

		b.settle(r, k)
		if names, err := b.sweep(b.options()); err != nil || len(names) > 0 {
			t.Errorf("a sweep looks at %q, %v", names, err)
		}
		if len(k.Finalizers) != 0 {
			t.Errorf("finalizers %q", k.Finalizers)
		}
		if b.held(k) != key || b.secretOf(k).ResourceVersion != was.Secret.ResourceVersion || !b.works(key) || len(b.rows()) != 1 || k.Status.KeyID != was.Object.Status.KeyID || kubetest.Ready(k).Reason != v1alpha1.ReasonIssued {
			t.Fatalf("keys %+v, status %+v, Secret %+v", b.rows(), k.Status, b.secretOf(k).ObjectMeta)
		}
		kubetest.Change(t, b.Cluster, k, annotate(v1alpha1.AnnotationRotate, "again"))
		b.settle(r, k)
		if b.held(k) == key || !b.works(key) || !b.works(b.held(k)) || !slices.Equal(k.Status.PreviousKeyIDs, []string{was.Object.Status.KeyID}) {
			t.Errorf("keys %+v, status %+v", b.rows(), k.Status)
		}
		b.Delete(t, k)
		b.Gone(t, k)
		if _, err := b.sweep(b.options()); err != nil || b.works(key) {
			t.Errorf("%v; a key works after the deletion: %v", err, b.works(key))
		}
		b.Delete(t, &was.Secret)
	})
}

func texts(data map[string][]byte) map[string]string {
	all := map[string]string{}
	for name, value := range data {
		all[name] = string(value)
	}
	return all
}
