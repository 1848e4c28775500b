package config_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
)

// Objects that a cluster has stored stay readable. The API server accepts each of them with its status and returns
// every field with its value. The Go types have all fields.
func TestStoredObjects(t *testing.T) {
	c := kubetest.Start(t)
	stored, err := os.ReadFile("testdata/stored.yaml")
	if err != nil {
		t.Fatal(err)
	}
	typed := map[string]any{
		"Project": &v1alpha1.Project{}, "APIKey": &v1alpha1.APIKey{}, "Credential": &v1alpha1.Credential{}, "ProxyEndpoint": &v1alpha1.ProxyEndpoint{},
	}
	for document := range strings.SplitSeq(string(stored), "\n---\n") {
		want := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &want.Object); err != nil {
			t.Fatal(err)
		}
		t.Run(want.GetKind(), func(t *testing.T) {
			if err := yaml.UnmarshalStrict([]byte(document), typed[want.GetKind()]); err != nil {
				t.Errorf("the type does not know all of it: %v", err)
			}
			o := want.DeepCopy()
			c.Create(t, o)
			o.Object["status"] = want.DeepCopy().Object["status"]
			if err := c.Client.Status().Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			got := &unstructured.Unstructured{}
			got.SetGroupVersionKind(want.GroupVersionKind())
			if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(o), got); err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"spec", "status"} {
				for _, missing := range missing(part, want.Object[part], got.Object[part]) {
					t.Error(missing)
				}
			}
		})
	}
}

// missing lists the fields that only one of want and got has.
func missing(path string, want, got any) (all []string) {
	fields, ok := want.(map[string]any)
	if !ok {
		// As JSON, where a number is a number.
		asked, _ := json.Marshal(want)
		given, _ := json.Marshal(got)
		if !bytes.Equal(asked, given) {
			all = append(all, path+" came back as "+string(given)+", stored was "+string(asked))
		}
		return all
	}
	given, _ := got.(map[string]any) // nil: all are missing
	for name, value := range fields {
		all = append(all, missing(path+"."+name, value, given[name])...)
	}
	return all
}
