package v1alpha1

// ConditionAccepted is the type of a Project's condition that reports whether the object declares its project. A Project
// with True keeps the project until it is deleted. One with False stays in conflict, even if the other Project is
// deleted, until its spec changes. So nobody can take over a project by waiting.
const ConditionAccepted = "Accepted"

// ConditionReady is the type of the condition that every kind has. It is True when the desired state is reached; kubectl
// wait --for=condition=Ready waits for it. Its observedGeneration is the generation of the spec that it describes.
const ConditionReady = "Ready"

// Reasons of the condition Ready that every kind may have. This file has all reasons of all kinds. The set is closed, and
// a reason keeps its meaning.
const (
	// ReasonNotGranted: the object's project belongs to another namespace, whose Project does not list this one in
	// allowedNamespaces.
	ReasonNotGranted = "NotGranted"
	// ReasonNotDeclared: no Project declares the object's project, and one is required (UNDECLARED_PROJECTS).
	ReasonNotDeclared = "NotDeclared"
	// ReasonConflict: an earlier object has the same project id, or the same credential id in the same namespace, project
	// and environment. The earlier one is in force.
	ReasonConflict = "Conflict"
	// ReasonInvalid: a field's value is not allowed; the message names the field and what is allowed.
	ReasonInvalid = "Invalid"
	// ReasonDeleting: the object is being deleted, and its clean-up has not succeeded yet.
	ReasonDeleting = "Deleting"
)

// Reasons of a Project's condition Ready.
const (
	// ReasonDeclared, with True, of the condition Accepted: the object declares its project.
	ReasonDeclared = "Declared"
	// ReasonSynced, with True: the region service knows the project's title and region.
	ReasonSynced = "Synced"
	// ReasonRegionUnavailable: the region service is unreachable, or cannot answer now. The operator retries.
	ReasonRegionUnavailable = "RegionUnavailable"
	// ReasonRegionRefused: the region service refuses the project; the message says why.
	ReasonRegionRefused = "RegionRefused"
)

// Reasons of an APIKey's condition Ready.
const (
	// ReasonIssued, with True: the Secret holds a valid key.
	ReasonIssued = "Issued"
	// ReasonPending: the key is being made.
	ReasonPending = "Pending"
	// ReasonSecretNotOwned: a Secret of that name exists, and the operator did not create it. It stays unchanged.
	ReasonSecretNotOwned = "SecretNotOwned"
	// ReasonSecretRefused: the Secret cannot be read or written, because of a right, a quota or because it is immutable. The operator
	// retries.
	ReasonSecretRefused = "SecretRefused"
	// ReasonDatabaseUnavailable: the database of the keys is unreachable. The operator retries. Issued keys stay valid.
	ReasonDatabaseUnavailable = "DatabaseUnavailable"
	// ReasonExpired: expiresAt has passed, and no key of the object is valid any more.
	ReasonExpired = "Expired"
)

// Reasons of the condition Ready of a Credential and of a ProxyEndpoint.
const (
	// ReasonValid, with True: this version of the object is in force.
	ReasonValid = "Valid"
	// ReasonSecretNotFound: there is no Secret of that name in the Credential's namespace.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretKeyNotFound: the Secret has no such key.
	ReasonSecretKeyNotFound = "SecretKeyNotFound"
	// ReasonSecretValueInvalid: the value is empty or too long.
	ReasonSecretValueInvalid = "SecretValueInvalid"
	// ReasonCredentialNotFound: the endpoint lists an id for which there is no Credential in its project and environment
	// that its namespace may use. The proxy refuses requests with that id, and serves others.
	ReasonCredentialNotFound = "CredentialNotFound"
	// ReasonCredentialNotReady: a Credential that the endpoint lists is not in force. The proxy refuses requests with it,
	// and serves others.
	ReasonCredentialNotReady = "CredentialNotReady"
)

// Labels, annotations and finalizers of the operator.
const (
	// LabelManaged, with the value "true", marks objects that the operator creates.
	LabelManaged = Group + "/managed"
	// AnnotationRotate on an APIKey asks for a new key at once. Each new value asks for one more.
	AnnotationRotate = Group + "/rotate"
	// AnnotationRevokeKeys on an APIKey lists the ids of its leaked keys, separated by commas. The operator revokes them at
	// once, without overlap. It replaces the current key first if that is listed.
	AnnotationRevokeKeys = Group + "/revoke-keys"
	// FinalizerAPIKey keeps a deleted APIKey until its keys are revoked.
	FinalizerAPIKey = Group + "/revoke"
)
