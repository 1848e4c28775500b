package apikey

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/proxy/resource"
)

// A key for a project of another namespace is minted only if that namespace allows it, and revoked when it no longer
// does.
func TestGrant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.options()
	o.Namespaces = nil
	r := b.controller(o)
	const id = "pr_of_another"
	project := &v1alpha1.Project{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.NewNamespace(t), Name: "theirs"},
		Spec:       resource.ProjectSpec{ProjectID: id, Title: "Theirs"},
	}
	b.Create(t, project)
	k := b.newKey("reports", func(k *v1alpha1.APIKey) { k.Spec.ProjectID = id })
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

// If no Project declares the project, no key is minted. Existing keys work until their APIKey is deleted.
func TestUndeclared(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.controller(b.options())
	b.Delete(t, b.declared)
	b.Gone(t, b.declared)
	k := b.newKey("reports", every(time.Hour, time.Minute))
	b.settle(r, k)
	want := `spec.projectId: no Project declares project "` + b.project + `"; one is required, and is made by the platform's administrators`
	if c := kubetest.Ready(k); c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonNotDeclared || c.Message != want {
		t.Fatalf("condition %+v", c)
	}
	if b.secretOf(k) != nil || len(b.rows()) != 0 {
		t.Fatalf("a key was made: %+v", b.rows())
	}

	b.declared = &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: "again"}, Spec: resource.ProjectSpec{ProjectID: b.project, Title: "One"}}
	b.Create(t, b.declared)
	b.settle(r, k)
	if c := kubetest.Ready(k); c.Reason != v1alpha1.ReasonIssued || len(b.active(k)) != 1 {
		t.Fatalf("condition %+v, keys %+v", c, b.active(k))
	}
	first := b.held(k)

	// The Project goes: the key works on past its rotation, and past another one that is asked for.
	b.Delete(t, b.declared)
	b.Gone(t, b.declared)
	b.clock.advance(2 * time.Hour)
	kubetest.Change(t, b.Cluster, k, annotate(v1alpha1.AnnotationRotate, "now"))
	b.settle(r, k)
	if c := kubetest.Ready(k); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "The key still works. The operator issues no other key, because no Project declares project") {
		t.Errorf("condition %+v", c)
	}
	if !b.works(first) || b.held(k) != first || len(b.rows()) != 1 {
		t.Errorf("the key works: %v; keys %+v", b.works(first), b.rows())
	}
	// One that leaked still ends, and no other takes its place.
	kubetest.Change(t, b.Cluster, k, annotate(v1alpha1.AnnotationRevokeKeys, k.Status.KeyID))
	b.settle(r, k)
	if c := kubetest.Ready(k); c.Reason != v1alpha1.ReasonNotDeclared || b.works(first) || len(b.rows()) != 1 {
		t.Errorf("condition %+v, keys %+v", c, b.rows())
	}
	b.Delete(t, k)
	b.settle(r, k)

	o := b.options()
	o.AllowUndeclared = true
	r = b.controller(o)
	k = b.newKey("others")
	b.settle(r, k)
	if c := kubetest.Ready(k); c.Reason != v1alpha1.ReasonIssued {
		t.Errorf("where it is allowed: condition %+v", c)
	}
}
