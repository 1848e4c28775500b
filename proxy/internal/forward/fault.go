package forward

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/lectern-dev/lectern/proxy/egress"
	"github.com/lectern-dev/lectern/proxy/internal/template"
	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/egressproxy"
)

// fault is the reason of a failure, in the proxy's own words. A fault replaces errors of Go's libraries that may quote
// bytes from the target, and so a credential. The audit record shows the fault that is the cause of a refusal.
type fault string

// Error returns the reason. The reason is for the audit record, and not for the caller.
func (f fault) Error() string { return string(f) }

const (
	errNoKeys     fault = "API keys cannot be checked: no store of keys is configured"
	errMemory     fault = "the memory for bodies with placeholders is exhausted"
	errTooLarge   fault = "the body is over its limit"
	errUnreadable fault = "the answer's encoding cannot be searched for credentials"
	errLong       fault = "the answer is over the endpoint's limit"
	errFields     fault = "the answer has too many headers"
	errInterim    fault = "the target sent too many interim answers"
	errStatus     fault = "the answer's status is not a final status"

	errIdle  fault = "nothing was sent or received for too long"
	errTotal fault = "the request took too long in all"
)

func tooLarge(maxBytes int64) error {
	return apierr.New(apierr.PayloadTooLarge, fmt.Sprintf("The body is larger than the %d bytes that are allowed here.", maxBytes))
}

// tooSlow returns the refusal for a body with placeholders that took longer than bodyTimeout to arrive.
func tooSlow() error {
	return apierr.New(apierr.InvalidBody, fmt.Sprintf("The request's body did not come within %s, the time for a body that values are put into.", bodyTimeout)).
		Because(fault("the caller's body arrived too slowly"))
}

// danglingFault returns the refusal for a placeholder directly after escape, which is incomplete. where is the name of
// the header, or "body".
func danglingFault(where, escape string) error {
	return apierr.BadParameter(where, escape+"{{ … }}", "a placeholder that does not follow the beginning of an escape, which would take a part of the value")
}

// unfit returns the refusal for a body that [template.Examine] refused with err.
func unfit(err error) error {
	if escape, ok := errors.AsType[template.OpenEscape](err); ok {
		return danglingFault("body", string(escape))
	}
	return apierr.New(apierr.UnsupportedMediaType, fmt.Sprintf("Values can only be put into a body that is what its Content-Type says. This body %v. Send it without X-Use-Body-Templating.", err)).
		Because(fault("the body is not what its Content-Type says"))
}

func tooMany(why string, after time.Duration) error {
	return apierr.New(apierr.RateLimited, "Right now "+why+". Try again after the time that Retry-After gives.").After(after)
}

// bodyFault returns the refusal for a body that could not be read, because the caller disconnected or sent malformed
// chunks. For a caller that stalled, bodyFault returns context.Canceled.
func bodyFault(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return context.Canceled // the caller stalled, so it gets no answer
	}
	return apierr.New(apierr.InvalidBody, "The request's body ended before it was complete.").Because(fault("the caller's body could not be read"))
}

func denied(format string, args ...any) *apierr.Error {
	return apierr.New(apierr.DestinationNotAllowed, fmt.Sprintf(format, args...))
}

// longestURL is the greatest number of bytes of a URL that an error message shows.
const longestURL = 200

// upstreamFault returns the refusal for err, a failure between the proxy and the target. reused reports whether the
// connection served another request before. If ctx ended for another reason than a time limit, such as a caller that
// disconnected, upstreamFault returns context.Canceled.
func upstreamFault(ctx context.Context, err error, reused bool) error {
	if cause := context.Cause(ctx); cause != nil {
		switch {
		case errors.Is(cause, errIdle), errors.Is(cause, errTotal):
			return apierr.New(apierr.UpstreamTimeout, "The target did not answer in time.").Because(cause)
		}
		return context.Canceled // the caller disconnected
	}
	unreachable := func(text string, because fault) error {
		return apierr.New(apierr.UpstreamUnreachable, text).Because(because)
	}
	if errors.Is(err, egress.ErrForbidden) {
		return apierr.New(apierr.DestinationNotAllowed, "The target's name leads to an address that is not a public one.").Because(egress.ErrForbidden)
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && !dns.IsTimeout {
		return unreachable("The target's name could not be resolved.", "the target's name could not be resolved")
	}
	if wait, ok := errors.AsType[net.Error](err); ok && wait.Timeout() {
		return apierr.New(apierr.UpstreamTimeout, "The target did not answer in time.").Because(fault("a time limit of the connection"))
	}
	switch {
	case errors.Is(err, errUnreadable):
		return unreachable("The target answered in an encoding that cannot be searched for credentials. Ask for another by Accept-Encoding, or have the endpoint pass such answers.", errUnreadable)
	case isCertificate(err):
		return unreachable("The target's TLS certificate is not valid for it.", "the target's certificate could not be verified; caBundle, or CA_FILE of the proxy, can name its authority")
	case errors.Is(err, syscall.ECONNREFUSED):
		return unreachable("The target refused the connection.", "the target refused the connection")
	}
	why := fault("no HTTP answer came from the target")
	if own, ok := errors.AsType[fault](err); ok {
		why = own
	} else if refusal, ok := errors.AsType[*egressproxy.Refusal](err); ok {
		why = fault(refusal.Error())
	} else if reused {
		why = "no HTTP answer came on a connection that was kept from an earlier request"
	}
	return unreachable("The target could not be reached, or did not answer in HTTP.", why)
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
