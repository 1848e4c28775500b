package apierr

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/shared/wire"
)

// Code names a kind of failure, such as entry_not_found. Clients decide by the code what to do. The set of codes is
// closed.
type Code string

// The codes of all services, in the order of the contract's tables.
const (
	InvalidParameter              Code = "invalid_parameter"
	InvalidBody                   Code = "invalid_body"
	Unauthorized                  Code = "unauthorized"
	InsufficientScope             Code = "insufficient_scope"
	RouteNotFound                 Code = "route_not_found"
	ProjectNotFound               Code = "project_not_found"
	EntryNotFound                 Code = "entry_not_found"
	EmbeddableDoesNotExist        Code = "embeddable_does_not_exist"
	EmbeddableVersionDoesNotExist Code = "embeddable_version_does_not_exist"
	KeyNotFound                   Code = "key_not_found"
	ExperimentNotFound            Code = "experiment_not_found"
	MethodNotAllowed              Code = "method_not_allowed"
	HistoryLost                   Code = "history_lost"
	PayloadTooLarge               Code = "payload_too_large"
	UnsupportedMediaType          Code = "unsupported_media_type"
	QuestionTooLarge              Code = "question_too_large"
	RateLimited                   Code = "rate_limited"
	Internal                      Code = "internal"
	Unavailable                   Code = "unavailable"

	// The codes of the credential proxy.
	InvalidTarget         Code = "invalid_target"
	OriginNotAllowed      Code = "origin_not_allowed"
	DestinationNotAllowed Code = "destination_not_allowed"
	CredentialNotAllowed  Code = "credential_not_allowed"
	UpgradeNotSupported   Code = "upgrade_not_supported"
	UpstreamUnreachable   Code = "upstream_unreachable"
	UpstreamTimeout       Code = "upstream_timeout"
)

// spec holds the status and the context fields of a code. The status is a number and not a constant of net/http, so
// that stores, which return these errors, import no HTTP.
type spec struct {
	status  int      // of the answer (RFC 9110, section 15)
	context []string // names of the body's further fields, in order
}

var specs = map[Code]spec{
	InvalidParameter:              {400, []string{"projectId", "parameter"}},
	InvalidBody:                   {400, nil},
	Unauthorized:                  {401, []string{"projectId"}},
	InsufficientScope:             {403, []string{"projectId"}},
	RouteNotFound:                 {404, nil},
	ProjectNotFound:               {404, []string{"projectId"}},
	EntryNotFound:                 {404, []string{"entryId"}},
	EmbeddableDoesNotExist:        {404, []string{"projectId", "embeddableId"}},
	EmbeddableVersionDoesNotExist: {404, []string{"projectId", "embeddableId", "versionNumber"}},
	KeyNotFound:                   {404, []string{"projectId", "keyId"}},
	ExperimentNotFound:            {404, []string{"projectId", "experimentId"}},
	MethodNotAllowed:              {405, nil},
	HistoryLost:                   {410, []string{"projectId", "after", "until"}},
	PayloadTooLarge:               {413, nil},
	UnsupportedMediaType:          {415, nil},
	QuestionTooLarge:              {422, []string{"projectId"}},
	RateLimited:                   {429, []string{"projectId"}},
	Internal:                      {500, []string{"projectId"}},
	Unavailable:                   {503, []string{"projectId"}},

	InvalidTarget:         {400, nil},
	OriginNotAllowed:      {403, nil},
	DestinationNotAllowed: {403, nil},
	CredentialNotAllowed:  {404, nil},
	UpgradeNotSupported:   {501, nil},
	UpstreamUnreachable:   {502, nil},
	UpstreamTimeout:       {504, nil},
}

// Codes returns every code, sorted. Tests compare the codes with the API description.
func Codes() []Code {
	codes := make([]Code, 0, len(specs))
	for c := range specs {
		codes = append(codes, c)
	}
	slices.Sort(codes)
	return codes
}

// Status returns the HTTP status of c, or 0 for a code outside the set.
func (c Code) Status() int { return specs[c].status }

// Context returns the names of the fields that a body of c has after error, in order.
func (c Code) Context() []string { return slices.Clone(specs[c].context) }

// BadParameter returns the InvalidParameter error of the parameter name. The message has the given value, shortened,
// and the allowed values.
func BadParameter(name, given, allowed string) *Error {
	return New(InvalidParameter, fmt.Sprintf("Parameter %q was given as %q; allowed: %s.", name, wire.Shorten(given, longestGiven), allowed)).
		With("parameter", name)
}

// longestGiven is how many bytes of a client's text a message shows.
const longestGiven = 100

// Shown returns about the first 100 bytes of a client's text, in valid UTF-8, for a message. A text that was shortened
// ends with an ellipsis.
func Shown(given string) string {
	return strings.ToValidUTF8(wire.Shorten(given, longestGiven), "\uFFFD")
}

// NoEntry returns the EntryNotFound error: the project has no entry with the id.
func NoEntry(entryID string) *Error {
	return New(EntryNotFound, "The entry with the specified ID does not exist or you don't have permission to access it.").
		With("entryId", entryID)
}

// NoEmbeddable returns the EmbeddableDoesNotExist error: the project has no embeddable with the id.
func NoEmbeddable(embeddableID string) *Error {
	return New(EmbeddableDoesNotExist, "The embeddable with the specified ID does not exist in this project.").
		With("embeddableId", embeddableID)
}

// NoEmbeddableVersion returns the EmbeddableVersionDoesNotExist error: the project has no embeddable with the id, or
// the embeddable has no version of the number.
func NoEmbeddableVersion(embeddableID string, number int64) *Error {
	return New(EmbeddableVersionDoesNotExist, "The embeddable with the specified ID does not exist in this project, or has no version of this number.").
		With("embeddableId", embeddableID).With("versionNumber", number)
}

// NoKey returns the KeyNotFound error: the project has no API key with the id.
func NoKey(keyID string) *Error {
	return New(KeyNotFound, "The project has no key with the specified ID.").With("keyId", keyID)
}

// NoExperiment returns the ExperimentNotFound error: the project has no experiment with the id.
func NoExperiment(experimentID string) *Error {
	return New(ExperimentNotFound, "The experiment with the specified ID does not exist in this project.").
		With("experimentId", experimentID)
}

// LostHistory returns the HistoryLost error: the project has lost the numbers between after and until, and the reader's
// position is one of them. until is nil if the project was not written since.
func LostHistory(after int64, until *int64) *Error {
	e := New(HistoryLost, "Lectern was restored, and has lost changes that you have, after the number in after. Read again from the beginning.").
		With("after", after)
	if until != nil {
		e = e.With("until", *until)
	}
	return e
}

// NoRoute returns the RouteNotFound error: no operation has the request's path.
func NoRoute() *Error {
	return New(RouteNotFound, "There is no such path.")
}

// BadMethod returns the MethodNotAllowed error of a method that the path does not have. allowed are the path's methods,
// which the message and the Allow header list.
func BadMethod(method string, allowed ...string) *Error {
	allow := strings.Join(allowed, ", ")
	e := New(MethodNotAllowed, fmt.Sprintf("Method %q is not allowed here; allowed: %s.", method, allow))
	e.allow = allow
	return e
}

// NotAvailable returns the Unavailable error: the service cannot answer for now. The answer asks the client to retry
// after a second, and does not show the cause.
func NotAvailable(cause error) *Error {
	return New(Unavailable, "The service cannot answer right now. Try again shortly.").
		After(time.Second).Because(cause)
}
