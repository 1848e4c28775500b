package forward

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/lectern-dev/lectern/proxy/internal/dial"
	"github.com/lectern-dev/lectern/proxy/internal/target"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/apierr"
)

// fault is why something went wrong, in words of our own: what Go's libraries say may quote what a target
// sent, and so a credential.
type fault string

// Error is the reason.
func (f fault) Error() string { return string(f) }

const (
	errNoKeys     fault = "API keys can not be checked: no store of keys is configured"
	errMemory     fault = "all memory for bodies with values to be put in is taken"
	errTooLarge   fault = "the body is over its limit"
	errUnreadable fault = "the answer's encoding can not be searched for credentials"
	errLong       fault = "the answer is over the endpoint's limit"
	errFields     fault = "the answer has too many headers"
	errInterim    fault = "too many interim answers came"
	errStatus     fault = "the answer's status is not one of an answer"

	errConnect fault = "connecting took too long"
	errHeaders fault = "the answer did not begin in time"
	errIdle    fault = "nothing was sent or received for too long"
	errTotal   fault = "the request took too long in all"
)

func tooLarge(most int64) error {
	return apierr.New(apierr.PayloadTooLarge, fmt.Sprintf("The body is larger than the %d bytes that are allowed here.", most))
}

func tooMany(why string, after time.Duration) error {
	return apierr.New(apierr.RateLimited, "Right now "+why+". Try again after the time that Retry-After gives.").After(after)
}

// bodyFault is that the caller's body could not be read: it went away, or stalled.
func bodyFault(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return context.Canceled // it stalled: there is nobody to answer to
	}
	return apierr.New(apierr.InvalidBody, "The request's body ended before it was complete.").Because(fault("the caller's body could not be read"))
}

func destinationAfter(t *target.Target) error {
	return apierr.New(apierr.DestinationNotAllowed, fmt.Sprintf("With its credentials in it, the target on %s is not allowed any more. The destinations have to allow the path with the value in it.", t.Authority()))
}

// refusal says what the caller can change. Of credentials it tells one thing only, so that nobody learns
// which others exist.
func refusal(v *policy.Verdict, r *policy.Request, project string) error {
	switch v.Fault {
	case policy.NoEndpoint, policy.BadOrigin:
		if r.Origin == "" {
			return apierr.New(apierr.OriginNotAllowed, "The request has no Origin header, and no endpoint of this project and environment takes it without one. Call from an allowed page, or use an endpoint with access by key.")
		}
		return apierr.New(apierr.OriginNotAllowed, fmt.Sprintf("The origin %s is not allowed by any endpoint of this project and environment.", r.Origin))
	case policy.NoKey:
		return apierr.NotAuthorized().With("projectId", project).Because(fault("no API key was sent in X-Proxy-Api-Key"))
	case policy.BadDestination:
		return denied("The target %s is not among the destinations that are allowed for this caller. (The query does not count; the path does.)", bare(r.URL))
	case policy.BadPort:
		return denied("Port %d of the target is not allowed; by default only 443 is, over https.", r.Port)
	case policy.BadMethod:
		return denied("The method %s is not allowed for this target.", r.Method)
	case policy.PlainHTTP:
		return denied("Credentials are not sent over http://. Use https://.")
	default:
		return apierr.New(apierr.CredentialNotAllowed, fmt.Sprintf("The credential %s can not be used here: it is not known, or not allowed for this caller, this target or this place (%s).", v.Use.ID, v.Use.Place))
	}
}

func denied(format string, args ...any) error {
	return apierr.New(apierr.DestinationNotAllowed, fmt.Sprintf(format, args...))
}

// bare cuts a long URL, so that a message stays one.
func bare(url string) string {
	const longest = 200
	if len(url) > longest {
		return strings.ToValidUTF8(url[:longest], "") + "…"
	}
	return url
}

// upstreamFault says what went wrong between the proxy and the target.
func upstreamFault(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		switch {
		case errors.Is(cause, errConnect), errors.Is(cause, errHeaders), errors.Is(cause, errIdle), errors.Is(cause, errTotal):
			return apierr.New(apierr.UpstreamTimeout, "The target did not answer in time.").Because(cause)
		}
		return context.Canceled // the caller is gone
	}
	unreachable := func(text string, because fault) error {
		return apierr.New(apierr.UpstreamUnreachable, text).Because(because)
	}
	if errors.Is(err, dial.ErrForbidden) {
		return apierr.New(apierr.DestinationNotAllowed, "The target's name leads to an address that is not a public one.").Because(dial.ErrForbidden)
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && !dns.IsTimeout {
		return unreachable("The target's name could not be resolved.", "the target's name could not be resolved")
	}
	if wait, ok := errors.AsType[net.Error](err); ok && wait.Timeout() {
		return apierr.New(apierr.UpstreamTimeout, "The target did not answer in time.").Because(fault("a time limit of the connection"))
	}
	switch {
	case errors.Is(err, errUnreadable):
		return unreachable("The target answered in an encoding that can not be searched for the credential that was used. Ask for another by Accept-Encoding, or have the endpoint pass such answers.", errUnreadable)
	case isCertificate(err):
		return unreachable("The target's TLS certificate is not valid for it.", "the target's certificate could not be verified")
	case errors.Is(err, syscall.ECONNREFUSED):
		return unreachable("The target refused the connection.", "the target refused the connection")
	}
	return unreachable("The target could not be reached, or did not answer in HTTP.", "no HTTP answer came from the target")
}

func isCertificate(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok
}
