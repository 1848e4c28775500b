package forward

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/proxy/internal/scrub"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/proxy/secret"
)

// maxFields is the greatest number of headers that an answer may have. The proxy searches each header, and each header
// takes more memory than its bytes.
const maxFields = 1000

// answer checks the target's answer to one request, and changes the answer for the caller.
type answer struct {
	endpoint      *policy.Endpoint
	searches      bool   // for the endpoint's credentials
	allowedOrigin string // pages of this origin may read the answer; "" for none
	idle          *idleTimer
	total         *time.Timer // bounds the request's time unless the answer is a stream; nil: no such bound
	span          *span
	record        *record
	links         links
	kept          *keptBody // of the request; nil: none
	endRequest    func()    // ends the read of the caller's body, because the answer has ended
}

// judge checks the target's answer, and prepares its headers, body and trailers for the caller. The error refuses the
// answer. The ReverseProxy of send calls judge as ModifyResponse.
func (a *answer) judge(res *http.Response) error {
	a.kept.answer()
	a.idle.enter(receiving)
	a.span.answered(res)
	streams := isStream(res)
	if a.total != nil && streams {
		a.total.Stop()
	}
	if err := checkHead(res); err != nil {
		return err
	}
	dropHeaders(res)
	a.links.rewrite(res.Header)
	if res.Body != http.NoBody {
		res.Body = &targetBody{ReadCloser: res.Body, idle: a.idle, maxBytes: a.endpoint.Limits.ResponseBytes, closing: a.endRequest}
	}
	body, err := a.scrub(res)
	if err != nil {
		return err
	}
	res.Body = &answerBody{ReadCloser: body, ended: func() { a.judgeTrailers(res) }}
	a.addHeaders(res.Header)
	if streams {
		res.Header["X-Accel-Buffering"] = []string{"no"} // nginx in front of the proxy passes each part on at once
	}
	return nil
}

// checkHead refuses an answer whose status or number of headers the proxy does not pass on.
func checkHead(res *http.Response) error {
	switch {
	case res.StatusCode < 200 || res.StatusCode > 999:
		return errStatus // includes 101: the proxy never asks for another protocol
	case fields(res.Header) > maxFields:
		return errFields
	}
	return nil
}

// dropHeaders removes the forbidden headers and trailers of an answer. If trailers remain and the caller uses HTTP/1,
// dropHeaders also removes the body's length.
func dropHeaders(res *http.Response) {
	droppedFromAnswers.remove(res.Header)
	droppedFromAnswers.removeTrailers(res.Trailer)
	if len(res.Trailer) > 0 && res.Request.ProtoMajor == 1 { // the caller's protocol: Request is a copy of its request
		// HTTP/2 has trailers after a body of known length; HTTP/1.1 has them after chunks only.
		dropLength(res)
	}
}

// scrub removes the credentials from the headers, counts them in the record, and returns the result of scrubBody. If
// the proxy does not search the endpoint's answers, scrub changes nothing and returns the body.
func (a *answer) scrub(res *http.Response) (body io.ReadCloser, err error) {
	if !a.searches {
		return res.Body, nil
	}
	a.record.scrubbed += a.search().header(res.Header)
	a.record.scrubbed += a.search().header(res.Trailer) // the names; the values come after the body
	return a.scrubBody(res)
}

