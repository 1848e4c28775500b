package pgkeys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Errors of an [Admin], in addition to faults of the database, [Invalid] and [ErrOvertaken].
var (
	ErrNotFound = errors.New("the project has no key of that id")
	ErrExists   = errors.New("the project has that key already")
	ErrInactive = errors.New("the key is revoked or has expired")
)

// Invalid is the error of an [Admin] for an argument that is not allowed.
type Invalid struct {
	Argument string // its name: name, rate, expires_at, key, identity, keyId, overlap, or projectId
	Given    string
	Allowed  string
}

// Error returns a text with the argument's name, the given value and the allowed values.
func (i *Invalid) Error() string {
	return fmt.Sprintf("%s was given as %q; allowed: %s", i.Argument, i.Given, i.Allowed)
}

// Invalidator invalidates the copies of keys that processes share, such as the copies in Redis.
type Invalidator interface {
	// Invalidate makes the next look-up read the stored key with the hash h again, because the stored key has changed.
	Invalidate(ctx context.Context, projectID string, h auth.Hash) error
}

// Admin mints, rotates and revokes keys with the admin role. Admin commits a change and then invalidates the shared
// copy of the key. If the invalidation fails, Admin logs the failure, and the processes see the change within
// AUTH_CACHE_TTL.
type Admin struct {
	pool   *pgdb.Pool
	copies Invalidator // nil: no copies are shared
	now    func() time.Time
	log    *slog.Logger
}

// NewAdmin returns an Admin over a pool of the admin role. If copies is nil, processes share no copies. now is the
// clock.
func NewAdmin(pool *pgdb.Pool, copies Invalidator, now func() time.Time, log *slog.Logger) *Admin {
	return &Admin{pool: pool, copies: copies, now: now, log: log}
}

// MintOptions describes a key for [Admin.Mint]: its project, name, scopes, expiry and rate.
type MintOptions struct {
	ProjectID string
	Name      string      // up to 256 bytes of printable text; may be empty
	Scopes    auth.Scopes // zero: [auth.DefaultScopes]
	ExpiresAt time.Time   // zero: never
	Rate      int         // requests a second; 0: the default

	// Value is an imported key, or a key that [auth.Mint] returned earlier. Empty: Mint makes a new key.
	Value config.Secret

	// Identity has the rights in place of a key. Zero: a key has the rights.
	Identity auth.Identity
}

func (o *MintOptions) complete(now time.Time) error {
	var errs []error
	if !wire.ValidIdentifier(o.ProjectID) {
		errs = append(errs, &Invalid{"projectId", o.ProjectID, "1 to 256 bytes of UTF-8 without NUL"})
	}
	if len(o.Name) > 256 || !wire.Printable(o.Name) {
		errs = append(errs, &Invalid{"name", o.Name, "up to 256 bytes of printable text"})
	}
	if o.Scopes == 0 {
		o.Scopes = auth.DefaultScopes
	}
	if o.Rate < 0 || o.Rate > limits.MaxRate {
		errs = append(errs, &Invalid{"rate", strconv.Itoa(o.Rate), fmt.Sprintf("0 to %d requests a second, 0 for the default", limits.MaxRate)})
	}
	if !o.ExpiresAt.IsZero() && !now.Before(o.ExpiresAt) {
		errs = append(errs, &Invalid{"expires_at", o.ExpiresAt.UTC().Format(time.RFC3339Nano), "a time in the future"})
	}
	if !o.Identity.IsZero() {
		if err := o.Identity.Validate(); err != nil {
			errs = append(errs, &Invalid{"identity", o.Identity.String(), err.Error()})
		}
	}
	return errors.Join(errs...)
}

const insert = `INSERT INTO api_keys (project_id, key_hash, key_id, name, scopes, rate, is_foreign, expires_at, lifetime_ms,
		identity_issuer, identity_subject, identity_group, identity_uid)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)` + grantAgain + ` RETURNING ` + columns

