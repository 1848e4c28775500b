package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Scope is a permission of an API key: to read entries, embeddables or experiments, or to use the credential proxy.
//
// +kubebuilder:validation:Enum="entries:read";"embeddables:read";"experiments:read";"proxy:use"
type Scope string

// APIKeySpec is the desired state of an API key: its project and permissions, when it ends, and the Secret that
// receives it. With identity, it is the desired state of a grant, which has no key and no Secret.
//
// +kubebuilder:validation:XValidation:rule="(has(self.secret) && has(self.secret.name)) == (has(oldSelf.secret) && has(oldSelf.secret.name)) && (!(has(self.secret) && has(self.secret.name)) || self.secret.name == oldSelf.secret.name)",message="secret.name is immutable: make another APIKey for another Secret"
// +kubebuilder:validation:XValidation:rule="has(self.identity) == has(oldSelf.identity) && (!has(self.identity) || self.identity == oldSelf.identity)",message="identity is immutable: make another APIKey for another identity, or for a key"
// +kubebuilder:validation:XValidation:rule="!has(self.identity) || !has(self.rotation) && !has(self.url) && !has(self.secret.name) && self.secret.keys.apiKey == 'api-key' && self.secret.keys.projectId == 'project-id' && self.secret.keys.url == 'url'",message="rotation, secret and url have no meaning with identity, which has no key and no Secret: remove them"
type APIKeySpec struct {
	// projectId is the id of the key's project. It is immutable.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._~-]*$')",message="projectId has letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo",messageExpression="'projectId is ' + self + '; allowed: letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="projectId is immutable: make another APIKey for another project"
	ProjectID string `json:"projectId"`

	// identity is the identity that gets the permissions in place of a key. Clients prove the identity by tokens of its
	// issuer, and no Secret is written. A project has at most one active grant for an identity. The field is immutable.
	// Not set: the operator makes a key.
	//
	// +optional
	Identity *APIKeyIdentity `json:"identity,omitempty"`

	// scopes are the permissions of the key: entries:read, embeddables:read, experiments:read, proxy:use. Not set: all
	// except proxy:use. A change also applies to the existing keys of this object, within a second.
	//
	// +optional
	// +listType=set
	// +kubebuilder:default={"entries:read","embeddables:read","experiments:read"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Scopes []Scope `json:"scopes,omitempty"`

	// expiresAt is the time from which no key of this object is valid. Not set: never.
	//
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// rate limits the key's requests a second, up to a million. Not set: the services' default (RATE_LIMIT).
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Rate int32 `json:"rate,omitempty"`

	// rotation replaces the key on a schedule. Not set: the operator replaces it only if the annotation
	// lectern.dev/rotate asks for that, or if its Secret is deleted or edited.
	//
	// +optional
	Rotation *APIKeyRotation `json:"rotation,omitempty"`

	// secret is the Secret that receives the key.
	//
	// +optional
	// +kubebuilder:default={}
	Secret APIKeySecret `json:"secret,omitzero"`

	// url is the address of the API, which the Secret holds in addition to the key. Not set: the operator's PUBLIC_URL, or no
	// address if that is not set either.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	URL string `json:"url,omitempty"`
}

// APIKeyIdentity is the identity that a token proves: an issuer with a subject or a group, or a ServiceAccount of the
// operator's cluster.
//
// +kubebuilder:validation:XValidation:rule="has(self.serviceAccountRef) ? !has(self.issuer) && !has(self.subject) && !has(self.group) : has(self.issuer) && has(self.subject) != has(self.group)",message="identity has exactly one of: issuer and subject; issuer and group; serviceAccountRef"
type APIKeyIdentity struct {
	// issuer is the URL of the tokens' issuer, exactly as in the claim iss and in TOKEN_ISSUERS.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	Issuer string `json:"issuer,omitempty"`

	// subject is the claim sub of the tokens.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Subject string `json:"subject,omitempty"`

	// group is a group in the tokens' claim that TOKEN_ISSUERS names as groupsClaim.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Group string `json:"group,omitempty"`

	// serviceAccountRef is a ServiceAccount, whose pods prove the identity by projected tokens. The issuer is the
	// operator's CLUSTER_ISSUER, and the subject is system:serviceaccount:NAMESPACE:NAME. The grant is for the uid of the
	// account: it ends with the account, and a new account of the same name is granted anew.
	//
	// +optional
	ServiceAccountRef *APIKeyServiceAccountRef `json:"serviceAccountRef,omitempty"`
}

// APIKeyServiceAccountRef names a ServiceAccount, which need not exist yet.
type APIKeyServiceAccountRef struct {
	// name is the name of the ServiceAccount.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// namespace is the namespace of the ServiceAccount. Not set: the namespace of the APIKey.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}

// APIKeyRotation is the schedule by which the operator replaces a key. It also sets how long the previous key stays
// valid.
//
// +kubebuilder:validation:XValidation:rule="!self.every.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') || !self.overlap.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') || duration(self.overlap) < duration(self.every)",message="overlap is shorter than every",messageExpression="'overlap is ' + self.overlap + ' and every is ' + self.every + '; allowed: an overlap shorter than every (not set, overlap is 1h)'"
type APIKeyRotation struct {
	// every is how long a key stays in the Secret until it is replaced, from 1m to 87600h (ten years), such as "720h".
	//
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('87600h')",message="every is a duration from 1m to 87600h in h, m, s or ms, such as 720h for 30 days",messageExpression="'every is ' + self + '; allowed: a duration from 1m to 87600h in h, m, s or ms, such as 720h for 30 days'"
	Every metav1.Duration `json:"every"`

	// overlap is how long the previous key stays valid after its replacement, from 0s to just under every. Consumers
	// must read the Secret again within this time.
	//
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) <= duration('87600h')",message="overlap is a duration from 0s to 87600h in h, m, s or ms, such as 24h for a day",messageExpression="'overlap is ' + self + '; allowed: a duration from 0s to 87600h in h, m, s or ms, such as 24h for a day'"
	Overlap metav1.Duration `json:"overlap,omitempty"`
}

