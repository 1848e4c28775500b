package uninstall

import (
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// run runs the job on c with the rights that the chart gives it, and returns its log.
func run(t *testing.T, c *kubetest.Cluster, environ map[string]string) string {
	t.Helper()
	var cfg Config
	if err := config.Load(&cfg, environ); err != nil {
		t.Fatal(err)
	}
	log := &servicetest.Log{}
	cfg.Cluster.REST, cfg.Lease.Namespace, cfg.LogOutput = c.As(t, "uninstall"), c.Namespace, log
	if err := Run(t.Context(), cfg); err != nil {
		t.Fatalf("%v\n%s", err, log.Tail(4000))
	}
	return log.Tail(4000)
}

func newKey(namespace, name string, finalizers ...string) *v1alpha1.APIKey {
	return &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: finalizers},
		Spec:       v1alpha1.APIKeySpec{ProjectID: "pr_1"},
	}
}

// TestUninstall checks that the job removes the operator's finalizers in the watched namespaces. Other finalizers, and
// objects in other namespaces, stay unchanged. A deleted namespace is no error.
func TestUninstall(t *testing.T) {
	c := kubetest.Start(t)
	const foreign = "example.com/held"
	kept := newKey(c.Namespace, "kept", v1alpha1.FinalizerAPIKey, foreign)
	deleted := newKey(c.Namespace, "deleted", v1alpha1.FinalizerAPIKey)
	other := newKey(c.NewNamespace(t), "other", v1alpha1.FinalizerAPIKey)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "lectern-operator"}}
	c.Create(t, kept, deleted, other, lease)
	deleted.Status.KeyID = "key_of_the_deleted"
	if err := c.Client.Status().Update(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	c.Delete(t, deleted)

	log := run(t, c, map[string]string{"WATCH_NAMESPACES": c.Namespace + ",gone-long-ago"})
	c.Gone(t, deleted)
	c.Gone(t, lease)
	for _, tt := range []struct {
		object client.Object
		want   []string
	}{{kept, []string{foreign}}, {other, []string{v1alpha1.FinalizerAPIKey}}} {
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(tt.object), tt.object); err != nil {
			t.Fatal(err)
		}
		if got := tt.object.GetFinalizers(); !slices.Equal(got, tt.want) {
			t.Errorf("%T %s is held by %q; want %q", tt.object, tt.object.GetName(), got, tt.want)
		}
	}
	if !strings.Contains(log, `its keys are not revoked`) || !strings.Contains(log, "key_of_the_deleted") {
		t.Errorf("the log does not name the objects whose keys still work:\n%s", log)
	}

	// Again, there is nothing to do; without namespaces, all count.
	run(t, c, nil)
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil || len(other.Finalizers) > 0 {
		t.Errorf("%v, %s is held by %q", err, other.Name, other.Finalizers)
	}
}

// TestDefinitionsAreGone checks that the job succeeds where the definitions no longer exist.
func TestDefinitionsAreGone(t *testing.T) {
	run(t, kubetest.Bare(t), nil)
}
