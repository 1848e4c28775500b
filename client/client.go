// Package client is the Go client of the public API. The client reads a project's entries, their events and page views,
// its embeddables and their versions, and its experiments. The methods return typed records, iterators that follow
// cursors, or the bytes of the answer. [Client.Changes] and [Client.Follow] read the changes and removals of entries
// and events. An [Ingester] sends records, and an [Administrator] manages keys and removes data.
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
// The client retries a request if the server asks for a retry (429, 503) or a gateway fails (502, 504). The client also
// retries if the connection breaks, or is silent for too long ([Timeouts]). [Retry] bounds the attempts. If the server
// refuses a request, the error has an [*Error] in its chain, with a code such as [CodeEntryNotFound]. By default, the
// client does not follow redirects, because another host could get the key or the token.
//
// The package only depends on the standard library.
package client

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client reads one deployment of the API. A Client is safe for concurrent use.
type Client struct {
	transport
}

// Option sets one property of a [Client], an [Ingester] or an [Administrator], such as the API key.
type Option func(*transport)

// WithHTTPClient sends requests with h, so the time-outs of h apply to connecting and to answers. If h has no redirect
// policy, the client uses a copy of h that does not follow redirects.
func WithHTTPClient(h *http.Client) Option { return func(t *transport) { t.http = h } }

// WithTransport sends requests with the http.RoundTripper that wrap makes of the client's default transport, for
// example to trace requests. WithTransport has no effect with [WithHTTPClient].
func WithTransport(wrap func(http.RoundTripper) http.RoundTripper) Option {
	return func(t *transport) { t.wrap = wrap }
}

// WithUserAgent sends agent as the header User-Agent. The default is lectern-go.
func WithUserAgent(agent string) Option { return func(t *transport) { t.userAgent = agent } }

// WithRetry sets how often the client attempts a request, and how long it waits in between. Zero fields of r keep the
// default.
func WithRetry(r Retry) Option { return func(t *transport) { t.retry = r } }

// WithTimeouts sets how long the client waits for a connection, for an answer and for more of a body. With
// [WithHTTPClient], only Silence has an effect. Zero fields of o keep the default.
func WithTimeouts(o Timeouts) Option { return func(t *transport) { t.timeouts = o } }

// New returns a client of the API at baseURL, an absolute http or https URL that may have a path. A URL with a user,
// query or fragment is an error. New sends no request.
func New(baseURL string, options ...Option) (*Client, error) {
	t, err := newTransport(baseURL, 2*time.Minute, options)
	if err != nil {
		return nil, err
	}
	return &Client{transport: t}, nil
}

// newTransport returns the transport of a [Client], an [Ingester] or an [Administrator]. answer is the default of
// [Timeouts].Answer.
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
	if t.credential.key != nil && t.credential.token != nil {
		return transport{}, errors.New("an option for the API key (WithAPIKey, WithAPIKeyFile, WithAPIKeyFunc) and one for the token (WithTokenFile, WithTokenFunc) were both given; allowed: one of them")
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

// path returns the URL path of the segments. Each segment is escaped, so that an identifier may contain slashes.
func path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}
