package auth

import (
	"context"
	"log/slog"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
)

// Record holds the facts that a store has about a key, or about an identity that needs no key. No store holds the key
// itself.
type Record struct {
	ID        string // public: logs and lists contain it
	ProjectID string
	Name      string // given by its user; may be empty
	Scopes    Scopes
	Rate      int       // requests a second; 0: the default
	CreatedAt time.Time // UTC
	ExpiresAt time.Time // refused from then on; zero: never
	RevokedAt time.Time // zero: it is not revoked
	// LastUsedAt is exact to about a minute; zero: never used.
	LastUsedAt time.Time
	// Foreign reports that the key was imported and does not have the form of [Mint].
	Foreign bool
	// Identity is the subject or the group that has the rights of the record in place of a key. Zero: a key has the rights.
	Identity Identity
	// Owner is the object for which a program manages the key, or zero if people manage it. Look-ups of one key leave
	// Owner out.
	Owner Owner
}

// Owner is an object for which a program mints and replaces keys, such as a resource of Kubernetes.
type Owner struct {
	// Realm is the scope in which ID is unique: a cluster. One program manages all keys of a realm. Up to 256 bytes.
	Realm string
	// ID identifies the object in the realm, and is never used again for another object. Up to 256 bytes.
	ID string
	// Name is the name that people use for the object. Up to 512 bytes.
	Name string
}

// Active reports whether the key is accepted at now: it is neither revoked nor expired.
func (r Record) Active(now time.Time) bool {
	return r.RevokedAt.IsZero() && (r.ExpiresAt.IsZero() || now.Before(r.ExpiresAt))
}

// Store finds the record of a key. Package pgkeys implements a Store over Postgres. Other implementations, such as the
// cache in Redis, ask that Store.
type Store interface {
	// Lookup returns the record of the project's key with that hash, even if the key is revoked or expired. The error
	// is [ErrUnknown] if the project has no such key. Any other error is a fault of the store. A cache fills in only
	// what a [Principal] has, and Foreign.
	Lookup(ctx context.Context, projectID string, h Hash) (Record, error)
	// Grants returns the project's records with one of the hashes, of identities, even if a record is revoked or has
	// expired. An error is a fault of the store.
	Grants(ctx context.Context, projectID string, hashes []Hash) ([]Record, error)
	// EachProject calls do with the records of all projects that have one of the hashes, by the bytes of projectID, until do
	// returns false. An error is a fault of the store.
	EachProject(ctx context.Context, hashes []Hash, do func(Record) bool) error
}

// The reasons to refuse a key, as errors of this package.
const (
	ErrMissing   = apierr.RefusedNoKey
	ErrMalformed = apierr.RefusedMalformed
	ErrUnknown   = apierr.RefusedUnknown
	ErrExpired   = apierr.RefusedExpired
	ErrRevoked   = apierr.RefusedRevoked
)

// Principal is the client that an accepted key or token identifies, with the client's rights in one project.
type Principal struct {
	KeyID     string // of the record that gives the rights; of several groups, the first by id
	ProjectID string
	Name      string // given by its user; may be empty
	Scopes    Scopes
	Rate      int       // requests a second; 0: the default
	ExpiresAt time.Time // zero: never

	counted string // for whom the rate counts; empty: for the key
}

// expired reports whether the principal's rights have ended at now.
func (p Principal) expired(now time.Time) bool {
	return !p.ExpiresAt.IsZero() && !now.Before(p.ExpiresAt)
}

// LogValue returns the ids of the key and of the project, so that a log has no name of a principal.
func (p Principal) LogValue() slog.Value {
	return slog.GroupValue(slog.String("key_id", p.KeyID), slog.String("project_id", p.ProjectID))
}
