package forward

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/lectern-dev/lectern/proxy/internal/target"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// links rewrites the headers of an answer that contain links: Location, Content-Location and Link. In the base-URL
// form, a link to the target's own origin becomes a link through the proxy. If the request bore a key for the proxy,
// links that may lead elsewhere move to a header named in renamed. Otherwise a client library would follow the link,
// and send the key to another origin.
type links struct {
	target *target.Target
	prefix string        // of the base-URL form, up to the scheme of the target; "" in the other form
	base   func() string // the scheme and host under which the client reaches the proxy
	keyed  bool          // the request bore a key
}

// base returns the function for the scheme and host at the beginning of a new link. For a path under /proxy/, the
// function is info.BaseURL. On a host that serves the proxy alone, the function is info.RequestURL. There, info.BaseURL
// may name another host, and browsers do not send Authorization after such a redirect.
func (in incoming) base(info *httpapi.Info) func() string {
	if strings.HasPrefix(in.prefix, "/proxy/") {
		return info.BaseURL
	}
	return info.RequestURL
}

// renamed maps each header of a target that contains links to the header for the links to other origins. The proxy
// moves such links only if the request bore a key.
var renamed = map[string]string{
	"Location": "X-Proxy-Location", "Content-Location": "X-Proxy-Content-Location", "Link": "X-Proxy-Link",
}

// rewrite changes the headers with links in h, the headers of an answer. If the request had no key and not the base-URL
// form, rewrite changes nothing.
func (l links) rewrite(h http.Header) {
	if l.prefix == "" && !l.keyed {
		return
	}
	for name, aside := range renamed {
		if !l.keyed {
			aside = name
		}
		lines := h[name]
		delete(h, name)
		for _, line := range lines {
			stays, away := l.split(name, line)
			if stays != "" {
				h[name] = append(h[name], stays)
			}
			if away != "" {
				h[aside] = append(h[aside], away)
			}
		}
	}
}

// split divides the links of one header line. stays contains the links that lead through the proxy, in the form for the
// client. away contains the other links unchanged, or the whole line if split cannot parse the line. Each result is ""
// for no links.
func (l links) split(name, line string) (stays, away string) {
	if name != "Link" {
		if to, ok := l.through(line); ok {
			return to, ""
		}
		return "", line
	}
	list, ok := readLinks(line)
	if !ok {
		return "", line
	}
	var staying, leaving []string
	for _, link := range list {
		if to, ok := l.through(link.target); ok {
			staying = append(staying, "<"+to+">"+link.parameters)
		} else {
			leaving = append(leaving, "<"+link.target+">"+link.parameters)
		}
	}
	return strings.Join(staying, ", "), strings.Join(leaving, ", ")
}

// scheme matches the scheme at the beginning of an absolute URL (RFC 3986, section 3.1).
var scheme = regexp.MustCompile(`\A[A-Za-z][A-Za-z0-9+.-]*:`)

// through returns the URL by which a client can follow the link through the proxy. For a link that leads elsewhere,
// contains a placeholder or is ambiguous, through returns the link itself and false. Outside the base-URL form,
// relative links stay unchanged, and all other links lead elsewhere.
func (l links) through(link string) (string, bool) {
	// Browsers remove tabs, and control characters and spaces around a URL (URL standard, section 4.4).
	text := strings.TrimFunc(strings.ReplaceAll(link, "\t", ""), func(c rune) bool { return c <= ' ' })
	absolute := scheme.MatchString(text)
	switch {
	case strings.Contains(text, `\`): // browsers treat a backslash as a slash
		return link, false
	case l.prefix == "":
		return link, !absolute && !strings.HasPrefix(text, "//") // a relative link ends at our own 404
	case encodedPlaceholder.MatchString(text): // only the caller may name credentials
		return link, false
	}
	plain, fragment, fragmented := strings.Cut(text, "#")
	if !absolute {
		resolved, err := l.resolve(plain)
		if err != nil {
			return link, false
		}
		plain = resolved
	}
	to, err := target.Parse(plain)
	if err != nil || to.Origin() != l.target.Origin() {
		return link, false
	}
	url := l.base() + l.prefix + inPath(to)
	if fragmented {
		url += "#" + fragment
	}
	return url, true
}

// resolve returns the absolute URL of a URL that is relative to the target. The placeholders of the target's URL stay
// placeholders.
func (l links) resolve(relative string) (string, error) {
	base, err := url.Parse(escapePlaceholders.Replace(l.target.URL()))
	if err != nil {
		return "", err
	}
	to, err := base.Parse(relative)
	if err != nil {
		return "", err
	}
	return encodedPlaceholder.ReplaceAllString(to.String(), "{{$1}}"), nil
}

// inPath returns the URL of t as a path of the base-URL form has it after the prefix: <scheme>/<host[:port]>/<path>.
// The query follows the path.
func inPath(t *target.Target) string {
	return escapePlaceholders.Replace(strings.Replace(t.URL(), "://", "/", 1))
}

// escapePlaceholders percent-encodes braces and spaces, which a placeholder may contain and a URL must not contain.
var escapePlaceholders = strings.NewReplacer("{", "%7B", "}", "%7D", " ", "%20")

// link is one link of a Link header, with its parameters.
type link struct {
	target     string
	parameters string // with the ";" before them; "" for none
}

// readLinks parses a line of a Link header (RFC 8288, section 3). readLinks reports false for a line that is malformed,
// or that clients may read in different ways.
func readLinks(line string) (list []link, ok bool) {
	for _, member := range splitList(line) {
		inside, found := strings.CutPrefix(member, "<")
		to, parameters, closed := strings.Cut(inside, ">")
		if !found || !closed || strings.ContainsAny(parameters, "<>") || strings.Contains(to, "<") {
			return nil, false
		}
		list = append(list, link{to, parameters})
	}
	return list, true
}
