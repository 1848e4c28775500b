package apierr

import "fmt"

// Refusal is the reason for an [Unauthorized] error: why a key or a token is not accepted. The access line and the
// metric lectern.auth.refusals show the reason. Clients get the same answer for every reason but [RefusedTooLarge].
type Refusal string

// Error returns the reason, for the log.
func (r Refusal) Error() string { return string(r) }

// The reasons are a closed set. None of them contains a value of the client.
const (
	RefusedNoKey     Refusal = "no_key"         // neither a key nor a token was sent
	RefusedMalformed Refusal = "malformed"      // no form of a key, of a token for an API, or both at once
	RefusedUnknown   Refusal = "unknown"        // the project, or the configuration, has no such key
	RefusedExpired   Refusal = "expired"        // the key or token has expired, or the token is not valid yet
	RefusedRevoked   Refusal = "revoked"        // the key, or the grant of the subject, is revoked
	RefusedNoGrant   Refusal = "no_grant"       // a verified token, whose subject and groups have no rights here
	RefusedGroupsCut Refusal = "groups_cut"     // the same, and the issuer left the groups out of the token
	RefusedAudience  Refusal = "wrong_audience" // a token for another application
	RefusedIssuer    Refusal = "wrong_issuer"   // a token of an issuer that is not configured
	RefusedSignature Refusal = "signature"      // a token whose signature is wrong, or of an unknown signing key
	RefusedTooLarge  Refusal = "too_large"      // a token over the size that services accept
)

// NotAuthorized returns the one answer to a key or token that is refused. A client does not learn the reason.
func NotAuthorized(why Refusal) *Error {
	e := New(Unauthorized, "You are not authorized to access this project with the API key provided.").Because(why)
	e.refusal = why
	return e
}

// TooLarge returns the answer to a token of more bytes than allowed.
func TooLarge(bytes, allowed int) *Error {
	e := New(Unauthorized, fmt.Sprintf("The token has %d bytes; allowed: %d. Have the issuer put fewer claims or groups into its tokens.", bytes, allowed))
	e.refusal = RefusedTooLarge
	return e
}

// Refusal returns the reason for an [Unauthorized] error, and "" for any other error.
func (e *Error) Refusal() Refusal { return e.refusal }
