package manifests_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/manifests"
)

func TestOlder(t *testing.T) {
	at := func(second int, namespace, name string) *v1alpha1.Project {
		return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.Unix(int64(second), 0)}}
	}
	want := []*v1alpha1.Project{at(1, "b", "b"), at(2, "a", "b"), at(2, "b", "a"), at(2, "b", "b"), at(3, "a", "a")}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, func(a, b *v1alpha1.Project) int { return manifests.Older(a, b) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
