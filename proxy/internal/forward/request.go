package forward

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/lectern-dev/lectern/proxy/internal/target"
	"github.com/lectern-dev/lectern/proxy/internal/template"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/apierr"
)

// readTarget reads the one query parameter.
func readTarget(query string) (*target.Target, error) {
	invalid := func(text string) error { return apierr.New(apierr.InvalidTarget, text) }
	raw, found := "", false
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		if decoded, err := url.QueryUnescape(name); err != nil || decoded != "url" {
			return nil, invalid("The only query parameter is url. If the others belong to the target, escape the whole target: ?url=https%3A%2F%2F….")
		}
		if found {
			return nil, invalid("The parameter url was given twice.")
		}
		found = true
		var err error
		if raw, err = url.QueryUnescape(value); err != nil {
			return nil, invalid("The parameter url has a % that is followed by no two hex digits; escape the whole target.")
		}
	}
	if !found {
		return nil, invalid("The parameter url is missing: ?url=<escaped target>.")
	}
	t, err := target.Parse(raw)
	if err != nil {
		return nil, invalid("The target in the parameter url " + err.Error() + ".")
	}
	return t, nil
}

// removed are the headers that are not sent on: the proxy's own, those that speak for the caller's
// browser on our host, those of the hop before, those of proxies, and those of traces.
var removed = []string{
	TemplatingHeader, ProjectHeader, EnvironmentHeader, KeyHeader, "Cookie", "Cookie2",
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info",
	"Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
	"Forwarded", "Via", "X-Real-Ip", "True-Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Host", "X-Original-Uri",
	"X-Original-Forwarded-For", "X-Envoy-External-Address", "Cf-Connecting-Ip", "Fastly-Client-Ip", "X-Scheme",
	"Traceparent", "Tracestate", "Baggage", "B3", "Uber-Trace-Id", "X-Cloud-Trace-Context", "X-Amzn-Trace-Id",
}

// removedPrefixes are beginnings of further ones.
var removedPrefixes = []string{"X-Forwarded-", "X-B3-"}

