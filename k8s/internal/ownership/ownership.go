// Package ownership decides which Project declares a project, and which namespaces may have objects of the project.
package ownership

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/manifest"
)

// byProject is the name of the index of Projects by project id. The API server accepts the same name as a field
// selector.
const byProject = "spec.projectId"

// Index indexes mgr's Projects by project id. The caller calls Index once for each manager, before [Projects] reads
// from the cache.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Project{}, byProject, func(o client.Object) []string {
		return []string{o.(*v1alpha1.Project).Spec.ProjectID}
	})
	if err != nil {
		return fmt.Errorf("index Projects: %w", err)
	}
	return nil
}

// Changed returns a predicate for events of Projects. The predicate is true if another Project may now declare a
// project, or if the allowed namespaces may have changed.
func Changed() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return standing(e.ObjectOld) != standing(e.ObjectNew) },
	})
}

func standing(o client.Object) manifests.Standing {
	p := o.(*v1alpha1.Project)
	return manifests.StandingOf(p.Status.Conditions, p.Generation)
}

// Projects returns the Projects that name a project, including Projects in conflict. It lists the given namespaces, or
// all namespaces if no namespace is given.
func Projects(ctx context.Context, r client.Reader, projectID string, namespaces ...string) ([]v1alpha1.Project, error) {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var all []v1alpha1.Project
	for _, namespace := range namespaces {
		var list v1alpha1.ProjectList
		if err := r.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{byProject: projectID}); err != nil {
			return nil, fmt.Errorf("list Projects: %w", err)
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

// Declaring returns the Project that declares a project, or nil if none does. The arguments are the same as of
// [Projects].
func Declaring(ctx context.Context, r client.Reader, projectID string, namespaces ...string) (*v1alpha1.Project, error) {
	projects, err := Projects(ctx, r, projectID, namespaces...)
	if err != nil {
		return nil, err
	}
	return manifests.Declaring(projects), nil
}

// Decision states whether a namespace may have objects of a project, and if not, why.
type Decision int

// The decisions. Each one except Allowed is a reason to refuse the objects of a namespace.
const (
	Allowed    Decision = iota
	Undeclared          // no Project declares the project
	Foreign             // the project belongs to another namespace, whose Project does not allow this namespace
)

// Decide returns whether a namespace may have objects of a project. declaring is the Project that declares the project,
// or nil.
func Decide(namespace string, declaring *v1alpha1.Project) Decision {
	switch {
	case declaring == nil:
		return Undeclared
	case manifest.Granted(namespace, declaring.Namespace, declaring.Spec.AllowedNamespaces):
		return Allowed
	}
	return Foreign
}

// Refused returns the reason and the message for the condition of an object in namespace that names projectID. Both
// results are empty if the decision is Allowed.
func (d Decision) Refused(namespace, projectID string) (reason, message string) {
	switch d {
	case Undeclared:
		return v1alpha1.ReasonNotDeclared, fmt.Sprintf("spec.projectId: no Project declares project %q; one is required, and is made by the platform's administrators", projectID)
	case Foreign:
		return v1alpha1.ReasonNotGranted, fmt.Sprintf("spec.projectId: project %q belongs to another namespace, whose Project does not list %q in allowedNamespaces", projectID, namespace)
	}
	return "", ""
}
