// Package tokenendpoint requests access tokens from token endpoints (RFC 6749). A tenant chooses the endpoint. So the
// package checks its address, follows no redirect, and bounds time and size. Of an answer, its errors quote only the
// status and a known error code.
package tokenendpoint

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/proxy/egress"
	"github.com/lectern-dev/lectern/proxy/resource"
	"github.com/lectern-dev/lectern/shared/egressproxy"
)

const (
	// Within bounds a request with its answer.
	Within = 10 * time.Second
	// maxAnswer bounds the headers and the body of an answer, each in bytes.
	maxAnswer = 64 << 10
	// defaultLife is the life of a token whose answer has no expires_in.
	defaultLife = time.Hour
)

// Request is a request for a token: the settings of a Credential, and the secrets to send. RefreshToken is the present
// one, which may have replaced the one that the settings refer to.
type Request struct {
	resource.OAuth2
	ClientSecret string
	RefreshToken string
	PrivateKey   string `json:",omitempty"` // as privateKeyRef names it
	// Accepted is the Accepted of the last answer.
	Accepted resource.ClientAuthentication `json:"-"`
}

// Token is an answer of a token endpoint.
type Token struct {
	Access string
	// Refresh is the refresh token of the next request, which may be that of this request. Empty with grant ClientCredentials.
	Refresh string
	// Life is the time for which the access token is valid, counted from the start of the request. It is an hour if the
	// answer does not say, or says nothing that can be read.
	Life time.Duration
	// Warning says that the answer has a life of no use, as one clause for the status of a Credential. Empty: it has not.
	Warning string
	// Accepted is Body if the endpoint takes the client's secret there, although the request has Header. Otherwise it is empty.
	Accepted resource.ClientAuthentication
}

// Fault is why a token endpoint gave no token. Its text contains no secret, no address and nothing that the endpoint
// chose freely.
type Fault struct {
	// Refused reports that an early retry would not help, because the endpoint refused the request or the settings
	// cannot work.
	Refused bool
	// Code is the error code of RFC 6749, section 5.2, such as invalid_grant, or empty.
	Code string

	text string
}

// Error returns why there is no token, as one clause for the status of a Credential.
func (f *Fault) Error() string { return f.text }

// Client requests tokens.
type Client struct {
	// Guard decides which addresses the client may connect to. Required.
	Guard *egress.Guard
	// Proxy is the proxy of the network, which then resolves names.
	Proxy egressproxy.Config
}

// Fetch requests a token. If the endpoint refuses the client in a Header, Fetch sends the request once more, with the client
// in the Body. With [Request].Accepted, Fetch begins with the Body. Each request ends after [Within] at the latest. No request
// ends when ctx ends, because an answer that is lost may have replaced the refresh token. The error of Fetch is a *[Fault];
// the token may have a Refresh even then.
func (c *Client) Fetch(ctx context.Context, r Request) (Token, error) {
	token, err := c.fetch(ctx, r)
	fault, refused := errors.AsType[*Fault](err)
	if !refused || fault.Code != "invalid_client" || r.ClientSecret == "" || r.ClientAuthentication == resource.ClientInBody {
		return token, err
	}
	if r.Accepted == "" {
		r.Accepted = resource.ClientInBody
	} else {
		r.Accepted = ""
	}
	if other, err := c.fetch(ctx, r); err == nil {
		return other, nil
	}
	fault.text += ", by clientAuthentication: Header and by Body"
	token.Accepted = ""
	return token, fault
}

