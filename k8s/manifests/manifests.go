// Package manifests converts objects of the API to the credential proxy's types, so that the operator and the proxy
// validate them by the same code. The package itself validates nothing.
package manifests

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/proxy/manifest"
	"github.com/lectern-dev/lectern/proxy/resource"
)

// Older compares objects by age, and those of the same second by namespace and name. It is negative if a is older. Of
// objects with the same claim, the older one prevails.
func Older(a, b metav1.Object) int {
	return cmp.Or(
		a.GetCreationTimestamp().Time.Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()),
		cmp.Compare(a.GetName(), b.GetName()),
	)
}

// Standing ranks a Project among those that name the same project. The one with the least standing declares it.
type Standing int

// The standings. A Conflicting Project never declares its project.
const (
	Accepted    Standing = iota // the operator has decided that this one declares the project
	Undecided                   // the operator has not reconciled it since its last change
	Conflicting                 // the operator has decided, for this generation, that another one declares it
)

// StandingOf reads a Project's standing from its condition Accepted.
func StandingOf(conditions []metav1.Condition, generation int64) Standing {
	accepted := meta.FindStatusCondition(conditions, v1alpha1.ConditionAccepted)
	switch {
	case accepted == nil:
		return Undecided
	case accepted.Status == metav1.ConditionTrue:
		return Accepted
	case accepted.ObservedGeneration == generation:
		return Conflicting
	}
	return Undecided
}

// Declaring returns the Project that declares the project, of those that name it, or nil if none does. It is the accepted
// one, or else the oldest undecided one. A conflicting Project does not take over when the other one is deleted.
func Declaring(projects []v1alpha1.Project) *v1alpha1.Project {
	var first *v1alpha1.Project
	for i := range projects {
		p := &projects[i]
		standing := StandingOf(p.Status.Conditions, p.Generation)
		if standing == Conflicting {
			continue
		}
		if first == nil || cmp.Or(cmp.Compare(standing, StandingOf(first.Status.Conditions, first.Generation)), Older(p, first)) < 0 {
			first = p
		}
	}
	return first
}

func metadata(o metav1.Object) manifest.Metadata {
	return manifest.Metadata{Name: o.GetName(), Namespace: o.GetNamespace()}
}

// Project converts p to the proxy's type.
func Project(p *v1alpha1.Project) manifest.Project {
	return manifest.Project{Metadata: metadata(p), Spec: p.Spec}
}

// Credential converts c to the proxy's type.
func Credential(c *v1alpha1.Credential) manifest.Credential {
	return manifest.Credential{Metadata: metadata(c), Spec: c.Spec}
}

// Endpoint converts e to the proxy's type.
func Endpoint(e *v1alpha1.ProxyEndpoint) manifest.ProxyEndpoint {
	return manifest.ProxyEndpoint{Metadata: metadata(e), Spec: e.Spec}
}

// ValueName returns the key under which the Secret for the proxy holds the value of a Credential: UID_SECRET_KEY. By the
// UID, a later Credential of the same name never gets this value. By the reference, a changed Credential gets no value before
// the operator has seen it. ok reports whether Kubernetes allows a key of that length.
func ValueName(credential metav1.Object, ref resource.SecretKeyRef) (name string, ok bool) {
	name = string(credential.GetUID()) + "_" + ref.Name + "_" + ref.Key
	return name, len(name) <= validation.DNS1123SubdomainMaxLength
}