// grantAgain gives rights to an identity whose rights have ended, under the same id. If the row of the identity is
// active, or the row is of a key, the statement returns no row.
const grantAgain = `
	ON CONFLICT (project_id, key_hash) DO UPDATE SET name = EXCLUDED.name, scopes = EXCLUDED.scopes, rate = EXCLUDED.rate,
		expires_at = EXCLUDED.expires_at, lifetime_ms = EXCLUDED.lifetime_ms, revoked_at = NULL, delivered_at = NULL, owner_realm = EXCLUDED.owner_realm,
		owner_id = EXCLUDED.owner_id, owner_name = EXCLUDED.owner_name, owner_number = EXCLUDED.owner_number, owner_request = EXCLUDED.owner_request
	WHERE api_keys.identity_issuer <> '' AND (api_keys.revoked_at IS NOT NULL OR api_keys.expires_at <= EXCLUDED.created_at)`

// Mint stores a key and returns it with its record. The key cannot be read again later. If o has an Identity, Mint
// stores the rights of the identity and returns no key. An identity whose rights have ended gets rights again, under the id
// of before. The error wraps an [*Invalid] if an option is wrong. The error wraps [ErrExists] if the project already has the key of
// o.Value, active or not, or active rights of the identity.
func (a *Admin) Mint(ctx context.Context, o MintOptions) (config.Secret, auth.Record, error) {
	if err := o.complete(a.now()); err != nil {
		return config.Secret{}, auth.Record{}, fmt.Errorf("mint a key: %w", err)
	}
	key, h, err := o.key()
	if err != nil {
		return config.Secret{}, auth.Record{}, fmt.Errorf("mint a key: %w", err)
	}
	var r auth.Record
	err = a.pool.Query(ctx, func(rows pgx.Rows) (err error) {
		r, err = one(rows, ErrExists)
		return err
	}, insert, o.args(key, h, a.now())...)
	if err != nil {
		return config.Secret{}, auth.Record{}, fmt.Errorf("mint a key: %w", exists(err))
	}
	a.granted(ctx, r, h)
	return key, r, nil
}

// key returns the key to store and its hash: o.Value, or a new key if o.Value is empty. If o has an Identity, key
// returns no key, and the hash of the identity. The error is an [*Invalid].
func (o *MintOptions) key() (config.Secret, auth.Hash, error) {
	switch {
	case !o.Identity.IsZero() && !o.Value.IsZero():
		return config.Secret{}, auth.Hash{}, &Invalid{"identity", o.Identity.String(), "an identity or a key, not both"}
	case !o.Identity.IsZero():
		return config.Secret{}, o.Identity.Hash(), nil
	}
	if o.Value.IsZero() {
		key, h := auth.Mint()
		return key, h, nil
	}
	h, err := auth.ParseForeignKey(o.Value.Reveal())
	if err != nil {
		return config.Secret{}, auth.Hash{}, &Invalid{"key", o.Value.String(), "1 to 512 printable ASCII characters; a text like a minted key has its checksum"}
	}
	return o.Value, h, nil
}

// args returns the arguments of the statement insert, which stores the key.
func (o *MintOptions) args(key config.Secret, h auth.Hash, now time.Time) []any {
	var lifetime *int64
	if !o.ExpiresAt.IsZero() {
		ms := max(1, o.ExpiresAt.Sub(now).Milliseconds())
		lifetime = &ms
	}
	return []any{
		o.ProjectID, h[:], auth.NewKeyID(), o.Name, o.Scopes.Names(), o.Rate, !key.IsZero() && auth.IsForeign(key.Reveal()),
		wire.OrNull(o.ExpiresAt), lifetime, o.Identity.Issuer, o.Identity.Subject, o.Identity.Group, o.Identity.UID,
	}
}

// one scans the first row of rows, which has the columns of columns and then a column for each of further. If there is
// no row, one returns the error none.
func one(rows pgx.Rows, none error, further ...any) (auth.Record, error) {
	if !rows.Next() {
		return auth.Record{}, none
	}
	return scan(rows, further...)
}

// exists returns ErrExists if err is a violation of a unique index, which means that the key, or the owner's number, is
// stored already. Otherwise exists returns err.
func exists(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "23505" { // unique_violation
		return ErrExists
	}
	return err
}

const list = `SELECT ` + columns + `, owner_realm, owner_id, owner_name FROM api_keys WHERE project_id = $1 ORDER BY created_at, key_id`

