// Package grant owns the question whose a project is: which Project declares it, and which namespaces may
// have objects of it. A project that no Project declares is everybody's.
package grant

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/manifest"
)

// byProject is the index of Projects by the id that they declare.
const byProject = "spec.projectId"

// Index makes mgr's Projects be found by their id. It is called once for a manager, before what uses
// [Projects].
func Index(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Project{}, byProject, func(o client.Object) []string {
		return []string{o.(*v1alpha1.Project).Spec.ProjectID}
	})
	if err != nil {
		return fmt.Errorf("index Projects: %w", err)
	}
	return nil
}

// Projects returns the Projects that declare a project, the one that counts first.
func Projects(ctx context.Context, r client.Reader, projectID string) ([]v1alpha1.Project, error) {
	var list v1alpha1.ProjectList
	if err := r.List(ctx, &list, client.MatchingFields{byProject: projectID}); err != nil {
		return nil, fmt.Errorf("list Projects: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Project) int { return manifests.Older(&a, &b) })
	return list.Items, nil
}

// Allowed tells whether objects of a namespace may be of a project.
func Allowed(ctx context.Context, r client.Reader, namespace, projectID string) (bool, error) {
	declared, err := Projects(ctx, r, projectID)
	if err != nil || len(declared) == 0 {
		return err == nil, err
	}
	return manifest.Granted(namespace, declared[0].Namespace, declared[0].Spec.AllowedNamespaces), nil
}

// Refused says, for a condition, that [Allowed] is false.
func Refused(namespace, projectID string) string {
	return fmt.Sprintf("spec.project: project %q belongs to another namespace, whose Project does not list %q in allowedNamespaces", projectID, namespace)
}
