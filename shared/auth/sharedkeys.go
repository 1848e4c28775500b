package auth

import (
	"errors"
	"net/http"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/trustedkeys"
)

// SharedKeys are the configured keys of trusted services: INTERNAL_API_KEYS or INGEST_API_KEYS. There may be several,
// so that one can be replaced without a gap. A project's key is never a shared key.
type SharedKeys struct{ keys trustedkeys.Set }

// NewSharedKeys returns a set of keys. An empty set accepts no request.
func NewSharedKeys(keys []config.Secret) *SharedKeys { return &SharedKeys{trustedkeys.New(keys)} }

// ProtectAct is Protect for an act that the audit log must name: as [AdminKeys.Protect] logs it, with holder as the
// actor.
func (s *SharedKeys) ProtectAct(holder, action string, next AdminHandler) httpapi.HandlerFunc {
	return s.Protect(func(w http.ResponseWriter, r *http.Request) error {
		act := &Act{}
		err := next(w, r, act)
		audit(r.Context(), holder, action, act, err)
		return err
	})
}

var errSharedKey = errors.New("the shared key is not one of those configured")

// Protect passes requests to next that send exactly one [KeyHeader], with a key of the set. It answers others
// Unauthorized, with a projectId of null, before it reads any of the body.
func (s *SharedKeys) Protect(next httpapi.HandlerFunc) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		key, err := keyOf(r.Header)
		if err == nil && s.keys.Find(key) < 0 {
			err = errSharedKey
		}
		if err != nil {
			return apierr.NotAuthorized().With("projectId", nil).Because(err)
		}
		return next(w, r)
	}
}
