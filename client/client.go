// Package client is the Go client of the public API. It reads a project's entries, their events and page views, its
// embeddables and their versions, and its experiments. It returns typed records, iterators that follow cursors, or the
// bytes of the answer. [Client.Changes] and [Client.Follow] read everything that is stored or removed.
//
//	c, err := client.New("https://api.example.com", client.WithAPIKey(os.Getenv("LECTERN_API_KEY")))
//	if err != nil {
//		return err
//	}
//	for entry, err := range c.Entries(ctx, "pr_1", client.EntryQuery{Direction: client.Ascending}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(entry.EntryID, entry.Data)
//	}
//
// The client retries a request if the server asks for that (429, 503) or a gateway fails (502, 504). It also retries if
// the connection breaks or falls silent ([Timeouts]). [Retry] bounds the attempts. A refusal by the server is an [*Error]
// with its code, such as [CodeEntryNotFound]. The client does not follow redirects, because they would send the key to
// another host.
//
// The package only depends on the standard library.
package client

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client reads one deployment of the API. It is safe for concurrent use.
type Client struct {
	transport
}

// Option sets one property of a [Client] or an [Ingester].
type Option func(*transport)

// WithHTTPClient sends requests with h, whose own time-outs for connecting and answers then apply. If h has no redirect
// policy, the client uses a copy of h that does not follow redirects.
func WithHTTPClient(h *http.Client) Option { return func(t *transport) { t.http = h } }

// WithTransport sends requests with the transport that wrap makes of the default one. It has no effect with
// [WithHTTPClient].
func WithTransport(wrap func(http.RoundTripper) http.RoundTripper) Option {
	return func(t *transport) { t.wrap = wrap }
}

// WithUserAgent sends agent as User-Agent. Default: lectern-go.
func WithUserAgent(agent string) Option { return func(t *transport) { t.userAgent = agent } }

// WithRetry sets the bounds of retries.
func WithRetry(r Retry) Option { return func(t *transport) { t.retry = r } }

// WithTimeouts sets the time-outs.
func WithTimeouts(o Timeouts) Option { return func(t *transport) { t.timeouts = o } }

// New returns a client of the API at baseURL, an absolute http or https URL that may have a path.
func New(baseURL string, options ...Option) (*Client, error) {
	t, err := newTransport(baseURL, 2*time.Minute, options)
	if err != nil {
		return nil, err
	}
	return &Client{transport: t}, nil
}

// newTransport returns a transport that waits for the headers of an answer as long as answer by default.
func newTransport(baseURL string, answer time.Duration, options []Option) (transport, error) {
	base, err := url.Parse(baseURL)
	switch {
	case err != nil:
		return transport{}, fmt.Errorf("base URL: %w", err)
	case base.Scheme != "http" && base.Scheme != "https", base.Host == "":
		return transport{}, fmt.Errorf("base URL %q: want http://HOST or https://HOST", baseURL)
	case base.RawQuery != "" || base.Fragment != "" || base.User != nil:
		return transport{}, fmt.Errorf("base URL of host %q: want neither user, query nor fragment", base.Host)
	}
	t := transport{
		base:      strings.TrimRight(base.String(), "/"),
		userAgent: "lectern-go",
		wrap:      func(t http.RoundTripper) http.RoundTripper { return t },
		sleep:     sleep,
		jitter:    randomJitter,
	}
	for _, set := range options {
		set(&t)
	}
	t.retry = t.retry.withDefaults()
	t.timeouts.Connect = cmp.Or(t.timeouts.Connect, 10*time.Second)
	t.timeouts.Answer = cmp.Or(t.timeouts.Answer, answer)
	t.timeouts.Silence = cmp.Or(t.timeouts.Silence, 2*time.Minute)
	if t.http == nil {
		t.http = &http.Client{Transport: t.wrap(t.timeouts.transport())}
	}
	if t.http.CheckRedirect == nil {
		h := *t.http
		h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		t.http = &h
	}
	return t, nil
}

// path joins escaped segments, so that an identifier may contain slashes.
func path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}
