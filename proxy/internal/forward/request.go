package forward

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/lectern-dev/lectern/proxy/internal/target"
	"github.com/lectern-dev/lectern/proxy/internal/template"
	"github.com/lectern-dev/lectern/shared/apierr"
)

// outgoing is the request for the target, with the values of credentials inserted.
type outgoing struct {
	target *target.Target
	final  target.Final
	header http.Header
	body   *filledBody // nil: the caller's body streams
}

// maxInHeaders is the greatest total length of the values that the proxy inserts into headers, in bytes.
const maxInHeaders = 64 << 10

// build inserts the values into an allowed request, and changes the headers of d. The error refuses a body with values
// that is longer than maxBody bytes. The error also refuses a target that, with the values in its path, the policy does
// not allow.
func build(t *target.Target, d decision, maxBody int64) (outgoing, error) {
	values := make(map[string][]byte, len(d.verdict.Credentials))
	for _, c := range d.verdict.Credentials {
		values[c.ID] = c.Value.Reveal()
	}
	final, err := t.Finish(func(id string) []byte { return values[id] })
	if err != nil {
		return outgoing{}, deniedAfter(t, fault("with its credentials in it, the target "+err.Error()))
	}
	if !d.verdict.AllowsAfter(final.Match) {
		return outgoing{}, deniedAfter(t, "with its credentials in it, the target is not among the destinations")
	}
	out := outgoing{target: t, final: final, header: d.header}
	if d.body != nil {
		out.body = d.body.fill(values)
		if out.body.length-out.body.framing > maxBody {
			return outgoing{}, tooLarge(maxBody)
		}
	}
	if err := fillHeaders(out.header, values); err != nil {
		return outgoing{}, err
	}
	if d.verdict.Endpoint.Scrubs() {
		askSearchable(out.header)
	}
	return out, nil
}

// fillHeaders replaces the placeholders in the headers with values. The lists of values in sent belong to the caller's
// request, so fillHeaders puts new lists into sent. The error refuses values that exceed maxInHeaders.
func fillHeaders(sent http.Header, values map[string][]byte) error {
	if len(values) == 0 {
		return nil
	}
	if inHeaders(sent, values) > maxInHeaders {
		return apierr.New(apierr.PayloadTooLarge, fmt.Sprintf("The values that are put into headers are larger than the %d bytes that they may be together.", maxInHeaders))
	}
	for name, lines := range sent {
		sent[name] = fillLines(name, lines, values)
	}
	return nil
}

// inHeaders returns the total length of the values for all placeholders in h, in bytes.
func inHeaders(h http.Header, values map[string][]byte) (n int) {
	for name, sent := range h {
		for _, v := range sent {
			v, _ := headerText(name, v)
			template.Each(v, func(id string) { n += len(values[id]) })
		}
	}
	return n
}

// fillLines returns the lines of a header with values inserted. The slice sent stays unchanged.
func fillLines(name string, sent []string, values map[string][]byte) []string {
	filled := slices.Clone(sent)
	for i, v := range sent {
		text, basic := headerText(name, v)
		filled[i] = template.Replace(text, func(dst []byte, id string) []byte { return append(dst, values[id]...) })
		if basic {
			filled[i] = "Basic " + base64.StdEncoding.EncodeToString([]byte(filled[i]))
		}
	}
	return filled
}

// askSearchable changes the headers of a request to ask for an answer that the proxy can search. The answer must be
// whole, because a range can begin in the middle of a secret. The answer must also be in an encoding that the proxy
// decodes.
func askSearchable(h http.Header) {
	delete(h, "Range")
	delete(h, "If-Range")
	h["Accept-Encoding"] = []string{searchable(h["Accept-Encoding"])}
}

// searchable returns the encodings of an Accept-Encoding that the proxy can decode, and "identity" if there are none.
func searchable(sent []string) string {
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

func deniedAfter(t *target.Target, why fault) error {
	return apierr.New(apierr.DestinationNotAllowed, "With its credentials in it, the target on "+t.Authority()+" is not allowed any more. The destinations have to allow the path with the value in it.").Because(why)
}

// write turns r, a copy of the caller's request, into the request for the target. write sets the host, the port and the
// path that the policy allowed, and the query. A streaming body stays unchanged.
func (o *outgoing) write(r *http.Request) {
	path, err := url.PathUnescape(o.final.Path)
	if err != nil {
		path = o.final.Path // cannot happen: package target wrote it
	}
	r.URL = &url.URL{
		Scheme: o.target.Scheme, Host: o.target.Address(), Path: path, RawPath: o.final.Path,
		RawQuery: o.final.Query, ForceQuery: o.final.HasQuery,
	}
	r.Host, r.Header = o.target.Authority(), o.header
	if o.body == nil {
		return
	}
	r.Trailer, r.TransferEncoding = nil, nil
	r.ContentLength, r.Body = o.body.length, http.NoBody
	if o.body.length > 0 {
		r.Body = o.body.open()
		r.GetBody = func() (io.ReadCloser, error) { return o.body.open(), nil }
	}
}
