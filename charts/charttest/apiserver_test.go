package charttest

import (
	"encoding/json"
	"testing"

	core "k8s.io/api/core/v1"
	scheduling "k8s.io/api/scheduling/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAPIServerTakesAll checks that a real API server accepts each object of the chart, strictly and without storing
// it. It checks more than schemas do. It does not know kinds of other projects: other tests check their types.
func TestAPIServerTakesAll(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", startCluster(t))
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensions.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	config.QPS = -1
	server, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	// Objects that others refer to, besides the namespace lectern, which startCluster makes.
	needed := []client.Object{&scheduling.PriorityClass{ObjectMeta: meta.ObjectMeta{Name: "high"}, Value: 1}}
	for _, namespace := range []string{"monitoring", "team-a", "team-b"} {
		needed = append(needed, &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: namespace}})
	}
	for _, o := range needed {
		if err := server.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{} // objects that are the same with other values
	for name, in := range valuesOfAll(t) {
		t.Run(name, func(t *testing.T) {
			taken := 0
			for _, o := range render(t, in).objects {
				o := o.(client.Object).DeepCopyObject().(client.Object) // the client writes the answer to it
				if !scheme.Recognizes(o.GetObjectKind().GroupVersionKind()) {
					continue
				}
				taken++
				text, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				if seen[string(text)] {
					continue
				}
				seen[string(text)] = true
				if err := server.Create(t.Context(), o, client.DryRunAll, client.FieldValidation(meta.FieldValidationStrict)); err != nil && !apierrors.IsAlreadyExists(err) {
					t.Errorf("%T %s: %v", o, o.GetName(), err)
				}
			}
			if taken == 0 {
				t.Error("no object was taken")
			}
		})
	}
}
