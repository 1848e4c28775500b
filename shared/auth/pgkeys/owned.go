package pgkeys

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/wire"
)

// ErrOvertaken is the error of [Admin.MintOwned] if the owner has a key of that number already. Usually another program
// has minted a key for the same owner since the caller read the owner's keys.
var ErrOvertaken = errors.New("the owner has a key of that number already")

// Owned is a key that a program manages for an owner.
//
// The program mints the key, then puts the key where its users read it, then calls [Admin.Deliver]. If the program dies
// before Deliver, possibly nobody knows the key.
type Owned struct {
	auth.Record
	Hash auth.Hash
	// Number is the key's number among the owner's keys, from 1 on.
	Number int64
	// Request is text of the program that asked for the key. Package pgkeys does not read Request. The operator stores
	// the value of lectern.dev/rotate.
	Request string
	// DeliveredAt is the first time at which the key was known to be where its users read it. Zero: the key may not be
	// there.
	DeliveredAt time.Time
	// Ended reports that [Admin.Expire] or [Admin.Rotate] gave the key an earlier end than [Admin.MintOwned] or
	// [Admin.Amend] did.
	Ended bool
}

// OwnedOptions describes a key for [Admin.MintOwned]: the options of Mint, and the key's owner, number and request.
type OwnedOptions struct {
	MintOptions
	Owner   auth.Owner // Realm and ID are required
	Number  int64      // one more than the last key's number
	Request string     // up to 1,024 bytes
}

func (o *OwnedOptions) check() error {
	var errs []error
	for _, f := range []struct {
		name, value string
		empty       bool
		limit       int
	}{
		{"owner's realm", o.Owner.Realm, false, 256},
		{"owner's id", o.Owner.ID, false, 256},
		{"owner's name", o.Owner.Name, true, 512},
		{"request", o.Request, true, 1024},
	} {
		if f.value == "" && !f.empty || len(f.value) > f.limit || !utf8.ValidString(f.value) {
			errs = append(errs, fmt.Errorf("the %s is up to %d bytes of text", f.name, f.limit))
		}
	}
	if o.Number < 1 {
		errs = append(errs, errors.New("the number is 1 or more"))
	}
	return errors.Join(errs...)
}

// ownedColumns are the columns that scanOwned reads. The last column is Owned.Ended. The 100 ms in its expression allow
// for rounding, because lifetime_ms is in whole milliseconds.
const ownedColumns = columns + `, key_hash, owner_realm, owner_id, owner_name, owner_number, owner_request, delivered_at,
	expires_at IS NOT NULL AND (lifetime_ms IS NULL OR extract(epoch FROM expires_at - created_at) * 1000 < lifetime_ms - 100)`

// scanOwned returns the key of a row that has the columns of ownedColumns.
func scanOwned(row pgx.Row) (Owned, error) {
	var (
		o         Owned
		hash      []byte
		owner     auth.Owner
		delivered pgTime
		err       error
	)
	o.Record, err = scan(row, &hash, &owner.Realm, &owner.ID, &owner.Name, &o.Number, &o.Request, &delivered, &o.Ended)
	if err != nil {
		return Owned{}, err
	}
	o.Owner, o.Hash, o.DeliveredAt = owner, auth.Hash(hash), delivered.utc()
	return o, nil
}

const insertOwned = `INSERT INTO api_keys (project_id, key_hash, key_id, name, scopes, rate, is_foreign, expires_at, lifetime_ms,
		identity_issuer, identity_subject, identity_group, identity_uid, created_at, owner_realm, owner_id, owner_name, owner_number, owner_request)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)` + grantAgain + ` RETURNING ` + ownedColumns

// MintOwned does the same as [Admin.Mint], for an owner. The key's time of creation is from this program's clock, so
// that the program can compare that time with its own clock. The error is [ErrOvertaken] if o.Value is empty and the
// owner has a key of that number.
func (a *Admin) MintOwned(ctx context.Context, o OwnedOptions) (config.Secret, Owned, error) {
	now := a.now()
	if err := errors.Join(o.complete(now), o.check()); err != nil {
		return config.Secret{}, Owned{}, fmt.Errorf("mint an owned key: %w", err)
	}
	key, h, err := o.key()
	if err != nil {
		return config.Secret{}, Owned{}, fmt.Errorf("mint an owned key: %w", err)
	}
	args := append(o.args(key, h, now), now, o.Owner.Realm, o.Owner.ID, o.Owner.Name, o.Number, o.Request)
	var owned Owned
	err = a.pool.Query(ctx, func(rows pgx.Rows) (err error) {
		if !rows.Next() {
			return ErrExists
		}
		owned, err = scanOwned(rows)
		return err
	}, insertOwned, args...)
	switch {
	case errors.Is(exists(err), ErrExists) && !errors.Is(err, ErrExists) && o.Value.IsZero():
		// The key and its id are new, so the number exists already.
		return config.Secret{}, Owned{}, fmt.Errorf("mint an owned key: %w", ErrOvertaken)
	case err != nil:
		return config.Secret{}, Owned{}, fmt.Errorf("mint an owned key: %w", exists(err))
	}
	a.granted(ctx, owned.Record, h)
	return key, owned, nil
}

