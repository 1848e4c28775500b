package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lectern-dev/lectern/proxy/resource"
)

// ProxyEndpointStatus is the observed state of an endpoint: whether the current version of the object is in force.
type ProxyEndpointStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the object's conditions: Ready, with a reason of Valid, Invalid, CredentialNotFound,
	// CredentialNotReady, NotDeclared or NotGranted.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProxyEndpoint allows requests through the credential proxy, for one project and environment: their callers, targets,
// methods and credentials. One ProxyEndpoint alone must allow everything about a request.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=lpe,categories=lectern
// +kubebuilder:selectablefield:JSONPath=`.spec.projectId`
// +kubebuilder:selectablefield:JSONPath=`.spec.environment`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether this version of the object is in force"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the object is ready or not"
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.projectId`,description="X-Project-ID of requests"
// +kubebuilder:printcolumn:name="Environment",type=string,JSONPath=`.spec.environment`,description="X-Environment of requests"
// +kubebuilder:printcolumn:name="Access",type=string,JSONPath=`.spec.access`,description="How callers are authenticated"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Credentials",type=string,priority=1,JSONPath=`.spec.credentials`,description="The ids of credentials that requests may use"
type ProxyEndpoint struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard object metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	//
	// +required
	Spec resource.ProxyEndpointSpec `json:"spec"`

	// status is the observed state, written by the operator.
	//
	// +optional
	Status ProxyEndpointStatus `json:"status,omitzero"`
}

// ProxyEndpointList is the answer of the API server to a request that lists ProxyEndpoints.
//
// +kubebuilder:object:root=true
type ProxyEndpointList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []ProxyEndpoint `json:"items"`
}
