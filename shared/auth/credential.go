package auth

import (
	"errors"
	"net/http"
	"strings"

	"github.com/lectern-dev/lectern/shared/apierr"
)

// Credential is the API key or the token with which a request proves its rights.
type Credential struct{ key, token string }

// parseCredential returns the credential of a header that may have either. A JSON Web Token begins with the base64 of `{"`
// and has three parts (RFC 7515, section 7.1). Without issuers, every text is a key.
func (i *Issuers) parseCredential(text string) Credential {
	if i != nil && strings.HasPrefix(text, "eyJ") && strings.Count(text, ".") == 2 {
		return Credential{token: text}
	}
	return Credential{key: text}
}

// credentialOf returns the credential in the headers h: a [KeyHeader], or an Authorization of the scheme Bearer if
// issuers are configured (RFC 6750, section 2.1). The error is [ErrMissing] without a credential. The error is
// [ErrMalformed] for both, or if a header is sent twice, because the server cannot know which value the client means.
func (i *Issuers) credentialOf(h http.Header) (Credential, error) {
	token := ""
	if i != nil {
		for n, value := range h["Authorization"] {
			scheme, rest, _ := strings.Cut(value, " ")
			switch {
			case n > 0:
				return Credential{}, ErrMalformed
			case strings.EqualFold(scheme, "Bearer"):
				token = strings.TrimSpace(rest)
			}
		}
	}
	switch {
	case token != "" && len(h[KeyHeader]) > 0:
		return Credential{}, ErrMalformed
	case token != "":
		return Credential{token: token}, nil
	}
	key, err := keyOf(h)
	return Credential{key: key}, err
}

// keyOf returns the key in the headers h. The error is [ErrMissing], or [ErrMalformed] if the header is sent twice.
func keyOf(h http.Header) (string, error) {
	switch values := h[KeyHeader]; len(values) {
	case 0:
		return "", ErrMissing
	case 1:
		return values[0], nil
	}
	return "", ErrMalformed
}

// challenge says in an answer Unauthorized which credentials are accepted (RFC 9110, section 11.6.1). Without issuers,
// the answer names keys alone.
func (i *Issuers) challenge(w http.ResponseWriter, err error) {
	if e, ok := errors.AsType[*apierr.Error](err); i != nil && ok && e.Code() == apierr.Unauthorized {
		w.Header().Set("WWW-Authenticate", "ApiKey, Bearer")
	}
}
