package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gorilla/mux"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Router finds the handler of a path by templates of gorilla/mux, in the order in which they were added. A variable may
// contain percent-encoded slashes. A variable {name...} at the end matches the rest of the path, which may be empty.
// Router neither cleans nor redirects paths.
//
// Match and ServeHTTP are separate, so that layers around the handlers (trace, access log) know the route before the
// handler runs.
type Router struct {
	mux     *mux.Router
	connect http.Handler
}

// NewRouter returns a Router without routes, which answers 404 to every request.
func NewRouter() *Router {
	return &Router{mux: mux.NewRouter().UseEncodedPath().SkipClean(true)}
}

// Handle serves paths that match template with the handler of the request's method, and answers 405 to any other
// method. The handler of GET also serves HEAD. Handle panics if mux cannot parse template.
func (rt *Router) Handle(template string, byMethod map[string]http.Handler) {
	rt.Any(template, Methods(byMethod))
}

// Get serves GET and HEAD of paths that match template with h, and answers 405 to any other method.
func (rt *Router) Get(template string, h HandlerFunc) {
	rt.Handle(template, map[string]http.Handler{http.MethodGet: h})
}

// Post serves POST of paths that match template with h, and answers 405 to any other method.
func (rt *Router) Post(template string, h HandlerFunc) {
	rt.Handle(template, map[string]http.Handler{http.MethodPost: h})
}

// Any serves every method of paths that match template with h. Any panics if mux cannot parse template.
func (rt *Router) Any(template string, h http.Handler) {
	pattern := template
	if rest, ok := strings.CutSuffix(template, "...}"); ok {
		pattern = rest + ":.*}"
	}
	if err := rt.mux.Path(pattern).Name(template).Handler(h).GetError(); err != nil {
		panic(fmt.Sprintf("httpapi: the path template %q: %v", template, err))
	}
}

// Connect serves requests of the method CONNECT with h. Such requests have no path (RFC 9110, section 9.3.6), so no
// template matches.
func (rt *Router) Connect(h http.Handler) { rt.connect = h }

// Match returns the handler of r's path, and r with the path's template as r.Pattern. If no template matches, the
// handler answers 404. Match writes the template, the path's variables and the project to the request's Info.
func (rt *Router) Match(r *http.Request) (*http.Request, http.Handler) {
	if r.Method == http.MethodConnect && rt.connect != nil {
		return r, rt.connect
	}
	var match mux.RouteMatch
	if !rt.mux.Match(r, &match) {
		return r, HandlerFunc(noRoute)
	}
	info := InfoFrom(r.Context())
	info.Route, info.variables = match.Route.GetName(), match.Vars
	r.Pattern = info.Route
	if project, err := url.PathUnescape(match.Vars["projectId"]); err == nil && utf8.ValidString(project) {
		info.ProjectID = project
	}
	return r, match.Handler
}

// ServeHTTP serves r with the handler that [Router.Match] returns, for servers without layers around the handlers.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r, h := rt.Match(r)
	h.ServeHTTP(w, r)
}

func noRoute(http.ResponseWriter, *http.Request) error { return apierr.NoRoute() }

// identifierForm describes the identifiers that are allowed, for error messages.
const identifierForm = "1 to 256 bytes of UTF-8 without NUL, percent-encoded"

// PathIdentifier returns the path variable name, unescaped. An identifier is valid UTF-8 without NUL, of 1 to
// [wire.MaxIdentifierBytes] bytes. The error for any other text is an InvalidParameter.
func PathIdentifier(r *http.Request, name string) (string, error) {
	raw := InfoFrom(r.Context()).variables[name]
	id, err := url.PathUnescape(raw)
	if err != nil || !wire.ValidIdentifier(id) {
		return "", apierr.BadParameter(name, raw, identifierForm)
	}
	return id, nil
}

// PathInt returns the path variable name as an integer. The error is an InvalidParameter if the text is not a 64-bit
// integer.
func PathInt(r *http.Request, name string) (int64, error) {
	raw := InfoFrom(r.Context()).variables[name]
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		return 0, apierr.BadParameter(name, strings.ToValidUTF8(raw, "\uFFFD"), "an integer")
	}
	return n, nil
}