// List returns the project's keys with their owners, oldest first, including revoked and expired keys.
func (a *Admin) List(ctx context.Context, projectID string) ([]auth.Record, error) {
	var records []auth.Record
	err := a.pool.Query(ctx, func(rows pgx.Rows) error {
		records = nil
		for rows.Next() {
			var o auth.Owner
			r, err := scan(rows, &o.Realm, &o.ID, &o.Name)
			if err != nil {
				return err
			}
			r.Owner = o
			records = append(records, r)
		}
		return nil
	}, list, projectID)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return records, nil
}

const get = `SELECT ` + columns + ` FROM api_keys WHERE project_id = $1 AND key_id = $2`

// Get returns the record of one of the project's keys without its owner, even if the key has ended, or the error
// [ErrNotFound].
func (a *Admin) Get(ctx context.Context, projectID, keyID string) (auth.Record, error) {
	var r auth.Record
	err := a.pool.Query(ctx, func(rows pgx.Rows) (err error) {
		r, err = one(rows, ErrNotFound)
		return err
	}, get, projectID, keyID)
	if err != nil {
		return auth.Record{}, fmt.Errorf("get a key: %w", err)
	}
	return r, nil
}

const revoke = `UPDATE api_keys SET revoked_at = coalesce(revoked_at, $3) WHERE project_id = $1 AND key_id = $2
	RETURNING ` + columns + `, key_hash`

// Revoke revokes a key for good. A second call keeps the time of the first call and invalidates the shared copy again.
// The error is [ErrNotFound] if the project has no such key.
func (a *Admin) Revoke(ctx context.Context, projectID, keyID string) (auth.Record, error) {
	r, err := a.change(ctx, revoke, projectID, keyID, a.now())
	if err != nil {
		return auth.Record{}, fmt.Errorf("revoke a key: %w", err)
	}
	return r, nil
}

const expire = `UPDATE api_keys SET expires_at = least(expires_at, $3) WHERE project_id = $1 AND key_id = $2
	RETURNING ` + columns + `, key_hash`

// Expire makes a key expire at the given time, or at its own expiry if that is sooner. The error is [ErrNotFound] if
// the project has no such key.
func (a *Admin) Expire(ctx context.Context, projectID, keyID string, at time.Time) (auth.Record, error) {
	r, err := a.change(ctx, expire, projectID, keyID, at)
	if err != nil {
		return auth.Record{}, fmt.Errorf("expire a key: %w", err)
	}
	return r, nil
}

// change runs a statement that changes one key, and invalidates the shared copy of the key. The statement takes
// projectID, keyID and then args. The error is [ErrNotFound] if the statement returns no row.
func (a *Admin) change(ctx context.Context, sql, projectID, keyID string, args ...any) (auth.Record, error) {
	var (
		r    auth.Record
		hash []byte
	)
	err := a.pool.Query(ctx, func(rows pgx.Rows) (err error) {
		r, err = one(rows, ErrNotFound, &hash)
		return err
	}, sql, append([]any{projectID, keyID}, args...)...)
	if err != nil {
		return auth.Record{}, err
	}
	a.invalidate(ctx, projectID, keyID, auth.Hash(hash))
	return r, nil
}

// granted invalidates the shared copy of the record r, if r has rights of an identity. The copy may be of the rights that
// the identity had before. A new key has no copy.
func (a *Admin) granted(ctx context.Context, r auth.Record, h auth.Hash) {
	if !r.Identity.IsZero() {
		a.invalidate(ctx, r.ProjectID, r.ID, h)
	}
}

// invalidate invalidates the shared copy of a key, if processes share copies. A failure is only logged.
func (a *Admin) invalidate(ctx context.Context, projectID, keyID string, h auth.Hash) {
	if a.copies == nil {
		return
	}
	if err := a.copies.Invalidate(context.WithoutCancel(ctx), projectID, h); err != nil {
		a.log.WarnContext(ctx, "a key's change did not reach Redis; it takes effect within AUTH_CACHE_TTL",
			slog.String("project_id", projectID), slog.String("key_id", keyID), slog.Any("error", err))
	}
}
