package v1alpha1

// ConditionAccepted is the type of a Project's condition that says whether the object declares its project. A Project
// with True keeps the project until it is gone. One with False stays out, also when the other Project goes, until its
// spec is another than the one that observedGeneration names: nobody takes a project over by waiting.
const ConditionAccepted = "Accepted"

// ConditionReady is the type of the condition that every kind has. It is True when what the object asks
// for is so; kubectl wait --for=condition=Ready waits for it. Its observedGeneration tells which spec it
// speaks of.
const ConditionReady = "Ready"

// Reasons of the condition Ready that every kind may have. All reasons of all kinds stand in this file:
// the set is closed, and a reason keeps its meaning.
const (
	// ReasonNotGranted: the object's project belongs to another namespace, whose Project does not list this one in
	// allowedNamespaces.
	ReasonNotGranted = "NotGranted"
	// ReasonNotDeclared: no Project declares the object's project, and one is required (UNDECLARED_PROJECTS).
	ReasonNotDeclared = "NotDeclared"
	// ReasonConflict: an object before this one claims the same: the same project id, or, in the same namespace,
	// the same credential id in the same project and environment. The one before is in force.
	ReasonConflict = "Conflict"
	// ReasonInvalid: a field's value is not allowed; the message names the field and what is allowed.
	ReasonInvalid = "Invalid"
	// ReasonDeleting: the object is being deleted, and what is left to do has not succeeded yet.
	ReasonDeleting = "Deleting"
)

// Reasons of a Project's condition Ready.
const (
	// ReasonDeclared, with True, of the condition Accepted: the object declares its project.
	ReasonDeclared = "Declared"
	// ReasonSynced, with True: the region service knows the project's title and region.
	ReasonSynced = "Synced"
	// ReasonRegionUnavailable: the region service is out of reach, or can not answer now. It is tried again.
	ReasonRegionUnavailable = "RegionUnavailable"
	// ReasonRegionRefused: the region service does not take the project; the message says why.
	ReasonRegionRefused = "RegionRefused"
)

// Reasons of an APIKey's condition Ready.
const (
	// ReasonIssued, with True: the Secret holds a key that works.
	ReasonIssued = "Issued"
	// ReasonPending: the key is being made.
	ReasonPending = "Pending"
	// ReasonSecretNotOwned: a Secret of that name exists and belongs to somebody else. It is left as it is.
	ReasonSecretNotOwned = "SecretNotOwned"
	// ReasonSecretRefused: the Secret can not be written, as by a quota, or because it is immutable. It is tried
	// again.
	ReasonSecretRefused = "SecretRefused"
	// ReasonDatabaseUnavailable: the database of the keys is out of reach. It is tried again; keys that were
	// issued go on working.
	ReasonDatabaseUnavailable = "DatabaseUnavailable"
	// ReasonExpired: expiresAt has passed, and no key of the object works any more.
	ReasonExpired = "Expired"
)

// Reasons of the condition Ready of a Credential and of a ProxyEndpoint.
const (
	// ReasonValid, with True: it is in force as it stands.
	ReasonValid = "Valid"
	// ReasonSecretNotFound: there is no Secret of that name in the Credential's namespace.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretKeyNotFound: the Secret has no such key.
	ReasonSecretKeyNotFound = "SecretKeyNotFound"
	// ReasonSecretValueInvalid: the value is empty or too long.
	ReasonSecretValueInvalid = "SecretValueInvalid"
	// ReasonCredentialNotFound: no Credential of the endpoint's project and environment that the endpoint's
	// namespace may use has an id that the endpoint lists. Requests that use it are refused; others are served.
	ReasonCredentialNotFound = "CredentialNotFound"
	// ReasonCredentialNotReady: a Credential that the endpoint lists is not in force itself. Requests that use
	// it are refused; others are served.
	ReasonCredentialNotReady = "CredentialNotReady"
)

// Labels and annotations that are read or written here.
const (
	// LabelManaged, with the value "true", is on what the operator makes.
	LabelManaged = Group + "/managed"
	// AnnotationRotate on an APIKey asks for a new key at once: whenever its value is another than the one that
	// was handled last.
	AnnotationRotate = Group + "/rotate"
	// AnnotationRevokeKeys on an APIKey names keys of its that leaked, by their ids, separated by commas. They are
	// revoked at once, without overlap; the current one is replaced before.
	AnnotationRevokeKeys = Group + "/revoke-keys"
	// FinalizerAPIKey keeps an APIKey until its keys are revoked.
	FinalizerAPIKey = Group + "/revoke"
	// FinalizerProject keeps a Project with deletionPolicy Delete until the region service has forgotten it.
	FinalizerProject = Group + "/forget"
)