// fetch sends one request.
func (c *Client) fetch(ctx context.Context, r Request) (Token, error) {
	client, err := c.client(r)
	if err != nil {
		return Token{}, err
	}
	request, err := newRequest(context.WithoutCancel(ctx), r)
	if err != nil {
		return Token{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return Token{Accepted: r.Accepted}, faultOf(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Token{Accepted: r.Accepted}, faultOf(err)
	}
	token, err := read(response.StatusCode, body)
	token.Accepted = r.Accepted
	if r.Grant != resource.RefreshToken {
		token.Refresh = ""
	}
	return token, err
}

// newRequest returns the HTTP request for a token (RFC 6749, sections 4.4.2 and 6; RFC 7523, section 2.1), or a [Fault].
func newRequest(ctx context.Context, r Request) (*http.Request, error) {
	form := url.Values{}
	set := func(name, value string) {
		if value != "" {
			form.Set(name, value)
		}
	}
	switch r.Grant {
	case resource.RefreshToken:
		set("grant_type", "refresh_token")
		set("refresh_token", r.RefreshToken)
	case resource.JWTBearer:
		signed, err := assertion(r)
		if err != nil {
			return nil, err
		}
		set("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
		set("assertion", signed)
	default:
		set("grant_type", "client_credentials")
		set("scope", strings.Join(r.Scopes, " "))
		set("audience", r.Audience)
	}
	set("grant_type", r.GrantType)
	for name, value := range r.Parameters {
		form.Set(name, string(value))
	}
	public := r.ClientSecret == "" // a public client has no secret for a header
	inBody := public || cmp.Or(r.Accepted, r.ClientAuthentication) == resource.ClientInBody
	if inBody && !(public && r.Grant == resource.JWTBearer) { // the assertion names the client
		set("client_id", r.ClientID)
		set("client_secret", r.ClientSecret)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, &Fault{Refused: true, text: "tokenURL is not a URL"}
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	if !inBody {
		request.SetBasicAuth(url.QueryEscape(r.ClientID), url.QueryEscape(r.ClientSecret))
	}
	return request, nil
}

// client returns an HTTP client for one request, with the guard, the limits and the certificates of r. It returns a
// [Fault] if caBundle has no certificate.
func (c *Client) client(r Request) (*http.Client, error) {
	var roots *x509.CertPool // nil: the system's
	if r.CABundle != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(r.CABundle)) {
			return nil, &Fault{Refused: true, text: "caBundle has no certificate in PEM"}
		}
	}
	dialer := &net.Dialer{}
	if !c.Proxy.Enabled() {
		dialer.ControlContext = c.Guard.Control
	}
	transport := &http.Transport{
		Proxy:                  nil, // HTTPS_PROXY must not redirect requests with secrets
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		MaxResponseHeaderBytes: maxAnswer,
		DisableKeepAlives:      true,
	}
	c.Proxy.Use(transport, c.Guard.CheckName)
	return &http.Client{
		Timeout:       Within,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     bounded{transport},
	}, nil
}

// bounded sends requests by https alone, and cuts the body of an answer off after maxAnswer bytes.
type bounded struct{ next http.RoundTripper }

// RoundTrip sends a request, and refuses a URL with another scheme than https.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, errors.New("the scheme is not https")
	}
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	return answer, nil
}

// faultOf returns the Fault for an error of the HTTP client, without its text.
func faultOf(err error) *Fault {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	timeout, _ := errors.AsType[net.Error](err)
	_, unreached := errors.AsType[*net.OpError](err)
	_, unknown := errors.AsType[*net.DNSError](err)
	refusal, byProxy := errors.AsType[*egressproxy.Refusal](err)
	switch {
	case byProxy:
		return &Fault{text: refusal.Error()}
	case errors.Is(err, egress.ErrForbidden):
		return &Fault{Refused: true, text: "the host of tokenURL has an address that is not a public one"}
	case untrusted:
		return &Fault{text: "the certificate of the token endpoint is not trusted; caBundle, or CA_FILE of the operator, can name its authority"}
	case unknown:
		return &Fault{text: "the host of tokenURL is not known"}
	case timeout != nil && timeout.Timeout():
		return &Fault{text: fmt.Sprintf("the token endpoint did not answer within %d s", int(Within.Seconds()))}
	case unreached:
		return &Fault{text: "the token endpoint cannot be reached"}
	}
	return &Fault{text: "the request to the token endpoint failed"}
}