// APIKeySecret names the Secret that receives a key, and the keys of the Secret's data.
type APIKeySecret struct {
	// name is the Secret's name, in the APIKey's namespace. Not set: the APIKey's own name. It is immutable. The
	// operator does not change an existing Secret of that name that it did not create.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// keys are the keys of the Secret's data.
	//
	// +optional
	// +kubebuilder:default={apiKey: "api-key", projectId: "project-id", url: "url"}
	Keys APIKeySecretKeys `json:"keys,omitzero"`
}

// APIKeySecretKeys names the keys of the Secret's data that hold the API key, the project's id and the API's address.
//
// +kubebuilder:validation:XValidation:rule="self.apiKey != self.projectId && self.apiKey != self.url && self.projectId != self.url",message="apiKey, projectId and url are three different names",messageExpression="'apiKey is ' + self.apiKey + ', projectId is ' + self.projectId + ' and url is ' + self.url + '; allowed: three different names'"
type APIKeySecretKeys struct {
	// apiKey is the key of the API key.
	//
	// +optional
	// +kubebuilder:default=api-key
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	APIKey string `json:"apiKey,omitempty"`

	// projectId is the key of the project's id.
	//
	// +optional
	// +kubebuilder:default=project-id
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	ProjectID string `json:"projectId,omitempty"`

	// url is the key of the API's address, if there is an address.
	//
	// +optional
	// +kubebuilder:default=url
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	URL string `json:"url,omitempty"`
}

// APIKeyStatus is the observed state of an API key. Only the Secret contains the key itself.
type APIKeyStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// keyId is the id of the key in the Secret, or of the identity's grant, as in logs and in lectern keys list. It is not
	// the key itself.
	//
	// +optional
	KeyID string `json:"keyId,omitempty"`

	// previousKeyIds are the ids of the previous keys that are still valid, until their overlap ends.
	//
	// +optional
	// +listType=atomic
	PreviousKeyIDs []string `json:"previousKeyIds,omitempty"`

	// secretName is the name of the Secret. Not set: the object has an identity.
	//
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// issuedAt is the time at which the key was made.
	//
	// +optional
	IssuedAt *metav1.Time `json:"issuedAt,omitempty"`

	// expiresAt is the time at which the key expires. Not set: never.
	//
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// nextRotationAt is the time of the next scheduled replacement. Not set: none is scheduled.
	//
	// +optional
	NextRotationAt *metav1.Time `json:"nextRotationAt,omitempty"`

	// lastUsedAt is the time of the last use of the key, refreshed a few times a day. Not set: no use is known.
	//
	// +optional
	LastUsedAt *metav1.Time `json:"lastUsedAt,omitempty"`

	// rotateHandled is the last value of the annotation lectern.dev/rotate that the operator handled.
	//
	// +optional
	RotateHandled string `json:"rotateHandled,omitempty"`

	// conditions are the object's conditions: Ready, with a reason of Issued, Pending, ServiceAccountNotFound, SecretNotOwned, SecretRefused,
	// DatabaseUnavailable, Expired, Conflict, NotDeclared, NotGranted, Invalid or Deleting.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// APIKey is a key for reading one project's data. The operator makes the key, stores it in a Secret, replaces it on
// schedule, and revokes it when the object is deleted. With spec.identity, it grants the same to an identity, without a
// key.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=apikeys,singular=apikey,shortName=lkey,categories=lectern
// +kubebuilder:selectablefield:JSONPath=`.spec.projectId`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the Secret holds a valid key, or the identity is granted"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the object is ready or not"
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.projectId`,description="The id of the key's project"
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expiresAt`,description="When the key expires"
// +kubebuilder:printcolumn:name="Next rotation",type=string,JSONPath=`.status.nextRotationAt`,description="When the operator will replace the key"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Secret",type=string,priority=1,JSONPath=`.status.secretName`,description="The Secret that holds the key"
// +kubebuilder:printcolumn:name="Key ID",type=string,priority=1,JSONPath=`.status.keyId`,description="The id of the key in logs and lists"
// +kubebuilder:printcolumn:name="Last used",type=string,priority=1,JSONPath=`.status.lastUsedAt`,description="When the key was used last"
type APIKey struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard object metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	//
	// +required
	Spec APIKeySpec `json:"spec"`

	// status is the observed state, written by the operator.
	//
	// +optional
	Status APIKeyStatus `json:"status,omitzero"`
}

// APIKeyList is the answer of the API server to a request that lists APIKeys.
//
// +kubebuilder:object:root=true
type APIKeyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []APIKey `json:"items"`
}
