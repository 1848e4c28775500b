package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/httpapi"
)

// SharedKeys are the configured keys of trusted services: INTERNAL_API_KEYS or INGEST_API_KEYS. They
// are several so that one can be replaced without a gap. They are no project's API keys and the other
// way round.
type SharedKeys struct {
	hashes [][sha256.Size]byte
}

// NewSharedKeys makes a set of keys. Empty ones are left out; a set of none accepts nobody.
func NewSharedKeys(keys []config.Secret) *SharedKeys {
	s := &SharedKeys{}
	for _, k := range keys {
		if !k.IsZero() {
			s.hashes = append(s.hashes, sha256.Sum256([]byte(k.Reveal())))
		}
	}
	return s
}

// Accepts tells whether key is one of the set. How long it takes depends on neither: hashes are
// compared, in constant time, and always all of them.
func (s *SharedKeys) Accepts(key string) bool {
	given := sha256.Sum256([]byte(key))
	found := 0
	for i := range s.hashes {
		found |= subtle.ConstantTimeCompare(given[:], s.hashes[i][:])
	}
	return found == 1
}

var errSharedKey = errors.New("the shared key is not one of those configured")

// Protect lets requests through to next whose [KeyHeader] is one of the set, exactly once. Others are
// told Unauthorized, with a projectId of null, before anything of the body is read.
func (s *SharedKeys) Protect(next httpapi.HandlerFunc) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		key, err := keyOf(r.Header)
		if err == nil && !s.Accepts(key) {
			err = errSharedKey
		}
		if err != nil {
			return apierr.NotAuthorized().With("projectId", nil).Because(err)
		}
		return next(w, r)
	}
}
