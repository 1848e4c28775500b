package forward

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/lectern-dev/lectern/proxy/internal/target"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/wire"
)

// incoming holds the parts of the caller's request that the proxy parses.
type incoming struct {
	origin               string // of the page; "" when none was sent
	preflight            bool   // a browser asks whether it may send a request
	project, environment string // "" for a preflight whose path does not name them
	target               *target.Target
	prefix               string // of the base-URL form, up to the scheme of the target; "" in the other form
}

// parse reads the origin, the project, the environment and the target of a request, and refuses CONNECT and WebSockets.
// On an error, in contains the fields that parse read before the fault.
func parse(r *http.Request) (in incoming, err error) {
	if in.origin, err = readOrigin(r.Header); err != nil {
		return in, err
	}
	if isUpgrade(r) {
		return in, apierr.New(apierr.UpgradeNotSupported, "The proxy carries requests and answers; it does not upgrade connections (no WebSocket, no CONNECT).")
	}
	in.preflight = isPreflight(r)
	path, err := readPath(r.URL)
	in.project, in.environment, in.prefix = path.project, path.environment, path.prefix
	switch {
	case err != nil:
	case in.project != "":
		err = refuseScope(r.Header)
	case !in.preflight:
		in.project, in.environment, err = readScope(r.Header)
	}
	if err != nil {
		return in, err
	}
	raw, place := path.target, "path"
	if raw == "" {
		place = "parameter url"
		if raw, err = readParameter(r.URL.RawQuery); err != nil {
			return in, err
		}
	}
	if in.target, err = target.Parse(raw); err != nil {
		return in, invalidTarget("The target in the " + place + " " + err.Error() + ".")
	}
	return in, nil
}

// readOrigin returns the origin of the page that sends the request, "" for none. The error refuses the origin "null",
// and an Origin header that is not valid.
func readOrigin(h http.Header) (string, error) {
	values, sent := h["Origin"]
	if !sent {
		return "", nil
	}
	if len(values) != 1 || !policy.ValidOrigin(values[0]) {
		return "", apierr.New(apierr.OriginNotAllowed, "The Origin header is not the origin of a page: a scheme, a host and a port. (\"null\" stands for a sandboxed frame or a file, and is never allowed.)")
	}
	return values[0], nil
}

// readScope returns the project and the environment that the request's headers name. Both headers are required.
func readScope(h http.Header) (project, environment string, err error) {
	if project, err = readIdentifier(h, ProjectHeader, "X-Project-ID"); err != nil {
		return "", "", err
	}
	if environment, err = readIdentifier(h, EnvironmentHeader, "X-Environment"); err != nil {
		return "", "", err
	}
	return project, environment, nil
}

// readIdentifier returns the value of the header key. The error refuses a header that is not sent exactly once, and a
// value that is no identifier. name is the spelling of key for error messages.
func readIdentifier(h http.Header, key, name string) (string, error) {
	sent := h[key]
	if len(sent) != 1 || !wire.ValidIdentifier(sent[0]) {
		return "", apierr.BadParameter(name, strings.Join(sent, ", "), "the header exactly once, 1 to 256 bytes of UTF-8")
	}
	return sent[0], nil
}

// readParameter returns the decoded value of the query parameter url, which is the target. The error refuses a query
// with another parameter, with url twice, without url, or with an invalid escape in url.
func readParameter(query string) (raw string, err error) {
	found := false
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		if decoded, err := url.QueryUnescape(name); err != nil || decoded != "url" {
			return "", invalidTarget("The only query parameter is url. If the others belong to the target, escape the whole target: ?url=https%3A%2F%2F….")
		}
		if found {
			return "", invalidTarget("The parameter url was given twice.")
		}
		found = true
		if raw, err = url.QueryUnescape(value); err != nil {
			return "", invalidTarget("The parameter url has a % that is followed by no two hex digits; escape the whole target.")
		}
	}
	if !found {
		return "", invalidTarget("The parameter url is missing: ?url=<escaped target>.")
	}
	return raw, nil
}

func invalidTarget(text string) error { return apierr.New(apierr.InvalidTarget, text) }

// isUpgrade reports whether the caller needs a tunnel or a WebSocket on the connection. The proxy ignores an offer of
// another protocol, such as HTTP/2 (RFC 9110, section 7.8).
func isUpgrade(r *http.Request) bool {
	return r.Method == http.MethodConnect || httpguts.HeaderValuesContainsToken(r.Header["Upgrade"], "websocket")
}

// isPreflight reports whether a browser asks if it may send a request (Fetch standard, "CORS-preflight request").
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && len(r.Header["Origin"]) > 0 && len(r.Header["Access-Control-Request-Method"]) > 0
}

// wantsTemplating reports whether the caller asks the proxy to replace the placeholders of the body. Only POST, PUT,
// PATCH and DELETE requests can ask.
func wantsTemplating(r *http.Request) bool {
	sent := r.Header[TemplatingHeader]
	return len(sent) == 1 && sent[0] == "true" &&
		slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, r.Method)
}