const owned = `SELECT ` + ownedColumns + ` FROM api_keys
	WHERE project_id = $1 AND owner_realm = $2 AND owner_id = $3 AND (
		revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $4)
		OR owner_number = (SELECT max(owner_number) FROM api_keys WHERE project_id = $1 AND owner_realm = $2 AND owner_id = $3))
	ORDER BY owner_number`

// Owned returns the owner's keys of the project that are accepted now, by ascending number. last is the highest number
// of the owner's keys in the project, including keys that have ended, or 0 if there are none.
func (a *Admin) Owned(ctx context.Context, projectID string, o auth.Owner) (active []Owned, last int64, err error) {
	now := a.now()
	err = a.pool.Query(ctx, func(rows pgx.Rows) error {
		active, last = nil, 0
		for rows.Next() {
			k, err := scanOwned(rows)
			if err != nil {
				return err
			}
			if last = max(last, k.Number); k.Active(now) {
				active = append(active, k)
			}
		}
		return nil
	}, owned, projectID, o.Realm, o.ID, now)
	if err != nil {
		return nil, 0, fmt.Errorf("list an owner's keys: %w", err)
	}
	return active, last, nil
}

// realm reads the accepted keys of one realm of owners, in all projects.
const realm = `SELECT ` + ownedColumns + ` FROM api_keys
	WHERE owner_realm = $2 AND owner_realm <> '' AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1)`

// EachOwned calls do with every key of the realm that is accepted now, in no order. EachOwned streams the keys from the
// database and keeps no list. do runs while a connection is in use, so it must be quick. If do returns an error,
// EachOwned stops and returns that error.
func (a *Admin) EachOwned(ctx context.Context, ownerRealm string, do func(Owned) error) error {
	err := a.pool.Query(ctx, func(rows pgx.Rows) error {
		for rows.Next() {
			k, err := scanOwned(rows)
			if err == nil {
				err = do(k)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, realm, a.now(), ownerRealm)
	if err != nil {
		return fmt.Errorf("list a realm's keys: %w", err)
	}
	return nil
}

const deliver = `UPDATE api_keys SET delivered_at = coalesce(delivered_at, $3)
	WHERE project_id = $1 AND key_id = $2 AND owner_realm <> '' RETURNING ` + ownedColumns

// Deliver notes that a key is where its users read it, and returns the key. A second call keeps the time of the first
// call. The error is [ErrNotFound] if the project has no such owned key.
func (a *Admin) Deliver(ctx context.Context, projectID, keyID string) (Owned, error) {
	var k Owned
	err := a.pool.Query(ctx, func(rows pgx.Rows) (err error) {
		if !rows.Next() {
			return ErrNotFound
		}
		k, err = scanOwned(rows)
		return err
	}, deliver, projectID, keyID, a.now())
	if err != nil {
		return Owned{}, fmt.Errorf("note a key's delivery: %w", err)
	}
	return k, nil
}

// Terms are the properties of a key that [Admin.Amend] can change: its name, scopes, rate and expiry.
type Terms struct {
	Name      string
	Scopes    auth.Scopes // zero: [auth.DefaultScopes]
	Rate      int         // requests a second; 0: the default
	ExpiresAt time.Time   // zero: never
}

const amend = `UPDATE api_keys SET name = $3, scopes = $4, rate = $5, expires_at = $6,
		lifetime_ms = CASE WHEN expires_at IS NOT DISTINCT FROM $6 THEN lifetime_ms WHEN $6::timestamptz IS NULL THEN NULL ELSE greatest(1, (extract(epoch FROM $6::timestamptz - created_at) * 1000)::bigint) END
	WHERE project_id = $1 AND key_id = $2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $7)
	RETURNING ` + columns + `, key_hash`

// Amend replaces all terms of a key. Amend may also make the key expire later. If Expire or Rotate gave the key an
// earlier end, the key stays [Owned.Ended] until Amend changes that end. The error wraps [ErrNotFound] if the project
// has no such key that is accepted now, or an [*Invalid] for terms that are not allowed.
func (a *Admin) Amend(ctx context.Context, projectID, keyID string, t Terms) (auth.Record, error) {
	now := a.now()
	o := MintOptions{ProjectID: projectID, Name: t.Name, Scopes: t.Scopes, Rate: t.Rate, ExpiresAt: t.ExpiresAt}
	if err := o.complete(now); err != nil {
		return auth.Record{}, fmt.Errorf("amend a key: %w", err)
	}
	r, err := a.change(ctx, amend, projectID, keyID, o.Name, o.Scopes.Names(), o.Rate, wire.OrNull(o.ExpiresAt), now)
	if err != nil {
		return auth.Record{}, fmt.Errorf("amend a key: %w", err)
	}
	return r, nil
}
