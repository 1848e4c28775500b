package v1alpha1

// ConditionAccepted is the type of a Project's condition that reports whether the object declares its project. A
// Project with the status True keeps the project until the Project is deleted. A Project with the status False stays in
// conflict until its spec changes, even if the other Project is deleted. So nobody can take over a project by waiting.
const ConditionAccepted = "Accepted"

// ConditionReady is the type of the condition that every kind has. The condition is True when the desired state is
// reached; kubectl wait --for=condition=Ready waits for this status. The condition's observedGeneration is the
// generation of the spec that the condition describes.
const ConditionReady = "Ready"

// Reasons of the condition Ready that are not specific to one kind. This file has all reasons of all kinds. The set is
// closed, and a reason keeps its meaning.
const (
	// ReasonNotGranted: the object's project belongs to another namespace, whose Project does not list the object's
	// namespace in allowedNamespaces.
	ReasonNotGranted = "NotGranted"
	// ReasonNotDeclared: no Project declares the object's project, and UNDECLARED_PROJECTS does not allow such an
	// object.
	ReasonNotDeclared = "NotDeclared"
	// ReasonConflict: another Project has declared the same project, or an older Credential of the namespace has the
	// same id in the same project and environment. Of an APIKey: the project has another active grant for its identity.
	ReasonConflict = "Conflict"
	// ReasonInvalid: the value of a field is not allowed. The message names the field and the allowed values.
	ReasonInvalid = "Invalid"
	// ReasonDeleting: the object is being deleted, and waits for a finalizer of another program. Of an APIKey: no key works.
	ReasonDeleting = "Deleting"
)

// Reasons of the condition Ready that only a Project has.
const (
	// ReasonDeclared: the object declares its project. Accepted has this reason with True, and so has Ready if the
	// operator has no region service.
	ReasonDeclared = "Declared"
	// ReasonSynced, with True: the region service knows the project's title and region.
	ReasonSynced = "Synced"
	// ReasonRegionUnavailable: the region service is unreachable, cannot answer now, or refuses the operator's key. The
	// operator retries.
	ReasonRegionUnavailable = "RegionUnavailable"
	// ReasonRegionRefused: the region service refuses the project. The message has the answer of the service.
	ReasonRegionRefused = "RegionRefused"
)

// Reasons of an APIKey's condition Ready.
const (
	// ReasonIssued, with True: the Secret holds a valid key, or the identity is granted.
	ReasonIssued = "Issued"
	// ReasonPending: the operator has not put a key into the Secret yet, or has not granted the identity yet.
	ReasonPending = "Pending"
	// ReasonServiceAccountNotFound: the ServiceAccount of identity.serviceAccountRef does not exist. The operator grants
	// the identity as soon as the ServiceAccount exists.
	ReasonServiceAccountNotFound = "ServiceAccountNotFound"
	// ReasonSecretNotOwned, also of a fetched Credential: the Secret that the operator would write exists, and the
	// operator did not create it for the object. The operator leaves the Secret unchanged.
	ReasonSecretNotOwned = "SecretNotOwned"
	// ReasonSecretRefused, also of a Credential: the operator cannot read or write the Secret, for example because of a
	// right, a quota or an immutable Secret. The operator retries.
	ReasonSecretRefused = "SecretRefused"
	// ReasonDatabaseUnavailable: the database of the keys cannot be used now. The operator retries, and revokes no key
	// for this reason.
	ReasonDatabaseUnavailable = "DatabaseUnavailable"
	// ReasonExpired: expiresAt has passed, and no key of the object is valid any more.
	ReasonExpired = "Expired"
)

// Reasons of the condition Ready of a Credential and of a ProxyEndpoint.
const (
	// ReasonValid, with True: this generation of the object is in force.
	ReasonValid = "Valid"
	// ReasonSecretNotFound: the Credential's namespace has no Secret with a name that the Credential refers to.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretKeyNotFound: a Secret that the Credential refers to has no key with the given name.
	ReasonSecretKeyNotFound = "SecretKeyNotFound"
	// ReasonSecretValueInvalid: the Credential's value is empty or too long, or the proxy cannot get or use the value.
	// The message has the cause.
	ReasonSecretValueInvalid = "SecretValueInvalid"
	// ReasonFetching: the operator has no valid token for the Credential yet, and its last request did not fail.
	ReasonFetching = "Fetching"
	// ReasonFetchFailing: the operator could not fetch the next token; the message says why. With True, the current
	// token is still valid. With False, there is no valid token. The operator retries.
	ReasonFetchFailing = "FetchFailing"
	// ReasonFetchDisabled: the operator does not fetch tokens (FETCH_CREDENTIALS).
	ReasonFetchDisabled = "FetchDisabled"
	// ReasonCredentialNotFound: the endpoint lists an id for which its project and environment have no Credential that
	// its namespace may use. The proxy refuses requests with that id, and serves other requests.
	ReasonCredentialNotFound = "CredentialNotFound"
	// ReasonCredentialNotReady: a Credential that the endpoint lists is not in force. The proxy refuses requests that
	// use the Credential, and serves other requests.
	ReasonCredentialNotReady = "CredentialNotReady"
)

// Labels, annotations and finalizers of the operator.
const (
	// LabelManaged, with the value "true", marks the Secrets that the operator creates or fills.
	LabelManaged = Group + "/managed"
	// AnnotationRotate on an APIKey asks for a new key at once. Each new value of the annotation asks for another key.
	AnnotationRotate = Group + "/rotate"
	// AnnotationFetch on a fetched Credential asks for a new token at once. Each new value of the annotation asks for another.
	AnnotationFetch = Group + "/fetch"
	// AnnotationRevokeKeys on an APIKey lists the ids of its leaked keys, separated by commas. The operator revokes the
	// listed keys without overlap. If the current key is listed, the operator replaces it first, if it can.
	AnnotationRevokeKeys = Group + "/revoke-keys"
	// FinalizerAPIKey is the finalizer of APIKeys of version 0.1.0. Later operators remove the finalizer, so that no object
	// waits for an operator that is gone.
	FinalizerAPIKey = Group + "/revoke"
)
