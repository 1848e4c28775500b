package kubernetes

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/manifest"
)

func readCredential(u *unstructured.Unstructured) (manifest.Credential, error) {
	var c v1alpha1.Credential
	if err := decode(u, &c); err != nil {
		return manifest.Credential{}, err
	}
	return manifests.Credential(&c), nil
}

func readEndpoint(u *unstructured.Unstructured) (manifest.ProxyEndpoint, error) {
	var e v1alpha1.ProxyEndpoint
	if err := decode(u, &e); err != nil {
		return manifest.ProxyEndpoint{}, err
	}
	return manifests.Endpoint(&e), nil
}

// standingOf returns the standing of a Project by its status. The result is Undecided if the status cannot be decoded.
func standingOf(u *unstructured.Unstructured) manifests.Standing {
	var p v1alpha1.Project
	status := map[string]any{"status": u.Object["status"]}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &p); err != nil {
		return manifests.Undecided
	}
	return manifests.StandingOf(p.Status.Conditions, u.GetGeneration())
}

// readProject decodes a Project. If the Project cannot be decoded, the result still has its projectId, and allows no
// other namespace. Without this result, another Project could declare the project.
func readProject(u *unstructured.Unstructured) (manifest.Project, error) {
	var p v1alpha1.Project
	err := decode(u, &p)
	if err != nil {
		p = v1alpha1.Project{}
		p.Namespace, p.Name = u.GetNamespace(), u.GetName()
		p.Spec.ProjectID, _, _ = unstructured.NestedString(u.Object, "spec", "projectId") // the policy treats "" as any other fault
	}
	return manifests.Project(&p), err
}

// decode copies the name, the namespace and the spec of u to the object into. It leaves the status out.
func decode(u *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{
		"metadata": map[string]any{"namespace": u.GetNamespace(), "name": u.GetName()},
		"spec":     u.Object["spec"],
	}, into)
}
