// Package egressproxy sends requests to third parties through the HTTP proxy of the network, if there is one.
package egressproxy

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/lectern-dev/lectern/shared/config"
)

// Config names the proxy.
type Config struct {
	// The HTTP proxy of the network, such as http://proxy.example.com:3128, for requests to targets, token endpoints and issuers;
	// those over https go by CONNECT. The proxy resolves their names, so it must refuse private addresses itself. Issuers with
	// a tokenFile are reached directly. HTTPS_PROXY has no effect. Not set: no proxy.
	URL config.ServerURL `env:"EGRESS_PROXY"`
}

// Validate reports a URL that is not allowed.
func (c Config) Validate() error {
	if u, err := url.Parse(c.URL.Reveal()); c.Enabled() && (err != nil || u.Scheme != "http" || u.Port() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "") {
		return config.Invalid("EGRESS_PROXY", c.URL, "a URL such as http://user@proxy.example.com:3128, with a port and without a path")
	}
	return nil
}

// Enabled reports whether there is a proxy.
func (c Config) Enabled() bool { return !c.URL.IsZero() }

// Use makes t send all requests through the proxy, if there is one. An error of judge for the host of a request refuses the
// request; nil: no host is refused. The dialer of t must allow the address of the proxy.
func (c Config) Use(t *http.Transport, judge func(host string) error) {
	if !c.Enabled() {
		return
	}
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		if judge != nil {
			if err := judge(r.URL.Hostname()); err != nil {
				return nil, err
			}
		}
		u, err := url.Parse(c.URL.Reveal())
		if err == nil && c.URL.HasPasswordFile() {
			var password string
			password, err = c.URL.Password()
			u.User = url.UserPassword(u.User.Username(), password)
		}
		return u, err
	}
	t.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
		if answer.StatusCode != http.StatusOK {
			return &Refusal{answer.StatusCode}
		}
		return nil
	}
}

// Refusal is an answer of the proxy to CONNECT.
type Refusal struct{ Status int }

// Error returns the status, for a log and for the status of a Credential.
func (r *Refusal) Error() string {
	return fmt.Sprintf("EGRESS_PROXY answered with status %d", r.Status)
}
