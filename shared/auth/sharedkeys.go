package auth

import (
	"errors"
	"net/http"

	"github.com/lectern-dev/lectern/shared/auth/trustedkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// SharedKeys are the configured keys of trusted services: INTERNAL_API_KEYS or INGEST_API_KEYS. There may be several,
// so that one can be replaced without a gap. A project's key is never a shared key.
type SharedKeys struct{ keys *trustedkeys.Set }

// NewSharedKeys returns a set of keys. An empty set accepts no request.
func NewSharedKeys(keys []config.Secret) *SharedKeys { return &SharedKeys{trustedkeys.New(keys)} }

// Protect passes requests to next that send exactly one [KeyHeader], with a key of the set. It answers others
// Unauthorized before it reads any of the body, or RateLimited if too many refused keys came from the client's network.
// Both have a projectId of null.
func (s *SharedKeys) Protect(next httpapi.HandlerFunc) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := findKey(r, s.keys); err != nil {
			return apierr.From(err).With("projectId", nil)
		}
		return next(w, r)
	}
}

// findKey returns the index of the request's key in keys. The error is the answer.
func findKey(r *http.Request, keys *trustedkeys.Set) (int, error) {
	key, err := keyOf(r.Header)
	if err != nil {
		return 0, apierr.NotAuthorized().Because(err)
	}
	found, err := keys.Find(httpapi.Network(httpapi.InfoFrom(r.Context()).ClientAddress), key)
	if errors.Is(err, trustedkeys.ErrUnknown) {
		return 0, apierr.NotAuthorized().Because(err)
	}
	return found, err
}
