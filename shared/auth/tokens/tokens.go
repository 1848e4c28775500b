// Package tokens verifies JSON Web Tokens of configured issuers. The sources are RFC 7519 and section 3.1.3.7 of OpenID
// Connect Core 1.0. A token proves an issuer and a subject. If the issuer has a groups claim, the token also proves the
// subject's groups. The token of a ServiceAccount of Kubernetes also proves the uid of the account. Package auth decides what the bearer of the token may do.
package tokens

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/egressproxy"
)

const (
	// maxToken is the longest token in bytes.
	maxToken = 16 << 10

	// skew is how far the clock of an issuer may differ from the clock of this process.
	skew = time.Minute
)

// algorithms are the asymmetric ones of RFC 7518 and RFC 8037. A token that the public key could have signed as a
// secret, or that nobody signed, has another one.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512, jose.EdDSA,
}

// types are the values of the header typ of tokens for an API: JWT (RFC 7519) and at+jwt (RFC 9068). They are in lower case,
// without the prefix application/. Other types of tokens prove other things (RFC 8725, section 3.11).
var types = []string{"jwt", "at+jwt"}

// Issuer is an OpenID provider whose tokens are accepted: one element of TOKEN_ISSUERS.
type Issuer struct {
	// URL is the issuer exactly as tokens have it, an https URL. Its discovery document names the signing keys (OpenID
	// Connect Discovery 1.0).
	URL string `json:"url"`
	// Audiences are the values of which a token has at least one in its claim aud. Required.
	Audiences []string `json:"audiences"`
	// CAFile is a file with the certificates in PEM that sign the issuer's own. Empty: those of the system.
	CAFile string `json:"caFile"`
	// GroupsClaim is the claim with the groups of a subject, a list of texts or one text. Empty: subjects have no groups.
	GroupsClaim string `json:"groupsClaim"`
	// TokenFile is a file with a bearer token for the issuer's discovery document and keys, which Kubernetes' API server
	// requires. The token goes to the host of URL alone, which then also has the keys: of jwks_uri, only the path counts.
	// Empty: no token is sent.
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
	if err := json.Unmarshal(text, (*[]Issuer)(list), json.RejectUnknownMembers(true)); err != nil {
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
	// GroupsCut reports that the issuer has left the groups out of the token because there are too many.
	GroupsCut bool
	// UID is the uid of the subject, if the subject is a ServiceAccount of Kubernetes; otherwise empty.
	UID string
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

// NewVerifier returns a Verifier that reads keys through the proxy, if there is a proxy. The error names the CAFile of an
// issuer that cannot be read.
func NewVerifier(issuers Issuers, proxy egressproxy.Config, log *slog.Logger) (*Verifier, error) {
	v := &Verifier{issuers: map[string]*issuer{}}
	for _, config := range issuers {
		keys, err := newKeySet(config, proxy, log)
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

// Verify returns the claims of a token that an issuer signed for one of its audiences, and that is valid now. A token
// whose signing key is held needs no I/O. Before a wait for the issuer, Verify calls permit and returns its error. The
// error is also an [*Unavailable], or the error of ctx. For a refused token, the error wraps an [apierr.Refusal], or is
// [apierr.TooLarge]. No error contains a value of the token.
func (v *Verifier) Verify(ctx context.Context, token string, permit func() error) (*Claims, error) {
	if len(token) > maxToken {
		return nil, apierr.TooLarge(len(token), maxToken)
	}
	signed, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return nil, refused(apierr.RefusedMalformed, "the token is malformed, or its algorithm is not asymmetric")
	}
	claimed, err := parseClaims(signed.UnsafePayloadWithoutVerification())
	if err != nil {
		return nil, err
	}
	issuer := v.issuers[claimed.Issuer]
	if issuer == nil {
		return nil, refused(apierr.RefusedIssuer, "the issuer of the token is none of TOKEN_ISSUERS")
	}
	header := signed.Signatures[0].Header
	if err := claimed.check(header, issuer.Issuer, time.Now()); err != nil {
		return nil, err
	}
	keys, err := issuer.keys.find(ctx, header, permit)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(keys, func(k any) bool { _, err := signed.Verify(k); return err == nil }) {
		return nil, refused(apierr.RefusedSignature, "the signature of the token is wrong")
	}
	groups, named := texts(claimed.others[issuer.GroupsClaim])
	if issuer.GroupsClaim == "" {
		groups = nil
	}
	cut := issuer.GroupsClaim != "" && !named && claimed.groupsCut(issuer.GroupsClaim)
	if cut {
		issuer.keys.noteGroupsLeftOut()
	}
	return &Claims{claimed.Issuer, claimed.Subject, groups, cut, claimed.accountUID(), claimed.expires()}, nil
}

// refused returns the error of a refused token: a text for tests and debuggers, which wraps the reason.
func refused(why apierr.Refusal, text string) error { return fmt.Errorf("%s: %w", text, why) }

// claims are the claims of a token that nobody has verified yet.
type claims struct {
	Issuer    string         `json:"iss"`
	Subject   string         `json:"sub"`
	Audience  jsontext.Value `json:"aud"`
	Expiry    float64        `json:"exp"`
	NotBefore float64        `json:"nbf"`

	others map[string]jsontext.Value
}

// registered are the claims that decide whether a token is valid.
var registered = []string{"iss", "sub", "aud", "exp", "nbf"}

// parseClaims reads the claims of a token. Names that are there twice are refused, because readers differ in which of the values
// they take (RFC 8725, section 2.6). So are names that differ from those of registered by letter case alone.
func parseClaims(payload []byte) (*claims, error) {
	c := &claims{}
	if err := json.Unmarshal(payload, &c.others); err != nil {
		return nil, refused(apierr.RefusedMalformed, "the claims of the token are malformed")
	}
	for name := range c.others {
		if slices.ContainsFunc(registered, func(r string) bool { return name != r && strings.EqualFold(name, r) }) {
			return nil, refused(apierr.RefusedMalformed, "a name of a claim has the wrong letter case")
		}
	}
	if err := json.Unmarshal(payload, c); err != nil {
		return nil, refused(apierr.RefusedMalformed, "the claims of the token are malformed")
	}
	return c, nil
}

// groupsCut reports whether the issuer has left the groups out of the token. Such a token names its groups by reference
// (OpenID Connect Core 1.0, section 5.6.2), or its claim hasgroups is true. Entra sends both to members of many groups.
func (c *claims) groupsCut(claim string) bool {
	var sources map[string]jsontext.Value
	_ = json.Unmarshal(c.others["_claim_names"], &sources) // a token without the claim has no sources
	return sources[claim] != nil || strings.Trim(string(c.others["hasgroups"]), `"`) == "true"
}

// expires returns the time from which the token is refused.
func (c *claims) expires() time.Time {
	const latest = 1 << 40 // in the year 36812, after which no clock is compared
	return time.Unix(int64(min(max(c.Expiry, 0), latest)), 0).Add(skew)
}

// accountUID returns the uid of the ServiceAccount in the claim kubernetes.io, as Kubernetes' API server writes the
// claim. A claim of another form has no uid.
func (c *claims) accountUID() string {
	var k struct {
		ServiceAccount struct {
			UID string `json:"uid"`
		} `json:"serviceaccount"`
	}
	if claim := c.others["kubernetes.io"]; claim == nil || json.Unmarshal(claim, &k) != nil {
		return ""
	}
	return k.ServiceAccount.UID
}

// check returns the reason why a token with the claims is refused at now, or nil. check does not look at the signature.
func (c *claims) check(header jose.Header, issuer Issuer, now time.Time) error {
	kind, _ := header.ExtraHeaders[jose.HeaderType].(string)
	audiences, _ := texts(c.Audience)
	switch {
	case header.ExtraHeaders[jose.HeaderType] != nil && !slices.Contains(types, strings.TrimPrefix(strings.ToLower(kind), "application/")):
		return refused(apierr.RefusedMalformed, "the type of the token is none of JWT and at+jwt")
	case c.others["events"] != nil:
		return refused(apierr.RefusedMalformed, "the token is about an event, as a logout token is")
	case c.others["cnf"] != nil:
		return refused(apierr.RefusedMalformed, "the token is bound to a key of its bearer")
	case !slices.ContainsFunc(issuer.Audiences, func(a string) bool { return slices.Contains(audiences, a) }):
		return refused(apierr.RefusedAudience, "the token is for another audience")
	case c.Subject == "":
		return refused(apierr.RefusedMalformed, "the token has no subject")
	case !now.Before(c.expires()):
		return refused(apierr.RefusedExpired, "the token has expired")
	case c.NotBefore > float64(now.Add(skew).Unix()):
		return refused(apierr.RefusedExpired, "the token is not valid yet")
	}
	return nil
}

// texts returns the texts of a claim that is a list of texts or one text, and whether the claim has that form.
func texts(claim jsontext.Value) ([]string, bool) {
	var list []string
	if claim.Kind() == '"' {
		list = make([]string, 1)
		return list, json.Unmarshal(claim, &list[0]) == nil
	}
	if claim.Kind() != '[' || json.Unmarshal(claim, &list) != nil {
		return nil, false
	}
	return list, true
}
