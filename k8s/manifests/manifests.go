// Package manifests converts objects of the API to the types of the credential proxy. So the operator and the proxy
// validate objects by the same code. The package also decides which Project declares a project.
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

// Older compares two objects by creation time, and objects of the same second by namespace and name. The result is
// negative if a comes first, and positive if b does.
func Older(a, b metav1.Object) int {
	return cmp.Or(
		a.GetCreationTimestamp().Time.Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()),
		cmp.Compare(a.GetName(), b.GetName()),
	)
}

// Standing ranks a Project among the Projects that name the same project: a Project with a smaller Standing comes
// first.
type Standing int

// The standings of a Project. A Conflicting Project never declares its project.
const (
	Accepted    Standing = iota // the operator has decided that this Project declares its project
	Undecided                   // the operator has not decided about this generation
	Conflicting                 // the operator has decided, for this generation, for another Project
)

// StandingOf returns a Project's standing from its conditions and its generation. A Project is Undecided without the
// condition Accepted, or if the condition is False for an earlier generation.
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

// Declaring returns the Project that declares the project, of several Projects that name the project. The result is the
// oldest accepted Project, or else the oldest undecided Project, or else nil. So a conflicting Project does not take
// over when the accepted Project is deleted.
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

// Project converts p to the type from which the credential proxy builds its policy.
func Project(p *v1alpha1.Project) manifest.Project {
	return manifest.Project{Metadata: metadata(p), Spec: p.Spec}
}

// Credential converts c to the type from which the credential proxy builds its policy. The result refers to the Secret
// with the value, and does not contain the value. For a fetched Credential, this is the Secret of [ValueRef].
func Credential(c *v1alpha1.Credential) manifest.Credential {
	spec := c.Spec
	spec.ValueFrom = resource.ValueSource{SecretKeyRef: ValueRef(c.Name, c.Spec.ValueFrom)}
	return manifest.Credential{Metadata: metadata(c), Spec: spec}
}

// AccessToken is the key of an access token in the Secret that the operator keeps for a fetched Credential.
const AccessToken = "access-token"

// ValueRef returns the Secret and the key in it that hold the value of the Credential with the given name. For a
// fetched Credential, the operator keeps the token in a Secret of its own.
func ValueRef(name string, from resource.ValueSource) resource.SecretKeyRef {
	if from.OAuth2 == nil {
		return from.SecretKeyRef
	}
	return resource.SecretKeyRef{Name: name + "-oauth2", Key: AccessToken}
}

// Endpoint converts e to the type from which the credential proxy builds its policy.
func Endpoint(e *v1alpha1.ProxyEndpoint) manifest.ProxyEndpoint {
	return manifest.ProxyEndpoint{Metadata: metadata(e), Spec: e.Spec}
}

// ValueName returns the key under which the Secret for the proxy holds the value of a Credential: UID_SECRET_KEY.
// Because of the UID, a later Credential of the same name never gets the value of an earlier Credential. If ref
// changes, the Credential gets no value before the operator has seen the change. The result ok reports whether
// Kubernetes allows a key of that length.
func ValueName(credential metav1.Object, ref resource.SecretKeyRef) (name string, ok bool) {
	name = string(credential.GetUID()) + "_" + ref.Name + "_" + ref.Key
	return name, len(name) <= validation.DNS1123SubdomainMaxLength
}