// addHeaders sets SuccessHeader and headers for the security of browsers, and lets the allowed origin read the answer.
// For a request with credentials, addHeaders also keeps the answer out of shared caches.
func (a *answer) addHeaders(h http.Header) {
	h[SuccessHeader] = []string{"true"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	h["Content-Security-Policy"] = append(h["Content-Security-Policy"], "sandbox")
	allowOrigin(h, a.allowedOrigin)
	if len(a.record.verdict.Credentials) > 0 {
		keepPrivate(h)
	}
}

// judgeTrailers removes the forbidden trailers of an answer. If the proxy searches the endpoint's answers,
// judgeTrailers also removes credentials from the other trailers. The values of trailers arrive after the body.
func (a *answer) judgeTrailers(res *http.Response) {
	droppedFromAnswers.removeTrailers(res.Trailer)
	if a.searches {
		a.record.scrubbed += a.search().header(res.Trailer)
	}
}

// scrubBody returns the body of an answer, decoded and without the credentials, and adapts the headers to the new body.
// For an encoding that the proxy cannot decode, scrubBody fails, or returns the body unchanged if the endpoint allows
// unreadable answers.
func (a *answer) scrubBody(res *http.Response) (io.ReadCloser, error) {
	if !hasBody(res) {
		return res.Body, nil
	}
	coding := strings.ToLower(strings.TrimSpace(strings.Join(res.Header["Content-Encoding"], ",")))
	if !readable(coding) {
		if a.endpoint.PassUnreadable {
			return res.Body, nil
		}
		return nil, errUnreadable
	}
	delete(res.Header, "Content-Encoding")
	if (coding == "" || coding == "identity") && res.ContentLength <= maxWhole && !isStream(res) {
		return a.scrubWhole(res)
	}
	dropLength(res)
	return newScrubbedBody(res.Body, coding, scrub.NewFollowingStream(func() *scrub.Matcher { return a.search().matcher }), a.record), nil
}

// maxWhole is the length of the largest body, in bytes, that the proxy reads whole to search it before the caller's
// answer begins. For such a body the caller gets a Content-Length, and an error if the target breaks the body off.
// Compressed bodies and streams of events are not read whole.
const maxWhole = 32 << 10

// scrubWhole reads a body of announced length to its end, and returns the body without the credentials. The error is
// the error of reading the body.
func (a *answer) scrubWhole(res *http.Response) (io.ReadCloser, error) {
	defer res.Body.Close()
	text := make([]byte, res.ContentLength)
	if _, err := io.ReadFull(res.Body, text); err != nil {
		return nil, err
	}
	clean, found := a.search().matcher.Bytes(text)
	if found > 0 {
		clear(text)
		a.record.scrubbed += found
	}
	res.ContentLength = int64(len(clean))
	res.Header["Content-Length"] = []string{strconv.Itoa(len(clean))}
	return io.NopCloser(bytes.NewReader(clean)), nil
}

// isStream reports whether an answer has no announced length, or is a stream of events. The default time of a request
// does not bound such an answer.
func isStream(res *http.Response) bool {
	media, _, _ := strings.Cut(strings.Join(res.Header["Content-Type"], ","), ";")
	return res.ContentLength < 0 || strings.EqualFold(strings.TrimSpace(media), "text/event-stream")
}

func dropLength(res *http.Response) {
	delete(res.Header, "Content-Length")
	res.ContentLength = -1
}

// fields returns the number of headers in h. A header that is sent several times counts each time.
func fields(h http.Header) (n int) {
	for _, values := range h {
		n += len(values)
	}
	return n
}

// hasBody reports whether a body may follow the headers (RFC 9110, section 6.4.1).
func hasBody(res *http.Response) bool {
	return res.Request.Method != http.MethodHead && res.StatusCode != http.StatusNoContent &&
		res.StatusCode != http.StatusNotModified && res.Body != http.NoBody
}

// targetBody is the body of an answer as it comes from the target, before any search. targetBody limits the size of the
// body, and restarts the idle timer.
type targetBody struct {
	io.ReadCloser
	idle     *idleTimer
	maxBytes int64 // 0: any size
	n        int64
	closing  func()
}

// Read reads from the target, and restarts the idle timer. The error is errLong when the body is over its limit.
func (b *targetBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.n += int64(n)
		b.idle.moved()
	}
	if b.maxBytes > 0 && b.n > b.maxBytes {
		return 0, errLong
	}
	return n, err
}

// Close calls closing, so that the proxy reads no more of the caller's body, and closes the target's body.
func (b *targetBody) Close() error {
	b.closing()
	return b.ReadCloser.Close()
}

// answerBody is the body of an answer after the search, on its way to the caller.
type answerBody struct {
	io.ReadCloser
	ended func() // called once, when the trailers are known
	once  sync.Once
}

// Read reads the next part of the body for the caller, and calls ended at the end of the body.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.once.Do(b.ended)
	}
	return n, err
}

// Close closes the body, and then calls ended, unless Read has called ended before.
func (b *answerBody) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.ended)
	return err
}

// search holds the values of an endpoint's credentials, and finds the values in answers.
type search struct {
	values  [][]byte // of the credentials
	matcher *scrub.Matcher
}

// search returns the search for the credentials of the endpoint at this moment. The search includes credentials that the
// current request does not use, and former values. A target may store a credential from one request, and return it in
// the answer to another.
func (a *answer) search() *search {
	return a.endpoint.Secrets().Derive(func(values [][]byte) any {
		return &search{values, scrub.NewMatcher(values...)}
	}).(*search)
}

// header removes the credentials from the values in h, and deletes headers whose names contain a credential. found is
// the number of changed values and deleted headers.
func (s *search) header(h http.Header) (found int) {
	maps.DeleteFunc(h, func(name string, _ []string) bool {
		hit := s.inName(name)
		if hit {
			found++
		}
		return hit
	})
	for _, values := range h {
		for i, v := range values {
			clean, hit := s.matcher.String(v)
			if s.isFolded(clean) {
				clean, hit = secret.Redacted, true
			}
			if hit {
				values[i] = clean
				found++
			}
		}
	}
	return found
}

// isFolded reports whether a header's value contains a credential after its spaces are removed. net/http puts a space
// in place of each line break of a folded value (RFC 9112, section 5.2).
func (s *search) isFolded(value string) bool {
	joined := strings.ReplaceAll(value, " ", "")
	if len(joined) == len(value) {
		return false
	}
	_, hit := s.matcher.String(joined)
	return hit
}

// inName reports whether a header's name contains a credential. inName ignores the case of letters, because HTTP
// software changes the case of names. inName also finds encodings that do not depend on case, such as hexadecimal
// digits.
func (s *search) inName(name string) bool {
	if _, hit := s.matcher.String(name); hit {
		return true
	}
	for _, value := range s.values {
		for at := 0; at+len(value) <= len(name); at++ {
			if bytes.EqualFold([]byte(name[at:at+len(value)]), value) {
				return true
			}
		}
	}
	return false
}
