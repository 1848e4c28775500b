package forward

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/lectern-dev/lectern/proxy/internal/template"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/wire"
)

// decision is the policy's verdict on a request, with the header and the body for the target.
type decision struct {
	request policy.Request
	verdict policy.Verdict
	header  http.Header // for the target, with placeholders
	body    *heldBody   // with placeholders; nil: the body streams
}

// decide asks the policy about a request with all of its credentials. If the caller asks for templating, decide reads
// the body into memory, which counts against the client and the endpoint. The caller must release the body of the
// decision, also after an error.
func decide(r *http.Request, in incoming, scope *policy.Scope, keyed bool, bodies *heldBodies, client limits.Holder) (decision, error) {
	header, uses, err := headerToSend(r.Header)
	if err != nil {
		return decision{}, err
	}
	for _, id := range in.target.IDs() {
		uses = append(uses, policy.Use{ID: id, Place: policy.InURL})
	}
	d := decision{header: header, request: policy.Request{
		Origin: in.origin, Keyed: keyed, Method: r.Method,
		Scheme: in.target.Scheme, Port: in.target.Port, URL: in.target.AsSent(), Uses: distinct(uses),
	}}
	d.verdict = scope.Decide(&d.request)
	if err := refusal(&d.verdict, &d.request, in.project); err != nil {
		return d, err
	}
	length := r.ContentLength // -1: unknown
	if wantsTemplating(r) && length != 0 {
		if err := d.holdBody(r, bodies, client); err != nil {
			return d, err
		}
		length = d.body.length()
		d.verdict = scope.Decide(&d.request)
		if err := refusal(&d.verdict, &d.request, in.project); err != nil {
			return d, err
		}
	}
	if maxBytes := d.verdict.Endpoint.Limits.RequestBytes; maxBytes > 0 && length > maxBytes {
		return d, tooLarge(maxBytes)
	}
	return d, nil
}

// holdBody reads the body into memory, and adds the credentials that the body names to the policy's request. For a
// multipart body, holdBody sets the Content-Type for the target.
func (d *decision) holdBody(r *http.Request, bodies *heldBodies, client limits.Holder) (err error) {
	if d.body, err = bodies.hold(r, limits.Endpoint(d.verdict.Endpoint.Name), client); err != nil {
		return err
	}
	if d.body.contentType != "" {
		d.header["Content-Type"] = []string{d.body.contentType}
	}
	ids := d.body.survey.IDs
	if len(ids) > template.MaxIDs {
		return apierr.New(apierr.CredentialNotAllowed, fmt.Sprintf("The body names more than %d credentials, and no endpoint has more.", template.MaxIDs))
	}
	for _, id := range ids {
		for _, path := range d.body.survey.Paths(id) {
			d.request.Uses = append(d.request.Uses, policy.Use{ID: id, Place: policy.InBody, Path: path})
		}
	}
	return nil
}

// distinct returns each use once, sorted by place, id and header, and reorders uses itself. The order of the headers in
// the request must not matter: a repeated request with several faults must get the same fault each time.
func distinct(uses []policy.Use) []policy.Use {
	slices.SortFunc(uses, func(a, b policy.Use) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), strings.Compare(a.ID, b.ID), strings.Compare(a.Header, b.Header))
	})
	return slices.Compact(uses)
}

// refusal returns the error that tells the caller what to change, nil for an allowed request. For a refused credential,
// the text does not show whether the credential exists.
func refusal(v *policy.Verdict, r *policy.Request, project string) error {
	why := fault(v.String())
	switch v.Fault {
	case policy.None:
		return nil
	case policy.NoEndpoint, policy.BadOrigin:
		text := fmt.Sprintf("The origin %s is not allowed by any endpoint of this project and environment.", r.Origin)
		if r.Origin == "" {
			text = "The request has no Origin header, and no endpoint of this project and environment takes it without one. Call from an allowed page, or use an endpoint with access by key."
		}
		return apierr.New(apierr.OriginNotAllowed, text).Because(why)
	case policy.NoKey:
		return apierr.NotAuthorized(apierr.RefusedNoKey).With("projectId", project).Because(why)
	case policy.BadDestination:
		return denied("The target %s is not among the destinations that are allowed for this caller. (The query does not count; the path does.)", wire.Shorten(r.URL, longestURL)).Because(why)
	case policy.BadPort:
		return denied("Port %d of the target is not allowed; by default only 443 is, over https.", r.Port).Because(why)
	case policy.BadMethod:
		return denied("The method %s is not allowed for this target.", r.Method).Because(why)
	case policy.PlainHTTP:
		return denied("Credentials are not sent over http://. Use https://.").Because(why)
	default:
		return apierr.New(apierr.CredentialNotAllowed, fmt.Sprintf("The credential %s cannot be used here: it is not known, or not allowed for this caller, this target or this place (%s).", v.Use.ID, v.Use.Place)).Because(why)
	}
}
