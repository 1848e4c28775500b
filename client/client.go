// Package client is the Go client of the public API. It reads a project's entries, their events and page views, its
// embeddables and their versions, and its experiments. It returns typed records, iterators that follow cursors, or the
// bytes of the answer. [Client.Changes] follows everything that is stored or removed.
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
// The client retries a request if the server asks for that (429, 503), a gateway fails (502, 504), or the connection
// breaks. [Retry] bounds the attempts. A refusal by the server is an [*Error] with its code. The client does not follow
// redirects, because they would send the key to another host.
//
// The package only depends on the standard library.
package client

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Client reads one deployment of the API. It is safe for concurrent use.
type Client struct {
	transport
}

// Option sets one property of a [Client] or an [Ingester].
type Option func(*transport)

// WithAPIKey sends key as X-Api-Key.
func WithAPIKey(key string) Option { return func(t *transport) { t.apiKey = key } }

// WithHTTPClient sends requests with h instead of an http.Client with the default transport. If h has no redirect policy,
// the client uses a copy of h that does not follow redirects.
func WithHTTPClient(h *http.Client) Option { return func(t *transport) { t.http = h } }

// WithUserAgent sends agent as User-Agent. Default: lectern-go.
func WithUserAgent(agent string) Option { return func(t *transport) { t.userAgent = agent } }

// WithRetry replaces [DefaultRetry].
func WithRetry(r Retry) Option { return func(t *transport) { t.retry = r } }

// New returns a client of the API at baseURL, an absolute http or https URL that may have a path.
func New(baseURL string, options ...Option) (*Client, error) {
	t, err := newTransport(baseURL, options)
	if err != nil {
		return nil, err
	}
	return &Client{transport: t}, nil
}

func newTransport(baseURL string, options []Option) (transport, error) {
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
		http:      &http.Client{},
		userAgent: "lectern-go",
		retry:     DefaultRetry(),
		sleep:     sleep,
		jitter:    randomJitter,
	}
	for _, set := range options {
		set(&t)
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
