package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/trustedkeys"
)

// Config holds the settings of a service's HTTP server: addresses, trusted proxies, time-outs and bounds.
type Config struct {
	// The address of the documented paths: host:port. An empty host is all addresses of the machine.
	ListenPublic string `env:"LISTEN_PUBLIC" envDefault:":8080"`

	// The address of metrics and health, and of a service's ingest and administration. Never route to it from outside.
	ListenInternal string `env:"LISTEN_INTERNAL" envDefault:":9090"`

	// The URL at which clients reach the API. Links to further pages begin with it, and Secrets of APIKeys have it. Not
	// set: the scheme and host of the request, and none in Secrets.
	PublicURL string `env:"PUBLIC_URL"`

	// CIDRs of the trusted proxies, comma-separated. The server believes X-Forwarded-For, -Proto and -Host from these and
	// from the edge, and Forwarded in a request that has none of them. Or the word private: from a peer in a private network
	// (RFC 1918, 100.64.0.0/10, fc00::/7), the last public address in X-Forwarded-For is the client's. No other header is
	// believed. Not set: from the edge alone. X-Forwarded-Proto: https is believed from anyone.
	TrustedProxies Proxies `env:"TRUSTED_PROXIES"`

	// Keys that the edge and the services share, comma-separated, each of 16 to 256 visible ASCII characters. The edge
	// sends the first, and needs one. A service believes the forwarding headers of a request that has any of them. Not
	// set: of no request.
	EdgeKeys []config.Secret `env:"EDGE_KEYS"`

	// Origins whose pages may read the API from a browser, comma-separated; * for all. Not set: none.
	CORSAllowedOrigins []string `env:"CORS_ALLOWED_ORIGINS"`

	// How long a client may stall while it sends a body.
	ReadTimeout time.Duration `env:"READ_TIMEOUT" envDefault:"30s"`

	// How long a client may take for the next 256 KiB of an answer.
	WriteTimeout time.Duration `env:"WRITE_TIMEOUT" envDefault:"30s"`

	// How long a connection is kept without a request.
	IdleTimeout time.Duration `env:"IDLE_TIMEOUT" envDefault:"120s"`

	// How many requests the public address serves at once. One project may have an eighth of them, and so may one client
	// network, if TRUSTED_PROXIES tells which it is or the paths are internal. The networks of an IPv6 /48 may have a quarter.
	// Further requests get 503, or 429 over a share. 0: any number.
	MaxInFlight int `env:"MAX_IN_FLIGHT" envDefault:"1024"`

	// How many bytes of answers the process holds at once until clients have taken them. One project may have a quarter of
	// them. Answers of up to 64 KiB do not count, and a list of several chunks counts 2 MiB. Further requests get 503, or
	// 429 over a share. 0: any number.
	AnswerMemory int64 `env:"ANSWER_MEMORY" envDefault:"67108864"`

	// How long the server still accepts requests after a signal to stop. /readyz is 503 meanwhile, so that load
	// balancers stop sending.
	DrainDelay time.Duration `env:"DRAIN_DELAY" envDefault:"5s"`

	// How long requests in flight may take after DRAIN_DELAY. Then the server cuts them.
	DrainTimeout time.Duration `env:"DRAIN_TIMEOUT" envDefault:"30s"`

	// Whether the internal address serves Go's profiles under /debug/pprof/.
	Pprof bool `env:"PPROF" envDefault:"false"`

	// Public is the open listener of the documented paths. Nil: LISTEN_PUBLIC is opened.
	Public net.Listener `env:"-"`

	// Ready is called once both addresses are open, with the addresses (a port 0 is resolved). Nil: not called.
	Ready func(public, internal net.Addr) `env:"-"`
}

// Validate reports each value that is not allowed. The error joins a [*config.Fault] for each of them.
func (c Config) Validate() error {
	var faults []error
	invalid := func(variable string, given any, allowed string) {
		faults = append(faults, config.Invalid(variable, given, allowed))
	}
	for _, a := range []struct{ variable, given string }{
		{"LISTEN_PUBLIC", c.ListenPublic}, {"LISTEN_INTERNAL", c.ListenInternal},
	} {
		if _, port, err := net.SplitHostPort(a.given); err != nil || port == "" {
			invalid(a.variable, a.given, "host:port, such as :8080 or 127.0.0.1:8080")
		}
	}
	if c.PublicURL != "" && !isOrigin(c.PublicURL, true) {
		invalid("PUBLIC_URL", c.PublicURL, "an http or https URL without query, such as https://api.example.com")
	}
	for _, origin := range c.CORSAllowedOrigins {
		if origin != "*" && !isOrigin(origin, false) {
			invalid("CORS_ALLOWED_ORIGINS", origin, "*, or origins such as https://app.example.com")
		}
	}
	for _, key := range c.EdgeKeys {
		if !trustedkeys.Valid(key.Reveal()) {
			invalid("EDGE_KEYS", key, trustedkeys.Rule)
		}
	}
	for _, d := range []struct {
		variable string
		given    time.Duration
	}{
		{"READ_TIMEOUT", c.ReadTimeout},
		{"WRITE_TIMEOUT", c.WriteTimeout}, {"IDLE_TIMEOUT", c.IdleTimeout}, {"DRAIN_TIMEOUT", c.DrainTimeout},
	} {
		if d.given <= 0 {
			invalid(d.variable, d.given, "more than 0s")
		}
	}
	if c.DrainDelay < 0 {
		invalid("DRAIN_DELAY", c.DrainDelay, "0s or more")
	}
	if c.MaxInFlight < 0 {
		invalid("MAX_IN_FLIGHT", c.MaxInFlight, "0 or more")
	}
	if c.AnswerMemory < 0 {
		invalid("ANSWER_MEMORY", c.AnswerMemory, "0 or more")
	}
	return errors.Join(faults...)
}

// isOrigin reports whether text is an http or https URL of a scheme, a host and an optional port. If withPath is set, a
// path may follow.
func isOrigin(text string, withPath bool) bool {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || !sane(u.Host) {
		return false
	}
	return u.User == nil && u.RawQuery == "" && u.Fragment == "" && (withPath || u.Path == "")
}

// warn logs a warning if PUBLIC_URL is set without TRUSTED_PROXIES and EDGE_KEYS, because all clients may then have the
// address of one proxy. If inside is set, clients come without a proxy, and warn logs nothing.
func (c Config) warn(ctx context.Context, log *slog.Logger, inside bool) {
	if c.PublicURL != "" && !c.TrustedProxies.some() && len(c.EdgeKeys) == 0 && !inside {
		log.LogAttrs(ctx, slog.LevelWarn, "PUBLIC_URL is set and TRUSTED_PROXIES is not: behind a proxy all clients have its address, "+
			"and share the rates of requests without a key and of refused keys; allowed: private, or the CIDRs of the proxies in front; behind the edge, its EDGE_KEYS instead")
	}
}
