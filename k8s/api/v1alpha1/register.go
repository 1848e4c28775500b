package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of all kinds of Lectern.
const Group = "lectern.dev"

// SchemeGroupVersion is the API group and version of this package's kinds: lectern.dev/v1alpha1.
var SchemeGroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme registers the kinds of this package and their lists with s. A client needs such a scheme to read and
// write the objects.
func AddToScheme(s *runtime.Scheme) error {
	builder := runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
		s.AddKnownTypes(SchemeGroupVersion,
			&Project{}, &ProjectList{},
			&APIKey{}, &APIKeyList{},
			&Credential{}, &CredentialList{},
			&ProxyEndpoint{}, &ProxyEndpointList{},
		)
		metav1.AddToGroupVersion(s, SchemeGroupVersion)
		return nil
	})
	return builder.AddToScheme(s)
}
