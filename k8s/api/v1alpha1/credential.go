package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CredentialPlace is a part of a request that may hold a credential's value.
//
// +kubebuilder:validation:Enum=header;url;body
type CredentialPlace string

// The parts of a request.
const (
	InHeader CredentialPlace = "header"
	InURL    CredentialPlace = "url"
	InBody   CredentialPlace = "body"
)

// CredentialSpec is the desired state of a credential: a value, and the requests that it may be used for.
//
// +kubebuilder:validation:XValidation:rule="!has(self.headers) || size(self.headers) == 0 || !has(self.places) || size(self.places) == 0 || 'header' in self.places",message="headers has no meaning, because places has no header"
type CredentialSpec struct {
	// project is the id of the project whose endpoints may use the credential. It is immutable.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._~-]*$')",message="project has letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo",messageExpression="'project is ' + self + '; allowed: letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="project is immutable: make another Credential for another project"
	Project string `json:"project"`

	// environment is the environment whose endpoints may use it, such as prod.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\x00]+$`
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 256",message="environment has 1 to 256 bytes of UTF-8"
	Environment string `json:"environment"`

	// id is the id in placeholders such as {{ cred_stripe }}: cred_ and 1 to 64 letters, digits, _ or -. It must be
	// unique among the namespace's Credentials of the same project and environment. Of two with the same id, the older
	// one is in force. An endpoint uses the Credential of its own namespace. If there is none, it uses one of another
	// namespace that is granted to it.
	//
	// +required
	// +kubebuilder:validation:MaxLength=69
	// +kubebuilder:validation:XValidation:rule="self.matches('^cred_[A-Za-z0-9_-]{1,64}$')",message="id is cred_ and 1 to 64 letters, digits, _ or -"
	ID string `json:"id"`

	// valueFrom refers to the value.
	//
	// +required
	ValueFrom CredentialValueSource `json:"valueFrom"`

	// destinations restrict the targets further than the endpoint does. None: no further restriction.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:XValidation:rule="!has(self.pattern) || self.pattern.contains(r'\\Q') || !self.pattern.matches(r'^((\\\\[^/]|\\[[^\\]]*\\]|[^/\\\\\\[])*://)?(\\\\[^/]|\\[[^\\]]*\\]|[^/\\\\\\[])*[.]')",message="the host in a pattern has to match no slash, or the pattern allows other hosts too: write it without . for any character, such as https://[^/]+\\.example\\.com/.*"
	Destinations []Rule `json:"destinations,omitempty"`

	// places restrict the parts of a request that may hold the value: header, url, body. None: any.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	Places []CredentialPlace `json:"places,omitempty"`

	// headers restrict the headers that may hold the value, such as Authorization. None: any. With headers and without
	// places, no other part of a request may hold it.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[!#$%&'*+.^_|~0-9A-Za-z-]+$`
	Headers []string `json:"headers,omitempty"`

	// allowedNamespaces are further namespaces whose ProxyEndpoints may use the credential; "*" for all.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty"`
}

// CredentialValueSource refers to a credential's value.
type CredentialValueSource struct {
	// secretKeyRef names a key of a Secret in the same namespace.
	//
	// +required
	SecretKeyRef SecretKeyRef `json:"secretKeyRef"`
}

// SecretKeyRef names a key of a Secret in the same namespace.
type SecretKeyRef struct {
	// name is the Secret's name.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// key is a key of the Secret's data. Its value has 1 to 16384 bytes. If the endpoint scrubs answers, it needs at least
	// 8 bytes.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// CredentialStatus is the observed state of a credential. It never contains the value.
type CredentialStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the object's conditions: Ready, with a reason of Valid, Invalid, SecretNotFound, SecretKeyNotFound,
	// SecretValueInvalid, Conflict, NotDeclared or NotGranted.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Credential is a value that the credential proxy inserts into requests to third parties, and the requests that may use
// it. A Secret holds the value.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=lcred,categories=lectern
// +kubebuilder:selectablefield:JSONPath=`.spec.project`
// +kubebuilder:selectablefield:JSONPath=`.spec.environment`
// +kubebuilder:selectablefield:JSONPath=`.spec.id`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether endpoints can use the credential"
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.project`,description="The id of the project whose endpoints may use it"
// +kubebuilder:printcolumn:name="Environment",type=string,JSONPath=`.spec.environment`,description="The environment whose endpoints may use it"
// +kubebuilder:printcolumn:name="ID",type=string,JSONPath=`.spec.id`,description="The id in placeholders"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the object is ready or not"
// +kubebuilder:printcolumn:name="Secret",type=string,priority=1,JSONPath=`.spec.valueFrom.secretKeyRef.name`,description="The Secret that holds the value"
type Credential struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard object metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	//
	// +required
	Spec CredentialSpec `json:"spec"`

	// status is the observed state, written by the operator.
	//
	// +optional
	Status CredentialStatus `json:"status,omitzero"`
}

// CredentialList is a list of Credentials.
//
// +kubebuilder:object:root=true
type CredentialList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Credential `json:"items"`
}
