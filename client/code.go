package client

// The error codes of the API, as in [Error.Code]. The list has the codes of all answers with an error. The codes of
// rejected lines, as in [Reject], are others.
const (
	CodeInvalidParameter              = "invalid_parameter"
	CodeInvalidBody                   = "invalid_body"
	CodeUnauthorized                  = "unauthorized"
	CodeInsufficientScope             = "insufficient_scope"
	CodeRouteNotFound                 = "route_not_found"
	CodeProjectNotFound               = "project_not_found"
	CodeEntryNotFound                 = "entry_not_found"
	CodeEmbeddableDoesNotExist        = "embeddable_does_not_exist"
	CodeEmbeddableVersionDoesNotExist = "embeddable_version_does_not_exist"
	CodeKeyNotFound                   = "key_not_found"
	CodeExperimentNotFound            = "experiment_not_found"
	CodeMethodNotAllowed              = "method_not_allowed"
	CodePayloadTooLarge               = "payload_too_large"
	CodeUnsupportedMediaType          = "unsupported_media_type"
	CodeQuestionTooLarge              = "question_too_large"
	CodeHistoryLost                   = "history_lost"
	CodeRateLimited                   = "rate_limited"
	CodeInternal                      = "internal"
	CodeUnavailable                   = "unavailable"

	// The credential proxy sends the following codes.
	CodeInvalidTarget         = "invalid_target"
	CodeOriginNotAllowed      = "origin_not_allowed"
	CodeDestinationNotAllowed = "destination_not_allowed"
	CodeCredentialNotAllowed  = "credential_not_allowed"
	CodeUpgradeNotSupported   = "upgrade_not_supported"
	CodeUpstreamUnreachable   = "upstream_unreachable"
	CodeUpstreamTimeout       = "upstream_timeout"
)
