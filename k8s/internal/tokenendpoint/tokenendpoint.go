// Package tokenendpoint requests access tokens from token endpoints (RFC 6749). A tenant chooses the endpoint. So the
// package checks its address, follows no redirect, and bounds time and size. Of an answer, its errors quote only the
// status and a known error code.
package tokenendpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/lectern-dev/lectern/proxy/egress"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/proxy/resource"
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
}

// Token is an answer of a token endpoint.
type Token struct {
	Access string
	// Refresh is the refresh token of the next request, which may be that of this request. Empty with grant ClientCredentials.
	Refresh string
	// Life is the time for which the access token is valid, counted from the start of the request. It is an hour if the
	// answer does not tell.
	Life time.Duration
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
}

// Fetch requests a token, and ends after [Within] at the latest. It does not end when ctx ends, because an answer that
// is lost may have replaced the refresh token. Its error is a *[Fault]; the token may have a Refresh even then.
func (c *Client) Fetch(ctx context.Context, r Request) (Token, error) {
	client, err := c.client(r)
	if err != nil {
		return Token{}, err
	}
	began := time.Now()
	token, err := source(context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, client), r).Token()
	if err != nil {
		return Token{}, faultOf(err)
	}
	var answer Token
	if r.Grant == resource.RefreshToken {
		answer.Refresh = token.RefreshToken
	}
	if len(token.AccessToken) > policy.MaxValue {
		return answer, &Fault{text: fmt.Sprintf("the token endpoint answered with a token of %d bytes; allowed: up to %d", len(token.AccessToken), policy.MaxValue)}
	}
	answer.Access, answer.Life = token.AccessToken, defaultLife
	if !token.Expiry.IsZero() {
		answer.Life = max(token.Expiry.Sub(began), 0)
	}
	return answer, nil
}

// source returns a source of tokens for r. The first call of its method Token sends the request.
func source(ctx context.Context, r Request) oauth2.TokenSource {
	style := oauth2.AuthStyleInHeader
	if r.ClientAuthentication == resource.ClientInBody || r.ClientSecret == "" { // a public client has no secret for a header
		style = oauth2.AuthStyleInParams
	}
	if r.Grant == resource.RefreshToken {
		c := oauth2.Config{ClientID: r.ClientID, ClientSecret: r.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: r.TokenURL, AuthStyle: style}}
		return c.TokenSource(ctx, &oauth2.Token{RefreshToken: r.RefreshToken})
	}
	c := clientcredentials.Config{ClientID: r.ClientID, ClientSecret: r.ClientSecret, TokenURL: r.TokenURL, Scopes: r.Scopes, AuthStyle: style}
	if r.Audience != "" {
		c.EndpointParams = map[string][]string{"audience": {r.Audience}}
	}
	return c.TokenSource(ctx)
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
	dialer := &net.Dialer{ControlContext: c.Guard.Control}
	return &http.Client{
		Timeout:       Within,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: bounded{&http.Transport{
			Proxy:                  nil, // HTTPS_PROXY must not redirect requests with secrets
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			MaxResponseHeaderBytes: maxAnswer,
			DisableKeepAlives:      true,
		}},
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

// codes are the error codes of RFC 6749, section 5.2. Another code may be any text.
var codes = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope"}

// faultOf returns the Fault for an error of oauth2 or of the HTTP client. Of the error, it takes over the status and a
// code in [codes], and no other text.
func faultOf(err error) *Fault {
	if answered, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		status := answered.Response.StatusCode
		f := &Fault{Refused: status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout}
		f.text = fmt.Sprintf("the token endpoint answered with status %d", status)
		switch {
		case slices.Contains(codes, answered.ErrorCode):
			f.Code = answered.ErrorCode
			f.text += " and the error " + f.Code
		case status >= 300 && status < 400:
			f.text += ", a redirect, which the operator does not follow"
		}
		return f
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	timeout, _ := errors.AsType[net.Error](err)
	_, unreached := errors.AsType[*net.OpError](err)
	_, unknown := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, egress.ErrForbidden):
		return &Fault{Refused: true, text: "the host of tokenURL has an address that is not a public one"}
	case untrusted:
		return &Fault{text: "the certificate of the token endpoint is not trusted"}
	case unknown:
		return &Fault{text: "the host of tokenURL is not known"}
	case timeout != nil && timeout.Timeout():
		return &Fault{text: fmt.Sprintf("the token endpoint did not answer within %d s", int(Within.Seconds()))}
	case unreached:
		return &Fault{text: "the token endpoint cannot be reached"}
	}
	if _, sent := errors.AsType[*url.Error](err); sent {
		return &Fault{text: "the request to the token endpoint failed"}
	}
	return &Fault{text: fmt.Sprintf("the answer of the token endpoint cannot be read; allowed: JSON with access_token, up to %d bytes", maxAnswer)}
}
