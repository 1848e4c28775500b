package forward

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/wire"
)

// byPath holds the path of a request in the base-URL form, for client libraries that build their own URLs:
//
//	/proxy/to/<scheme>/<host[:port]>/<path>?<query>
//	/proxy/for/<project>/<environment>/to/<scheme>/<host[:port]>/<path>?<query>
//
// On a host that serves the proxy alone, the path has no /proxy.
type byPath struct {
	target               string // the URL; "" in the other form, where the parameter url has it
	prefix               string // the path up to the scheme of the target
	project, environment string // "" unless the path names them
}

// readPath reads a path of the base-URL form. For "/" and "/proxy", readPath returns a zero byPath. A path of another
// form is an error. readPath also refuses parts that a gateway may rewrite before the proxy reads the path: empty
// segments, dot segments, and encoded slashes in names.
func readPath(u *url.URL) (p byPath, err error) {
	path := u.RawPath // as sent: EscapedPath decodes %2F if another character should have been encoded
	if path == "" {
		path = u.EscapedPath()
	}
	if path == "/" || path == "/proxy" {
		return p, nil
	}
	whole := path
	path = strings.TrimPrefix(path, "/proxy")
	if err := checkSegments(path); err != nil {
		return p, err
	}
	if names, ok := strings.CutPrefix(path, "/for/"); ok {
		project, rest, _ := strings.Cut(names, "/")
		environment, target, _ := strings.Cut(rest, "/")
		if p.project, err = readName("project", project); err != nil {
			return p, err
		}
		if p.environment, err = readName("environment", environment); err != nil {
			return p, err
		}
		path = "/" + target
	}
	rest, ok := strings.CutPrefix(path, "/to/")
	if !ok {
		return p, invalidTarget("The path is not of the form /proxy/to/<scheme>/<host>/<path>, or /proxy/for/<project>/<environment>/to/….")
	}
	p.prefix = strings.TrimSuffix(whole, rest)
	scheme, rest, _ := strings.Cut(rest, "/")
	p.target = scheme + "://" + rest
	if u.RawQuery != "" || u.ForceQuery {
		p.target += "?" + u.RawQuery
	}
	if strings.Contains(p.target, "#") {
		return p, invalidTarget("The target in the path has a #; write %23, and send no fragment.")
	}
	if strings.Contains(p.target, "cred_") { // few targets hold a placeholder, and the expression is slow
		p.target = encodedPlaceholder.ReplaceAllString(p.target, "{{$1}}")
	}
	return p, nil
}

// encodedPlaceholder matches a placeholder as client libraries encode it in a path or a query, and captures the id.
var encodedPlaceholder = regexp.MustCompile(`(?:\{|%7[Bb]){2}(?:%20|\+| ){0,16}(cred_[A-Za-z0-9_-]{1,64})(?:%20|\+| ){0,16}(?:\}|%7[Dd]){2}`)

// checkSegments refuses a path with a dot segment, also percent-encoded, or with an empty segment before the last. Many
// gateways remove such segments.
func checkSegments(path string) error {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, s := range segments {
		plain, err := url.PathUnescape(s)
		if s == "" && i < len(segments)-1 || err == nil && (plain == "." || plain == "..") {
			return invalidTarget("The path has an empty segment (//) or a dot segment, which gateways remove. Send such a target in the parameter url.")
		}
	}
	return nil
}

// readName decodes the name of a project or environment from a segment of the path, and refuses a name with a slash or
// a backslash. what is "project" or "environment", for the error.
func readName(what, segment string) (string, error) {
	name, err := url.PathUnescape(segment)
	if err != nil || !wire.ValidIdentifier(name) || strings.ContainsAny(name, `/\`) {
		return "", apierr.BadParameter(what, strings.ToValidUTF8(segment, "\uFFFD"), "1 to 256 bytes of UTF-8 without slashes; send others in X-Project-ID and X-Environment")
	}
	return name, nil
}

// refuseScope refuses the headers that name a project or an environment, because the path names both already.
func refuseScope(h http.Header) error {
	for _, key := range []string{ProjectHeader, EnvironmentHeader} {
		if sent := h[key]; len(sent) > 0 {
			return apierr.BadParameter(key, strings.Join(sent, ", "), "no such header, as the path names the project and the environment")
		}
	}
	return nil
}
