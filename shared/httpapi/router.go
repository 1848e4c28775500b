package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gorilla/mux"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Router finds the handler of a path. Templates are written as gorilla/mux's; a variable is one whole
// segment, without a pattern, and may hold percent-encoded slashes. Paths are taken as they come: nothing
// is cleaned or redirected.
//
// Matching and serving are apart, so that what wraps the handlers (trace, access log) knows the route
// before they run, also of a request that matches none.
type Router struct {
	mux       *mux.Router
	templates []string
	connect   http.Handler
}

// NewRouter returns a Router that knows no path.
func NewRouter() *Router {
	return &Router{mux: mux.NewRouter().SkipClean(true)}
}

// Handle serves template by method, and any other method with 405.
func (rt *Router) Handle(template string, byMethod map[string]http.Handler) {
	rt.Any(template, Methods(byMethod))
}

// Get serves GET and HEAD of template with h.
func (rt *Router) Get(template string, h HandlerFunc) {
	rt.Handle(template, map[string]http.Handler{http.MethodGet: h})
}

// Post serves POST of template with h.
func (rt *Router) Post(template string, h HandlerFunc) {
	rt.Handle(template, map[string]http.Handler{http.MethodPost: h})
}

// Any serves every method of template with h.
func (rt *Router) Any(template string, h http.Handler) {
	rt.mux.MatcherFunc(parseTemplate(template).match).Name(template).Handler(h)
	rt.templates = append(rt.templates, template)
}

// Connect serves CONNECT with h. Its requests have no path (RFC 9110, section 9.3.6), so no template could.
func (rt *Router) Connect(h http.Handler) { rt.connect = h }

// Templates lists the templates that are served, in the order in which they were given.
func (rt *Router) Templates() []string { return rt.templates }

// Match returns the handler of r's path, which answers 404 when there is none, and r with its path's
// template as r.Pattern. The request's Info learns the template and the path's variables.
func (rt *Router) Match(r *http.Request) (*http.Request, http.Handler) {
	if r.Method == http.MethodConnect && rt.connect != nil {
		return r, rt.connect
	}
	var match mux.RouteMatch
	if !rt.mux.Match(r, &match) || match.MatchErr != nil || match.Route == nil {
		return r, HandlerFunc(noRoute)
	}
	info, ok := r.Context().Value(infoKey{}).(*Info)
	if !ok { // not behind a server: the request brings its own
		info = InfoFrom(r.Context())
		r = r.WithContext(WithInfo(r.Context(), info))
	}
	info.Route, info.variables = match.Route.GetName(), match.Vars
	r.Pattern = info.Route
	if project, err := url.PathUnescape(match.Vars["projectId"]); err == nil && utf8.ValidString(project) {
		info.ProjectID = project
	}
	return r, match.Handler
}

// ServeHTTP matches and serves.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r, h := rt.Match(r)
	h.ServeHTTP(w, r)
}

func noRoute(http.ResponseWriter, *http.Request) error { return apierr.NoRoute() }

// PathIdentifier returns the path variable name, unescaped. An identifier is valid UTF-8 without NUL,
// of 1 to [wire.MaxIdentifierBytes] bytes; any other is an InvalidParameter.
func PathIdentifier(r *http.Request, name string) (string, error) {
	raw := InfoFrom(r.Context()).variables[name]
	id, err := url.PathUnescape(raw)
	if err != nil || !wire.ValidIdentifier(id) {
		return "", apierr.BadParameter(name, raw, "1 to 256 bytes of UTF-8 without NUL, percent-encoded")
	}
	return id, nil
}

// PathInt returns the path variable name as an integer; a text that is none of 64 bits is an
// InvalidParameter.
func PathInt(r *http.Request, name string) (int64, error) {
	raw := InfoFrom(r.Context()).variables[name]
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		return 0, apierr.BadParameter(name, strings.ToValidUTF8(raw, "\uFFFD"), "an integer")
	}
	return n, nil
}
