package auth

import (
	"context"
	"log/slog"
	"time"
)

// Record is a key as a store holds it. The key itself is in no store.
type Record struct {
	ID        string // public: stands in logs and lists
	ProjectID string
	Name      string // what its owner calls it; may be empty
	Scopes    Scopes
	Rate      int       // requests a second; 0: the default
	CreatedAt time.Time // UTC
	ExpiresAt time.Time // from then on it is refused; zero: never
	RevokedAt time.Time // zero: it is not revoked
	// LastUsedAt is exact to about a minute; zero: never used.
	LastUsedAt time.Time
	// Foreign reports that the key was imported.
	Foreign bool
	// Owner is whom a program looks after the key for; zero: people do. Look-ups leave it out.
	Owner Owner

	// ReadAt is when Postgres was about to be read, on the clock of this process. No copy of the record is
	// used for longer than AUTH_CACHE_TTL after it.
	ReadAt time.Time
}

// Owner is the object that a program mints and replaces keys for, such as a resource of Kubernetes.
type Owner struct {
	// Realm is where the object is one of its kind, and what one program looks after: a cluster. Up to
	// 256 bytes.
	Realm string
	// ID is the object's in the realm, never used again for another. Up to 256 bytes.
	ID string
	// Name is what people call the object. Up to 512 bytes.
	Name string
}

// Active reports whether a key of the record is accepted at now.
func (r Record) Active(now time.Time) bool {
	return r.RevokedAt.IsZero() && (r.ExpiresAt.IsZero() || now.Before(r.ExpiresAt))
}

// Store finds the record of a key.
type Store interface {
	// Lookup returns the record of the project's key with that hash, also when the key is revoked or
	// expired. It is [ErrUnknown] when the project has no such key. Any other error is a fault of the
	// store. A cache fills in no more than a verification needs: id, project, scopes, rate, expiry,
	// Foreign and ReadAt.
	Lookup(ctx context.Context, projectID string, h Hash) (Record, error)
}

// Refusal is why a key is not accepted. Clients are told the same of all of them; the log tells them
// apart.
type Refusal string

// Error is the reason.
func (r Refusal) Error() string { return string(r) }

// The reasons to refuse a key.
const (
	ErrMissing   Refusal = "no API key was sent"
	ErrMalformed Refusal = "the API key is malformed"
	ErrUnknown   Refusal = "the project has no such API key"
	ErrExpired   Refusal = "the API key has expired"
	ErrRevoked   Refusal = "the API key is revoked"
)

// Principal is whom an accepted key speaks for.
type Principal struct {
	KeyID     string
	ProjectID string
	Scopes    Scopes
	Rate      int // requests a second; 0: the default
}

// LogValue shows a principal by its ids.
func (p Principal) LogValue() slog.Value {
	return slog.GroupValue(slog.String("key_id", p.KeyID), slog.String("project_id", p.ProjectID))
}
