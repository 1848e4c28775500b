package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lectern-dev/lectern/proxy/resource"
)

// CredentialStatus is the observed state of a credential. The status never contains the credential's value.
type CredentialStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the object's conditions: Ready, with a reason of Valid, Invalid, SecretNotFound, SecretKeyNotFound,
	// SecretValueInvalid, SecretNotOwned, SecretRefused, Fetching, FetchFailing, FetchDisabled, Conflict, NotDeclared or
	// NotGranted.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Credential is a value that the credential proxy inserts into requests to third parties, and the requests that may use
// the value. A Secret holds the value.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=lcred,categories=lectern
// +kubebuilder:selectablefield:JSONPath=`.spec.projectId`
// +kubebuilder:selectablefield:JSONPath=`.spec.environment`
// +kubebuilder:selectablefield:JSONPath=`.spec.id`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether endpoints can use the credential"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the object is ready or not"
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.projectId`,description="The id of the project whose endpoints may use it"
// +kubebuilder:printcolumn:name="Environment",type=string,JSONPath=`.spec.environment`,description="The environment whose endpoints may use it"
// +kubebuilder:printcolumn:name="ID",type=string,JSONPath=`.spec.id`,description="The id in placeholders"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Secret",type=string,priority=1,JSONPath=`.spec.valueFrom.secretKeyRef.name`,description="The Secret that holds the value"
// +kubebuilder:printcolumn:name="Token URL",type=string,priority=1,JSONPath=`.spec.valueFrom.oauth2.tokenURL`,description="Where the operator fetches the value"
type Credential struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard object metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	//
	// +required
	Spec resource.CredentialSpec `json:"spec"`

	// status is the observed state, written by the operator.
	//
	// +optional
	Status CredentialStatus `json:"status,omitzero"`
}

// CredentialList is the answer of the API server to a request that lists Credentials.
//
// +kubebuilder:object:root=true
type CredentialList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Credential `json:"items"`
}
