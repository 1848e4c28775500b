// Package routes has the table of all public and internal paths but those of health, metrics and profiles, with the
// service that serves each path. The edge, the routes of the chart and the tests of the services read the table. A test
// fails if a service serves other paths than the table says.
package routes

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Service names a service that serves public or internal paths.
type Service string

// The services that serve paths. All stands for several services that serve the same path.
const (
	Entries     Service = "entries"
	Embeddables Service = "embeddables"
	Experiments Service = "experiments"
	Region      Service = "region"
	Proxy       Service = "proxy"
	Console     Service = "console"
	All         Service = "all" // each of entries, embeddables, experiments and region
)

// Auth is the kind of key that an operation requires.
type Auth string

// The kinds of keys that an operation can require.
const (
	None        Auth = "none"        // nothing
	APIKey      Auth = "api_key"     // X-Api-Key, of the project in the path
	AnyKey      Auth = "any_key"     // X-Api-Key, of any project
	Configured  Auth = "configured"  // X-Api-Key, if EXPERIMENTS_AUTH requires it
	InternalKey Auth = "internal"    // X-Api-Key, one of INTERNAL_API_KEYS
	IngestKey   Auth = "ingest"      // X-Api-Key, one of INGEST_API_KEYS
	AdminKey    Auth = "admin"       // X-Api-Key, one of ADMIN_API_KEYS
	Endpoint    Auth = "by_endpoint" // as the proxy's endpoint requires
)

// Route is one path and the service that serves it.
type Route struct {
	Service   Service
	Operation string   // the operationId of the published description; a page has a similar name
	Template  string   // the path, its variables in braces; see [Route.Matches]
	Methods   []string // GET comes with HEAD; nil is any method
	Auth      Auth
	Scope     string // the scope that the API key needs; empty if it needs none
}

// Public returns the routes of the published description, in the order of the description.
func Public() []Route {
	read := []string{http.MethodGet, http.MethodHead}
	keyed := func(s Service, operation, template, scope string) Route {
		return Route{s, operation, template, read, APIKey, scope}
	}
	open := func(s Service, operation, template string) Route {
		return Route{s, operation, template, read, None, ""}
	}
	const (
		entries     = "entries:read"
		embeddables = "embeddables:read"
		experiments = "experiments:read"
	)
	return []Route{
		keyed(Entries, "listEntries", "/projects/{projectId}/entries", entries),
		keyed(Entries, "getEntry", "/projects/{projectId}/entries/{entryId}", entries),
		keyed(Entries, "listEntryEvents", "/projects/{projectId}/entries/{entryId}/events", entries),
		keyed(Entries, "listEntriesPageViews", "/projects/{projectId}/entries-page-views", entries),
		keyed(Entries, "listEntriesChanges", "/projects/{projectId}/entries-changes", entries),
		keyed(Entries, "countEntries", "/projects/{projectId}/entries-counts", entries),
		keyed(Entries, "getEntriesOverview", "/projects/{projectId}/entries-overview", entries),
		keyed(Entries, "getEntriesFunnel", "/projects/{projectId}/entries-funnel", entries),
		keyed(Entries, "getEntriesAnswers", "/projects/{projectId}/entries-answers", entries),
		keyed(Embeddables, "listEmbeddables", "/projects/{projectId}/embeddables", embeddables),
		keyed(Embeddables, "getEmbeddable", "/projects/{projectId}/embeddables/{embeddableId}", embeddables),
		keyed(Embeddables, "listEmbeddableVersions", "/projects/{projectId}/embeddables/{embeddableId}/versions", embeddables),
		keyed(Embeddables, "getEmbeddableVersion", "/projects/{projectId}/embeddables/{embeddableId}/versions/{versionNumber}", embeddables),
		{Experiments, "listExperiments", "/projects/{projectId}/experiments", read, Configured, experiments},
		{Experiments, "getExperiment", "/projects/{projectId}/experiments/{experimentId}", read, Configured, experiments},
		{Experiments, "listExperimentStatusChanges", "/projects/{projectId}/experiments/{experimentId}/history", read, Configured, experiments},
		open(Region, "getProject", "/projects/{projectId}"),
		keyed(Region, "getKey", "/projects/{projectId}/key", ""),
		{Region, "listMyProjects", "/me/projects", read, AnyKey, ""},
		{Region, "lookUpProjectRegion", "/api/projects/region", []string{http.MethodPost}, InternalKey, ""},
		open(Region, "getDescriptionYAML", "/openapi.yaml"),
		open(Region, "getDescriptionJSON", "/openapi.json"),
		open(Region, "getReference", "/docs"),
		open(Region, "getReferenceAsset", "/docs/{asset}"), // also the page of errors
		{Proxy, "proxy", "/proxy", nil, Endpoint, ""},
	}
}

// Pages returns the public routes that the published description leaves out. Some are pages for browsers, with the web
// console. The others are paths of the proxy that contain a target, which OpenAPI cannot describe.
func Pages() []Route {
	read := []string{http.MethodGet, http.MethodHead}
	return []Route{
		{Region, "redirectToReference", "/", read, None, ""},
		{Console, "redirectToConsole", "/console", read, None, ""},
		{Console, "getConsole", "/console/{path...}", read, None, ""},
		{Proxy, "proxyTo", "/proxy/to/{target...}", nil, Endpoint, ""},
		{Proxy, "proxyFor", "/proxy/for/{projectId}/{environment}/to/{target...}", nil, Endpoint, ""},
	}
}

// Outside returns all public routes: the routes of [Public] and the routes of [Pages]. No path matches two of these
// routes.
func Outside() []Route { return append(Public(), Pages()...) }

