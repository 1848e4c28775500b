package forward

import (
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/httpapi"
)

// preflightSeconds is how long a browser may remember that it may ask. Each request is judged all the same.
const preflightSeconds = "600"

// isPreflight tells whether a browser asks if it may send a request (Fetch standard, "CORS-preflight
// request").
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && len(r.Header["Origin"]) > 0 && len(r.Header["Access-Control-Request-Method"]) > 0
}

// preflight tells a browser that it may send a request: when any endpoint allows that origin for that
// destination. Which project the request is for is not known yet.
func (x *exchange) preflight() error {
	if x.h.o.Keys != nil {
		ctx := x.r.Context()
		if err := x.h.o.Keys.CheckAddress(ctx, httpapi.InfoFrom(ctx).ClientAddress); err != nil {
			return err
		}
	}
	if !x.mayRead() {
		return apierr.New(apierr.OriginNotAllowed, fmt.Sprintf("The origin %s is not allowed by any endpoint.", x.origin))
	}
	if !x.snapshot.AllowsPreflight(x.origin, x.target.AsSent(), x.target.Scheme, x.target.Port) {
		return denied("The target %s is not among the destinations that are allowed for the origin %s.", bare(x.target.AsSent()), x.origin)
	}
	methods, headers := x.r.Header["Access-Control-Request-Method"], strings.Join(x.r.Header["Access-Control-Request-Headers"], ",")
	if len(methods) != 1 || !httpguts.ValidHeaderFieldName(methods[0]) { // a method is a token, as a header's name is
		return apierr.BadParameter("Access-Control-Request-Method", strings.Join(methods, ", "), "one method")
	}
	h := x.w.Header()
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
	x.allowOrigin(h)
	h.Add("Vary", "Access-Control-Request-Method")
	h.Add("Vary", "Access-Control-Request-Headers")
	x.record.decision, x.record.status = decisionPreflight, http.StatusNoContent
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

// mayRead tells whether the page that asks may read the answer: whether its origin is allowed, by any endpoint of its
// project and environment where these are known, else by any at all.
func (x *exchange) mayRead() bool {
	switch {
	case x.origin == "":
		return false
	case x.scope != nil:
		return x.scope.AllowsOrigin(x.origin)
	}
	return x.snapshot.AllowsOrigin(x.origin)
}

// allowOrigin lets the page of the request's origin read the answer.
func (x *exchange) allowOrigin(h http.Header) {
	h["Access-Control-Allow-Origin"] = []string{x.origin}
	h["Access-Control-Expose-Headers"] = exposed
	h.Add("Vary", "Origin")
}
