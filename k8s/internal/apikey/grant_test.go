package apikey

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/kubetest"
)

// A key of a project that is another namespace's is made only where that one allows it, and ends when it does
// not any more.
func TestGrant(t *testing.T) {
	b := setup(t)
	r := b.controller(b.options())
	const id = "pr_of_another"
	project := &v1alpha1.Project{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.NewNamespace(t), Name: "theirs"},
		Spec:       v1alpha1.ProjectSpec{ProjectID: id, Title: "Theirs"},
	}
	b.Create(t, project)
	k := b.newKey("reports", func(k *v1alpha1.APIKey) { k.Spec.Project = id })
	b.settle(r, k)
	if c := kubetest.Ready(k); c == nil || c.Reason != v1alpha1.ReasonNotGranted || !strings.Contains(c.Message, "belongs to another namespace") || strings.Contains(c.Message, project.Namespace) {
		t.Fatalf("condition %+v", c)
	}
	if b.secretOf(k) != nil || len(b.rows()) != 0 {
		t.Fatalf("a key was made: %+v", b.rows())
	}

	kubetest.Change(t, b.Cluster, project, func(p *v1alpha1.Project) { p.Spec.AllowedNamespaces = []string{b.Namespace} })
	b.settle(r, k)
	if c := kubetest.Ready(k); c.Reason != v1alpha1.ReasonIssued || len(b.active(k)) != 1 {
		t.Fatalf("condition %+v, keys %+v", c, b.active(k))
	}

	kubetest.Change(t, b.Cluster, project, func(p *v1alpha1.Project) { p.Spec.AllowedNamespaces = nil })
	b.settle(r, k)
	if c := kubetest.Ready(k); c.Reason != v1alpha1.ReasonNotGranted || len(b.active(k)) != 0 {
		t.Fatalf("condition %+v, keys %+v", c, b.active(k))
	}

	// Granted again it gets another key.
	kubetest.Change(t, b.Cluster, project, func(p *v1alpha1.Project) { p.Spec.AllowedNamespaces = []string{"*"} })
	b.clock.advance(r.Settle)
	b.settle(r, k)
	if c := kubetest.Ready(k); c.Reason != v1alpha1.ReasonIssued || len(b.active(k)) != 1 {
		t.Fatalf("condition %+v, keys %+v", c, b.active(k))
	}
	b.Delete(t, k)
	b.settle(r, k)
	if len(b.active(k)) != 0 {
		t.Error("a key outlived its object")
	}
}
