package forward

import (
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/wire"
)

// preflightSeconds is how long a browser may cache a preflight. The proxy still checks each request in full.
const preflightSeconds = "600"

// answerPreflight grants the preflight of a browser with status 204, or returns the refusal. The preflight counts
// against the rate of the client's address, as checkAddress says.
func (h *Handler) answerPreflight(w http.ResponseWriter, r *http.Request, snapshot *policy.Snapshot, in incoming, rec *record) error {
	if err := h.checkAddress(r.Context()); err != nil {
		return err
	}
	if err := grant(w.Header(), r, snapshot, in); err != nil {
		return err
	}
	rec.decision, rec.status = decisionPreflight, http.StatusNoContent
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// grant writes to h the headers that grant a preflight, or returns the refusal. An endpoint that allows the origin must
// allow the destination. If the path names a project, the endpoint must belong to that project and environment. grant
// also refuses a preflight with malformed headers.
func grant(h http.Header, r *http.Request, snapshot *policy.Snapshot, in incoming) error {
	if corsOrigin(snapshot, in) == "" {
		return apierr.New(apierr.OriginNotAllowed, fmt.Sprintf("The origin %s is not allowed by any endpoint.", in.origin))
	}
	endpoints := snapshot.Allowing(in.origin, in.project, in.environment)
	if !policy.AllowTarget(endpoints, in.target.AsSent(), in.target.Scheme, in.target.Port) {
		return denied("The target %s is not among the destinations that are allowed for the origin %s.", wire.Shorten(in.target.AsSent(), longestURL), in.origin)
	}
	methods, headers := r.Header["Access-Control-Request-Method"], strings.Join(r.Header["Access-Control-Request-Headers"], ",")
	if len(methods) != 1 || !httpguts.ValidHeaderFieldName(methods[0]) { // a method is a token, as a header's name is
		return apierr.BadParameter("Access-Control-Request-Method", strings.Join(methods, ", "), "one method")
	}
	if headers != "" {
		for name := range strings.SplitSeq(headers, ",") {
			if !httpguts.ValidHeaderFieldName(strings.TrimSpace(name)) {
				return apierr.BadParameter("Access-Control-Request-Headers", headers, "names of headers, separated by commas")
			}
		}
		h["Access-Control-Allow-Headers"] = []string{headers}
	}
	h["Access-Control-Allow-Methods"] = methods
	h["Access-Control-Max-Age"] = []string{preflightSeconds}
	allowOrigin(h, in.origin)
	h["Vary"] = append(h["Vary"], "Access-Control-Request-Method", "Access-Control-Request-Headers")
	return nil
}

// corsOrigin returns the origin whose pages may read the answer, "" for none. An endpoint of the project and
// environment must allow the origin. If the request names no project, an endpoint of any project is enough. An unknown
// project gives the same result as a project that does not allow the origin, so that a page cannot learn which projects
// exist.
func corsOrigin(snapshot *policy.Snapshot, in incoming) string {
	for range snapshot.Allowing(in.origin, in.project, in.environment) {
		return in.origin
	}
	return ""
}

// allowOrigin adds the headers to h that let pages of an origin read the answer. For "", allowOrigin does nothing.
func allowOrigin(h http.Header, origin string) {
	if origin == "" {
		return
	}
	h["Access-Control-Allow-Origin"] = []string{origin}
	h["Access-Control-Expose-Headers"] = []string{"*"}
	h["Vary"] = append(h["Vary"], "Origin")
}
