package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Scope is one thing that an API key may be used for.
//
// +kubebuilder:validation:Enum="entries:read";"embeddables:read";"experiments:read";"proxy:use"
type Scope string

// APIKeySpec is what is wanted of an API key.
//
// +kubebuilder:validation:XValidation:rule="(has(self.secret) && has(self.secret.name)) == (has(oldSelf.secret) && has(oldSelf.secret.name)) && (!(has(self.secret) && has(self.secret.name)) || self.secret.name == oldSelf.secret.name)",message="secret.name is immutable: make another APIKey for another Secret"
type APIKeySpec struct {
	// project is the id of the project that the key is for. It never changes.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._~-]*$')",message="project has letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo",messageExpression="'project is ' + self + '; allowed: letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="project is immutable: make another APIKey for another project"
	Project string `json:"project"`

	// scopes are what the key may be used for: entries:read, embeddables:read, experiments:read, proxy:use. Not
	// set: reading all, and not the proxy. Other scopes hold for the keys that are there, within a second.
	//
	// +optional
	// +listType=set
	// +kubebuilder:default={"entries:read","embeddables:read","experiments:read"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Scopes []Scope `json:"scopes,omitempty"`

	// expiresAt is the moment from which no key of this object works. Not set: never.
	//
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// rate is how many requests a second the key may make, up to a million. Not set: the services' default (RATE_LIMIT).
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Rate int32 `json:"rate,omitempty"`

	// rotation replaces the key by schedule. Not set: it is replaced only when that is asked for, by the
	// annotation lectern.dev/rotate, or when its Secret is deleted or edited.
	//
	// +optional
	Rotation *APIKeyRotation `json:"rotation,omitempty"`

	// secret says where the key is put.
	//
	// +optional
	// +kubebuilder:default={}
	Secret APIKeySecret `json:"secret,omitzero"`

	// url is the address of the API that is put beside the key. Not set: the operator's PUBLIC_URL, and nothing
	// when that is not set either.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	URL string `json:"url,omitempty"`
}

// APIKeyRotation says how often a key is replaced.
//
// +kubebuilder:validation:XValidation:rule="!self.every.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') || !self.overlap.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') || duration(self.overlap) < duration(self.every)",message="overlap is shorter than every"
type APIKeyRotation struct {
	// every is how long a key is the one in the Secret, from 1m to 87600h (ten years): "720h".
	//
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('87600h')",message="every is a duration from 1m to 87600h in h, m, s or ms, such as 720h for 30 days",messageExpression="'every is ' + self + '; allowed: a duration from 1m to 87600h in h, m, s or ms, such as 720h for 30 days'"
	Every metav1.Duration `json:"every"`

	// overlap is how long the key before it goes on working once it is replaced, from 0s to just under every.
	// It is the time that consumers have to read the Secret again.
	//
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) <= duration('87600h')",message="overlap is a duration from 0s to 87600h in h, m, s or ms, such as 24h for a day",messageExpression="'overlap is ' + self + '; allowed: a duration from 0s to 87600h in h, m, s or ms, such as 24h for a day'"
	Overlap metav1.Duration `json:"overlap,omitempty"`
}

// APIKeySecret says which Secret a key is put into.
type APIKeySecret struct {
	// name is the Secret's name, in the APIKey's namespace. Not set: the APIKey's own name. It never changes. A
	// Secret of that name that somebody else made is left as it is.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// keys are the names under which the Secret holds its values.
	//
	// +optional
	// +kubebuilder:default={apiKey: "api-key", projectId: "project-id", url: "url"}
	Keys APIKeySecretKeys `json:"keys,omitzero"`
}

// APIKeySecretKeys name the values in the Secret of an APIKey.
//
// +kubebuilder:validation:XValidation:rule="self.apiKey != self.projectId && self.apiKey != self.url && self.projectId != self.url",message="apiKey, projectId and url are three different names"
type APIKeySecretKeys struct {
	// apiKey holds the key.
	//
	// +optional
	// +kubebuilder:default=api-key
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	APIKey string `json:"apiKey,omitempty"`

	// projectId holds the project's id.
	//
	// +optional
	// +kubebuilder:default=project-id
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	ProjectID string `json:"projectId,omitempty"`

	// url holds the address of the API, where there is one.
	//
	// +optional
	// +kubebuilder:default=url
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	URL string `json:"url,omitempty"`
}

// APIKeyStatus is what is so of an API key. The key itself stands in its Secret and nowhere else.
type APIKeyStatus struct {
	// observedGeneration is the metadata.generation that this status speaks of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// keyId names the key that the Secret holds: as it stands in logs and in lectern keys list. It is not the
	// key.
	//
	// +optional
	KeyID string `json:"keyId,omitempty"`

	// previousKeyIds name the keys before it that still work, until their overlap is over.
	//
	// +optional
	// +listType=atomic
	PreviousKeyIDs []string `json:"previousKeyIds,omitempty"`

	// secretName is the name of the Secret.
	//
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// issuedAt is when the key was made.
	//
	// +optional
	IssuedAt *metav1.Time `json:"issuedAt,omitempty"`

	// expiresAt is when the key ceases to work. Not set: never.
	//
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// nextRotationAt is when the key will be replaced by schedule. Not set: it will not.
	//
	// +optional
	NextRotationAt *metav1.Time `json:"nextRotationAt,omitempty"`

	// lastUsedAt is when the key was used last, refreshed a few times a day. Not set: never, as far as is known.
	//
	// +optional
	LastUsedAt *metav1.Time `json:"lastUsedAt,omitempty"`

	// rotateHandled is the value of the annotation lectern.dev/rotate that was handled last.
	//
	// +optional
	RotateHandled string `json:"rotateHandled,omitempty"`

	// conditions are what is known of the object: Ready, with a reason of Issued, Pending, SecretNotOwned,
	// SecretRefused, DatabaseUnavailable, Expired, NotDeclared, NotGranted, Invalid or Deleting.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// APIKey is a key for reading one project's data. The operator makes the key, keeps it in a Secret, replaces it
// by schedule, and revokes it when the object goes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=apikeys,singular=apikey,shortName=lkey,categories=lectern
// +kubebuilder:selectablefield:JSONPath=`.spec.project`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the Secret holds a key that works"
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.project`,description="The id of the project that the key is for"
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expiresAt`,description="When the key ceases to work"
// +kubebuilder:printcolumn:name="Next rotation",type=string,JSONPath=`.status.nextRotationAt`,description="When the key will be replaced"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is ready, or is not"
// +kubebuilder:printcolumn:name="Secret",type=string,priority=1,JSONPath=`.status.secretName`,description="The Secret that holds the key"
// +kubebuilder:printcolumn:name="Key ID",type=string,priority=1,JSONPath=`.status.keyId`,description="Names the key in logs and lists"
// +kubebuilder:printcolumn:name="Last used",type=string,priority=1,JSONPath=`.status.lastUsedAt`,description="When the key was used last"
type APIKey struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard object metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is wanted.
	//
	// +required
	Spec APIKeySpec `json:"spec"`

	// status is what is so, written by the operator.
	//
	// +optional
	Status APIKeyStatus `json:"status,omitzero"`
}

// APIKeyList is a list of APIKeys.
//
// +kubebuilder:object:root=true
type APIKeyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []APIKey `json:"items"`
}
