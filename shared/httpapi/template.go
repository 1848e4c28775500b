package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/gorilla/mux"
)

// template is a path with variables: "/projects/{projectId}/entries". It is matched by segments, and not by
// the regular expression that mux would make of it, as that takes 2 µs of each request.
type template struct {
	segments []segment
}

// segment is what stands between two slashes.
type segment struct {
	text     string // the variable's name where it is one
	variable bool
}

// parseTemplate panics on a template that is none, as only a mistake in the program can bring one.
func parseTemplate(text string) template {
	path, rooted := strings.CutPrefix(text, "/")
	if !rooted {
		panic("httpapi: the path template " + text + " does not begin with a slash")
	}
	var t template
	for part := range strings.SplitSeq(path, "/") {
		name, opened := strings.CutPrefix(part, "{")
		name, closed := strings.CutSuffix(name, "}")
		if opened != closed || strings.ContainsAny(name, "{}:") || opened && name == "" {
			panic(fmt.Sprintf("httpapi: the path template %s has the segment %q, which is neither a text nor a variable", text, part))
		}
		t.segments = append(t.segments, segment{text: name, variable: opened})
	}
	return t
}

// match tells whether the path of r is one of the template's, and notes its variables as they came. It is a
// [mux.MatcherFunc].
func (t template) match(r *http.Request, m *mux.RouteMatch) bool {
	path := r.URL.EscapedPath()
	if !t.walk(path, func(string, string) {}) {
		return false
	}
	m.Vars = make(map[string]string, len(t.segments))
	t.walk(path, func(name, value string) { m.Vars[name] = value })
	return true
}

// walk goes through path along the template and gives the variables to found. False: path is another's.
func (t template) walk(path string, found func(name, value string)) bool {
	for _, s := range t.segments {
		rest, ok := strings.CutPrefix(path, "/")
		if !ok {
			return false
		}
		end := strings.IndexByte(rest, '/')
		if end < 0 {
			end = len(rest)
		}
		value := rest[:end]
		switch {
		case s.variable && value != "":
			found(s.text, value)
		case s.variable || value != s.text:
			return false
		}
		path = rest[end:]
	}
	return path == ""
}