// Internal returns the routes that only the internal ports serve: ingest, settings of a project, and the requests of
// administrators.
func Internal() []Route {
	post := []string{http.MethodPost}
	return []Route{
		{Entries, "ingestEntries", "/internal/entries", post, IngestKey, ""},
		{Entries, "ingestEvents", "/internal/events", post, IngestKey, ""},
		{Entries, "eraseEntry", "/internal/projects/{projectId}/entries/{entryId}", []string{http.MethodDelete}, AdminKey, ""},
		{Entries, "eraseContact", "/internal/projects/{projectId}/contacts/{contactId}", []string{http.MethodDelete}, AdminKey, ""},
		{Entries, "purgeEntries", "/internal/projects/{projectId}/purge", post, AdminKey, ""},
		{Entries, "recordLostHistory", "/internal/restored", post, AdminKey, ""},
		{Embeddables, "purgeDefinitions", "/internal/projects/{projectId}/definitions/purge", post, AdminKey, ""},
		{Embeddables, "ingestEmbeddables", "/internal/embeddables", post, IngestKey, ""},
		{Embeddables, "ingestEmbeddableVersions", "/internal/embeddable-versions", post, IngestKey, ""},
		{Experiments, "ingestExperiments", "/internal/experiments", post, IngestKey, ""},
		{Region, "ingestProjects", "/internal/projects", post, IngestKey, ""},
		{All, "removeProject", "/internal/projects/{projectId}", []string{http.MethodDelete}, AdminKey, ""},
		{Region, "getSettings", "/internal/projects/{projectId}/settings", []string{http.MethodGet, http.MethodHead}, IngestKey, ""},
		{Region, "listOrMintKeys", "/internal/projects/{projectId}/keys",
			[]string{http.MethodGet, http.MethodHead, http.MethodPost}, AdminKey, ""},
		{Region, "rotateKey", "/internal/projects/{projectId}/keys/{keyId}/rotate", post, AdminKey, ""},
		{Region, "revokeKey", "/internal/projects/{projectId}/keys/{keyId}", []string{http.MethodDelete}, AdminKey, ""},
	}
}

// Inside returns the routes for clients within the platform: the routes of [Internal], and the look-up of regions,
// which is also a public route.
func Inside() []Route {
	public := Public()
	lookUp := slices.IndexFunc(public, func(r Route) bool { return r.Auth == InternalKey })
	return append(Internal(), public[lookUp])
}

// Allows reports whether the route serves method. A route whose Methods are nil serves any method.
func (r Route) Allows(method string) bool {
	return r.Methods == nil || slices.Contains(r.Methods, method)
}

// Matches reports whether escapedPath, as url.URL.EscapedPath gives it, is a path of this route. A variable matches one
// segment that is not empty. A percent-encoded slash does not end a segment. A variable {name...} ends its template and
// matches the rest of the path, which may be empty and may have slashes. Matches compares the path as it is: case,
// double slashes, trailing slashes and dots count.
func (r Route) Matches(escapedPath string) bool {
	path, template := escapedPath, r.Template
	for template != "" {
		segment, pattern := "", ""
		var pathHas, templateHas bool
		if segment, path, pathHas = nextSegment(path); !pathHas {
			return false
		}
		pattern, template, templateHas = nextSegment(template)
		if !templateHas {
			return false
		}
		switch {
		case isRest(pattern):
			return true
		case isVariable(pattern):
			if segment == "" {
				return false
			}
		case segment != pattern:
			return false
		}
	}
	return path == ""
}

// nextSegment splits a path such as "/segment/rest" into "segment" and "/rest". ok is false if the path does not
// begin with a slash.
func nextSegment(path string) (segment, rest string, ok bool) {
	if !strings.HasPrefix(path, "/") {
		return "", "", false
	}
	if end := strings.IndexByte(path[1:], '/'); end >= 0 {
		return path[1 : 1+end], path[1+end:], true
	}
	return path[1:], "", true
}

func isVariable(segment string) bool {
	return strings.HasPrefix(segment, "{") && strings.HasSuffix(segment, "}")
}

// isRest reports whether a segment of a template has the form {name...}, which matches the rest of the path, as in
// net/http.
func isRest(segment string) bool {
	return isVariable(segment) && strings.HasSuffix(segment, "...}")
}

// Table is a list of routes, in which [Table.Find] looks up a path.
type Table []Route

// Find returns the first route that matches escapedPath, as url.URL.EscapedPath gives it. Find returns false if no
// route matches.
func (t Table) Find(escapedPath string) (Route, bool) {
	for _, r := range t {
		if r.Matches(escapedPath) {
			return r, true
		}
	}
	return Route{}, false
}

// Find returns the public route of escapedPath, which is one of [Outside]. Find returns false if no public route
// matches.
func Find(escapedPath string) (Route, bool) { return Table(Outside()).Find(escapedPath) }

// Regexp returns template as a regular expression of RE2, for routes of the Gateway API and for Ingresses. The
// expression matches only whole paths. A variable matches one segment that is not empty, or the rest of the path, as
// in [Route.Matches].
func Regexp(template string) string {
	var b strings.Builder
	b.WriteByte('^')
	for rest := template; rest != ""; {
		var segment string
		segment, rest, _ = nextSegment(rest)
		b.WriteByte('/')
		switch {
		case isRest(segment):
			b.WriteString(".*")
		case isVariable(segment):
			b.WriteString("[^/]+")
		default:
			b.WriteString(regexp.QuoteMeta(segment))
		}
	}
	b.WriteByte('$')
	return b.String()
}
