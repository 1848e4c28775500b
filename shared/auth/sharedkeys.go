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

// SharedKeys are the configured keys of trusted services: INTERNAL_API_KEYS or INGEST_API_KEYS. There may be several,
// so that one can be replaced without a gap. A project's key is never a shared key.
type SharedKeys struct {
	hashes [][sha256.Size]byte
}

// NewSharedKeys returns a set of keys. It leaves out empty ones. An empty set accepts no request.
func NewSharedKeys(keys []config.Secret) *SharedKeys {
	s := &SharedKeys{}
	for _, k := range keys {
		if !k.IsZero() {
			s.hashes = append(s.hashes, sha256.Sum256([]byte(k.Reveal())))
		}
	}
	return s
}

// Accepts reports whether key is in the set. Its duration depends on the length of key and the number of keys, not on
// how much of a key matches.
func (s *SharedKeys) Accepts(key string) bool {
	given := sha256.Sum256([]byte(key))
	found := 0
	for i := range s.hashes {
		found |= subtle.ConstantTimeCompare(given[:], s.hashes[i][:])
	}
	return found == 1
}

var errSharedKey = errors.New("the shared key is not one of those configured")

// Protect passes requests to next that send exactly one [KeyHeader], with a key of the set. It answers others
// Unauthorized, with a projectId of null, before it reads any of the body.
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
