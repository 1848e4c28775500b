package auth

import (
	"net/http"
	"slices"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/trustedkeys"
)

// SharedKeys are the configured keys of trusted services: INTERNAL_API_KEYS or INGEST_API_KEYS. There may be several
// keys, so that the operator can replace a key without a gap.
type SharedKeys struct {
	keys       *trustedkeys.Set
	issuers    *Issuers // nil: no tokens are accepted
	identities []Hash
	refused    *limits.Refusals
}

// NewSharedKeys returns the SharedKeys with the given keys. Without a key, Protect refuses every request.
func NewSharedKeys(keys []config.Secret) *SharedKeys { return &SharedKeys{keys: trustedkeys.New(keys)} }

// OrTokens returns SharedKeys that accept the keys of s, and tokens that v verifies and whose subject is one of
// identities.
func (s *SharedKeys) OrTokens(v *Verifier, identities Identities) *SharedKeys {
	if len(identities) == 0 {
		return s
	}
	with := &SharedKeys{keys: s.keys, issuers: v.o.Issuers, refused: v.refused}
	for _, i := range identities {
		with.identities = append(with.identities, i.Hash())
	}
	return with
}

// Protect passes a request to next if it has exactly one [KeyHeader], with a key of the set. Any other request gets
// Unauthorized before its body is read. While a client's network has sent too many refused keys, its requests with a
// key get RateLimited, even if the key is right. The answers of Protect have a projectId of null.
func (s *SharedKeys) Protect(next httpapi.HandlerFunc) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := s.check(r); err != nil {
			s.issuers.challenge(w, err)
			return apierr.From(err).With("projectId", nil)
		}
		return next(w, r)
	}
}

func (s *SharedKeys) check(r *http.Request) error {
	c, err := s.issuers.credentialOf(r.Header)
	if err == nil && c.token != "" {
		var b *bearer
		if b, err = s.issuers.verify(r.Context(), c.token, s.refused); err == nil && !slices.Contains(s.identities, b.hash) {
			err = apierr.RefusedNoGrant
		}
	}
	if err != nil || c.token != "" {
		return unauthorized(err)
	}
	_, err = findKey(r, s.keys)
	return err
}

// findKey returns the index of the request's key in keys. The error is the apierr to answer: Unauthorized, or
// RateLimited if the client's network has sent too many refused keys.
func findKey(r *http.Request, keys *trustedkeys.Set) (int, error) {
	key, err := keyOf(r.Header)
	if err != nil {
		return 0, unauthorized(err)
	}
	found, err := keys.Find(networkOf(r.Context()), key)
	return found, unauthorized(err)
}
