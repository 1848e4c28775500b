// Package tokens verifies JSON Web Tokens of configured issuers. The sources are RFC 7519 and section 3.1.3.7 of OpenID
// Connect Core 1.0. A token proves an issuer and a subject. If the issuer has a groups claim, the token also proves the
// subject's groups. Package auth decides what the bearer of the token may do.
package tokens

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

const (
	// maxToken is the longest token in bytes.
	maxToken = 8 << 10

	// skew is how far the clock of an issuer may differ from the clock of this process.
	skew = time.Minute

	// maxGroups is how many groups of a token are looked at. A token with more groups has none.
	maxGroups = 50
)

// algorithms are the asymmetric ones of RFC 7518 and RFC 8037. A token that the public key could have signed as a
// secret, or that nobody signed, has another one.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// Issuer is an OpenID provider whose tokens are accepted: one element of TOKEN_ISSUERS.
type Issuer struct {
	// URL is the issuer exactly as tokens have it, an https URL. Its discovery document names the signing keys (OpenID
	// Connect Discovery 1.0).
	URL string `json:"url"`
	// Audiences are the values of which a token has at least one in its claim aud. Required.
	Audiences []string `json:"audiences"`
	// CAFile is a file with the certificates in PEM that sign the issuer's own. Empty: those of the system.
	CAFile string `json:"caFile"`
	// GroupsClaim is the claim with the groups of a subject, a list of texts. Empty: subjects have no groups.
	GroupsClaim string `json:"groupsClaim"`
	// TokenFile is a file with a bearer token for the issuer's discovery document and keys, which Kubernetes' API server
	// requires. Empty: none is sent.
	TokenFile string `json:"tokenFile"`
}

// Issuers is the value of TOKEN_ISSUERS: a list in JSON.
type Issuers []Issuer

// UnmarshalText reads the JSON list of TOKEN_ISSUERS. The error names the first fault and what is allowed.
func (list *Issuers) UnmarshalText(text []byte) error {
	*list = nil
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode((*[]Issuer)(list)); err != nil {
		return fmt.Errorf(`%w; allowed: a JSON list such as [{"url":"https://login.example.com","audiences":["lectern"]}]`, err)
	}
	for i, issuer := range *list {
		u, err := url.Parse(issuer.URL)
		switch {
		case err != nil || u.Host == "" || !secure(u):
			return fmt.Errorf("the url %q of an issuer; allowed: an https URL, as the claim iss of tokens has it", issuer.URL)
		case len(issuer.Audiences) == 0 || slices.Contains(issuer.Audiences, ""):
			return fmt.Errorf("the audiences %q of the issuer %s; allowed: a list of at least one text", issuer.Audiences, issuer.URL)
		case slices.ContainsFunc((*list)[:i], func(other Issuer) bool { return other.URL == issuer.URL }):
			return fmt.Errorf("the issuer %s is there twice", issuer.URL)
		}
	}
	return nil
}

// secure reports whether nobody on the way can change what u answers: u is https, or an address of this machine.
func secure(u *url.URL) bool {
	host := u.Hostname()
	return u.Scheme == "https" || u.Scheme == "http" && (host == "localhost" || host == "127.0.0.1" || host == "::1")
}

// Claims are the claims of a verified token about its bearer.
type Claims struct {
	Issuer, Subject string
	Groups          []string
	// ExpiresAt is the time from which the token is refused: its claim exp and the skew of a minute.
	ExpiresAt time.Time
}

// Verifier verifies the tokens of issuers, whose signing keys it reads and keeps.
type Verifier struct {
	issuers map[string]*issuer
}

type issuer struct {
	Issuer
	keys *keySet
}

// NewVerifier returns a Verifier. The error names the CAFile of an issuer that cannot be read.
func NewVerifier(issuers Issuers, log *slog.Logger) (*Verifier, error) {
	v := &Verifier{issuers: map[string]*issuer{}}
	for _, config := range issuers {
		keys, err := newKeySet(config, log)
		if err != nil {
			return nil, err
		}
		v.issuers[config.URL] = &issuer{config, keys}
	}
	return v, nil
}

