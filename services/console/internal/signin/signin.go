// Package signin owns the settings by which visitors sign in with an OpenID provider (OpenID Connect Core 1.0). The service
// itself never talks to the provider: the page in the browser does, as a public client. The package gives the page its
// settings, and names the origins that the page may connect to.
package signin

import (
	"encoding/json"
	"errors"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/lectern-dev/lectern/shared/config"
)

// Config names the OpenID provider. Without an issuer, visitors sign in by API keys alone.
type Config struct {
	// URL of the OpenID provider with which visitors of the console sign in. Services must trust it too: see
	// TOKEN_ISSUERS. Not set: visitors sign in by API keys alone.
	Issuer string `env:"CONSOLE_ISSUER"`
	// Id of the console at the provider, as a public client with PKCE. Required with CONSOLE_ISSUER.
	ClientID string `env:"CONSOLE_CLIENT_ID"`
	// Scopes that the console asks the provider for, separated by spaces. openid is required. Many providers renew tokens
	// only with offline_access.
	Scopes string `env:"CONSOLE_SCOPES" envDefault:"openid"`
	// Audience of the tokens that the console sends. Not set: the client id.
	Audience string `env:"CONSOLE_AUDIENCE"`
	// Origins of the provider beyond the one of CONSOLE_ISSUER, comma-separated, such as that of its token endpoint. The
	// page may connect to these and to no others.
	Origins []string `env:"CONSOLE_ISSUER_ORIGINS"`
}

// origin matches the origins that a Content-Security-Policy may name here: without wildcards, and HTTPS alone outside of
// the machine itself.
var origin = regexp.MustCompile(`^(https://[a-z0-9][a-z0-9.-]*|http://(localhost|127\.0\.0\.1))(:[0-9]+)?$`)

// issuerOrigin returns the origin of the issuer, or "" if the issuer is not allowed.
func (c Config) issuerOrigin() string {
	u, err := url.Parse(c.Issuer)
	if err != nil || u.User != nil || strings.ContainsAny(c.Issuer, "?#") || !origin.MatchString(u.Scheme+"://"+u.Host) {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Validate reports each setting that is not allowed, and settings without the setting that they need.
func (c Config) Validate() error {
	if c.Issuer == "" {
		var errs []error
		for _, s := range []struct{ name, value string }{
			{"CONSOLE_CLIENT_ID", c.ClientID}, {"CONSOLE_AUDIENCE", c.Audience}, {"CONSOLE_ISSUER_ORIGINS", strings.Join(c.Origins, ",")},
		} {
			if s.value != "" {
				errs = append(errs, &config.Fault{Variable: s.name, Problem: "is set without CONSOLE_ISSUER"})
			}
		}
		return errors.Join(errs...)
	}
	var errs []error
	if c.issuerOrigin() == "" {
		errs = append(errs, config.Invalid("CONSOLE_ISSUER", c.Issuer, "https://HOST with a path if need be, or http://localhost, in lower case and without user, query and fragment"))
	}
	if c.ClientID == "" {
		errs = append(errs, &config.Fault{Variable: "CONSOLE_CLIENT_ID", Problem: "is not set, and is required with CONSOLE_ISSUER"})
	}
	if !slices.Contains(strings.Fields(c.Scopes), "openid") {
		errs = append(errs, config.Invalid("CONSOLE_SCOPES", c.Scopes, "scopes separated by spaces, with openid"))
	}
	for _, o := range c.Origins {
		if !origin.MatchString(o) {
			errs = append(errs, config.Invalid("CONSOLE_ISSUER_ORIGINS", o, "origins such as https://login.example.com, in lower case and without a path"))
		}
	}
	return errors.Join(errs...)
}

// ConnectOrigins returns the origins of the provider, that of the issuer first. Without an issuer there are none.
func (c Config) ConnectOrigins() []string {
	if c.Issuer == "" {
		return nil
	}
	return append([]string{c.issuerOrigin()}, c.Origins...)
}

// Element returns the HTML element by which the page learns the settings, or "" without an issuer. The element holds no
// script, so the Content-Security-Policy stays as strict.
func (c Config) Element() string {
	if c.Issuer == "" {
		return ""
	}
	audience := c.Audience
	if audience == "" {
		audience = c.ClientID
	}
	settings, err := json.Marshal(map[string]any{
		"issuer": c.Issuer, "clientId": c.ClientID, "scopes": c.Scopes, "asked": c.Audience, "audience": audience, "origins": c.ConnectOrigins(),
	})
	if err != nil {
		panic(err) // texts alone
	}
	return `<meta name="lectern-sign-in" content="` + html.EscapeString(string(settings)) + `" />`
}