func isRemoved(name string) bool {
	return slices.Contains(removed, name) || slices.ContainsFunc(removedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// outgoing is the request as it is going to be sent.
type outgoing struct {
	header http.Header
	uses   []policy.Use // of the headers
	final  target.Final

	held   []byte // a body that values are put into; nil: the body goes through as it comes
	cost   int64  // what it counts in the handler's memory
	syntax template.Syntax
	body   template.Survey
	filled *template.Body
}

// newOutgoing prepares the headers, values not yet in them.
func newOutgoing(r *http.Request) *outgoing {
	o := &outgoing{header: make(http.Header, len(r.Header))}
	var listed map[string]bool // by Connection, as of this hop (RFC 9110, section 7.6.1)
	if len(r.Header["Connection"]) > 0 {
		listed = map[string]bool{}
	}
	for _, line := range r.Header["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			listed[textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	for name, values := range r.Header {
		if isRemoved(name) || listed[name] && name != "Te" {
			continue
		}
		before := len(o.uses)
		for _, v := range values {
			template.Each(v, func(id string) { o.uses = append(o.uses, policy.Use{ID: id, Place: policy.InHeader}) })
		}
		if name == "X-Api-Key" && len(o.uses) == before {
			continue // a key for our own API
		}
		o.header[name] = values
	}
	// Maps have no order, and which of several faults is told should not change from one try to the next.
	slices.SortStableFunc(o.uses, func(a, b policy.Use) int { return strings.Compare(a.ID, b.ID) })
	return o
}

// holdBody reads a body that values are to be put into.
func (x *exchange) holdBody(o *outgoing) error {
	r := x.r
	if r.ContentLength == 0 {
		return nil
	}
	coding := strings.TrimSpace(strings.Join(r.Header["Content-Encoding"], ","))
	if coding != "" && !strings.EqualFold(coding, "identity") {
		return apierr.New(apierr.UnsupportedMediaType, "Values can not be put into a body that is compressed. Send it without Content-Encoding, or without X-Use-Body-Templating.")
	}
	types := r.Header["Content-Type"]
	var known bool
	if len(types) == 1 {
		o.syntax, known = template.SyntaxOf(types[0])
	}
	if !known {
		return apierr.New(apierr.UnsupportedMediaType, "Values can be put into bodies of text/*, JSON, XML and application/x-www-form-urlencoded; the Content-Type has to say which. Send others without X-Use-Body-Templating.")
	}
	most := x.h.o.MaxTemplatedBody
	if limit := x.verdict.Endpoint.Limits.RequestBytes; limit > 0 {
		most = min(most, limit)
	}
	if r.ContentLength > most {
		return tooLarge(most)
	}
	if err := x.readHeld(o, most); err != nil {
		return err
	}
	o.body = template.Examine(o.syntax, o.held)
	return nil
}

// readHeld reads the body into memory, of which all requests together have only so much.
func (x *exchange) readHeld(o *outgoing, most int64) error {
	var b bytes.Buffer
	body := &sentBody{source: x.r.Body, x: x}
	for {
		const step = 64 << 10
		if int64(b.Cap()-b.Len()) < step {
			want := int64(2*b.Cap() + step)
			if x.h.memory.Add(want) > x.h.o.TemplatedMemory {
				x.h.memory.Add(-want)
				o.drop(x.h)
				return apierr.NotAvailable(errMemory)
			}
			o.cost += want
			b.Grow(step)
		}
		n, err := io.CopyN(&b, body, min(step, most+1-int64(b.Len())))
		o.held = b.Bytes()
		switch {
		case int64(b.Len()) > most:
			o.drop(x.h)
			return tooLarge(most)
		case errors.Is(err, io.EOF):
			if o.held == nil {
				o.held = []byte{}
			}
			return nil
		case err != nil || n == 0:
			o.drop(x.h)
			return bodyFault(err)
		}
	}
}

// drop gives the memory of a held body back.
func (o *outgoing) drop(h *Handler) {
	h.memory.Add(-o.cost)
	o.cost, o.held = 0, nil
}

// fill puts the values in. What they change is decided on once more.
func (x *exchange) fill(o *outgoing) error {
	values := make(map[string][]byte, len(x.verdict.Credentials))
	for _, c := range x.verdict.Credentials {
		values[c.ID] = c.Value.Reveal()
	}
	var err error
	o.final, err = x.target.Finish(func(id string) []byte { return values[id] })
	if err != nil {
		x.record.why = "with its credentials in it, the target " + err.Error()
		return destinationAfter(x.target)
	}
	if !x.verdict.AllowsAfter(o.final.Match) {
		x.record.why = "with its credentials in it, the target is not among the destinations"
		return destinationAfter(x.target)
	}
	if len(values) == 0 {
		return nil
	}
	for name, sent := range o.header {
		put := sent
		for i, v := range sent {
			if now := template.Replace(v, func(dst []byte, id string) []byte { return append(dst, values[id]...) }); now != v {
				if &put[0] == &sent[0] {
					put = slices.Clone(sent) // the caller's request stays as it came
				}
				put[i] = now
			}
		}
		o.header[name] = put
	}
	if o.held != nil {
		o.filled = template.NewBody(o.syntax, values)
		if size := o.body.Size(o.filled); size > x.h.o.MaxTemplatedBody {
			return tooLarge(x.h.o.MaxTemplatedBody)
		}
	}
	if !x.verdict.Endpoint.KeepSecrets {
		// A part of an answer can begin in the middle of a secret, and nobody would know it.
		delete(o.header, "Range")
		delete(o.header, "If-Range")
		o.header["Accept-Encoding"] = []string{readable(x.r.Header["Accept-Encoding"])}
	}
	return nil
}

// readable returns what of an Accept-Encoding is left when only what can be searched is asked for.
func readable(sent []string) string {
	var kept []string
	for _, line := range sent {
		for part := range strings.SplitSeq(line, ",") {
			coding, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "gzip", "x-gzip", "zstd", "identity":
				kept = append(kept, strings.TrimSpace(part))
			}
		}
	}
	if len(kept) == 0 {
		return "identity"
	}
	return strings.Join(kept, ", ")
}