// Run reads the signing keys of each issuer again and again, until ctx ends.
func (v *Verifier) Run(ctx context.Context) {
	done := make(chan struct{})
	for _, issuer := range v.issuers {
		go func() { issuer.keys.run(ctx); done <- struct{}{} }()
	}
	for range v.issuers {
		<-done
	}
}

// EachIssuer calls do with the URL of each issuer, and whether the last attempt to read its keys succeeded.
func (v *Verifier) EachIssuer(do func(url string, up bool)) {
	for url, issuer := range v.issuers {
		do(url, issuer.keys.up())
	}
}

// Unavailable is the error of [Verifier.Verify] for a token whose signing key is unknown while its issuer cannot be
// reached.
type Unavailable struct {
	Issuer string
	Err    error
}

// Error names the issuer and the fault.
func (u *Unavailable) Error() string {
	return fmt.Sprintf("the signing keys of %s cannot be read: %v", u.Issuer, u.Err)
}

// Unwrap returns the fault.
func (u *Unavailable) Unwrap() error { return u.Err }

// Verify returns the claims of a token that an issuer signed for one of its audiences, and that is valid now. The error
// is an [*Unavailable], the error of ctx, or else the reason why the token is refused. No error contains the token.
func (v *Verifier) Verify(ctx context.Context, token string) (*Claims, error) {
	if len(token) > maxToken {
		return nil, fmt.Errorf("the token has %d bytes; allowed: %d", len(token), maxToken)
	}
	from, err := issuerOf(token)
	if err != nil {
		return nil, err
	}
	issuer := v.issuers[from]
	if issuer == nil {
		return nil, errors.New("the issuer of the token is none of TOKEN_ISSUERS")
	}
	signed, err := jose.ParseSignedCompact(token, issuer.keys.algorithms)
	if err != nil {
		return nil, fmt.Errorf("the token is malformed, or its algorithm is not asymmetric: %w", err)
	}
	keys, err := issuer.keys.find(ctx, signed.Signatures[0].Header.KeyID)
	if err != nil {
		return nil, err
	}
	verifier := oidc.NewVerifier(issuer.URL, &oidc.StaticKeySet{PublicKeys: keys}, &oidc.Config{
		SkipClientIDCheck: true, SkipExpiryCheck: true, SupportedSigningAlgs: algorithms, // below: several audiences, another skew
	})
	verified, err := verifier.Verify(ctx, token)
	if err != nil {
		return nil, err
	}
	var times struct {
		NotBefore float64 `json:"nbf"`
	}
	if err := verified.Claims(&times); err != nil {
		return nil, err
	}
	c := &Claims{Issuer: verified.Issuer, Subject: verified.Subject, ExpiresAt: verified.Expiry.Add(skew)}
	switch now := time.Now(); {
	case !slices.ContainsFunc(issuer.Audiences, func(a string) bool { return slices.Contains(verified.Audience, a) }):
		return nil, errors.New("the token is for another audience")
	case c.Subject == "":
		return nil, errors.New("the token has no subject")
	case !now.Before(c.ExpiresAt):
		return nil, errors.New("the token has expired")
	case times.NotBefore > float64(now.Add(skew).Unix()):
		return nil, errors.New("the token is not valid yet")
	}
	c.Groups = groupsOf(verified, issuer.GroupsClaim)
	return c, nil
}

// issuerOf returns the claim iss of a token that nobody has verified yet.
func issuerOf(token string) (string, error) {
	malformed := errors.New("the token is malformed")
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", malformed
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", malformed
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return "", malformed
	}
	return claims.Issuer, nil
}

// groupsOf returns the groups in a claim of the token, or none if they are no list of texts or too many.
func groupsOf(t *oidc.IDToken, claim string) []string {
	var claims map[string]json.RawMessage
	var groups []string
	if claim == "" || t.Claims(&claims) != nil || json.Unmarshal(claims[claim], &groups) != nil || len(groups) > maxGroups {
		return nil
	}
	return groups
}
