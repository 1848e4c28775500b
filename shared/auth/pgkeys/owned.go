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
)

// ErrOvertaken is what [Admin.MintOwned] answers when the owner has a key of that number already:
// somebody else is at work for the same owner, or was since its keys were read.
var ErrOvertaken = errors.New("the owner has a key of that number already")

// Owned is a key that a program looks after for an owner.
//
// Such a key is minted first, then put where its users read it, then noted as delivered. One that was
// not delivered may be known to nobody: its program died in between.
type Owned struct {
	auth.Record
	Hash auth.Hash
	// Number counts the owner's keys, from 1 on.
	Number int64
	// Request is text of the program that asked for the key, opaque here: the operator's is the value of
	// lectern.dev/rotate.
	Request string
	// DeliveredAt is when the key was first known to be where its users read it; zero: it may not be.
	DeliveredAt time.Time
	// Ended reports that [Admin.Expire] or [Admin.Rotate] gave the key an earlier end than it was made with.
	Ended bool
}

// OwnedOptions says what key is wanted for an owner.
type OwnedOptions struct {
	MintOptions
	Owner   auth.Owner // all of it
	Number  int64      // the last one's and 1
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

// The last column is Owned.Ended. Its 100 ms allow for rounding: lifetime_ms is in whole milliseconds.
const ownedColumns = columns + `, key_hash, owner_realm, owner_id, owner_name, owner_number, owner_request, delivered_at,
	expires_at IS NOT NULL AND (lifetime_ms IS NULL OR extract(epoch FROM expires_at - created_at) * 1000 < lifetime_ms - 100)`

// scanOwned reads ownedColumns.
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
		created_at, owner_realm, owner_id, owner_name, owner_number, owner_request)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING ` + ownedColumns

// MintOwned does what [Admin.Mint] does, for an owner. Its time of creation is this program's, so that it
// compares with what the program plans by its own clock. [ErrOvertaken] when the owner has a key of that
// number.
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
			return pgx.ErrNoRows
		}
		owned, err = scanOwned(rows)
		return err
	}, insertOwned, args...)
	switch {
	case errors.Is(exists(err), ErrExists) && o.Value.IsZero():
		// A key and an id that were just made are nobody's, so it is the number.
		return config.Secret{}, Owned{}, fmt.Errorf("mint an owned key: %w", ErrOvertaken)
	case err != nil:
		return config.Secret{}, Owned{}, fmt.Errorf("mint an owned key: %w", exists(err))
	}
	a.announceNew(ctx, o.ProjectID, owned.ID, h)
	return key, owned, nil
}

const owned = `SELECT ` + ownedColumns + ` FROM api_keys
	WHERE project_id = $1 AND owner_realm = $2 AND owner_id = $3 AND (
		revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $4)
		OR owner_number = (SELECT max(owner_number) FROM api_keys WHERE project_id = $1 AND owner_realm = $2 AND owner_id = $3))
	ORDER BY owner_number`

// Owned returns the owner's keys of the project that are accepted now, oldest first, and the last number
// that one of its keys has, 0 when it has none.
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

// realm is, beside foreign, the one statement about all projects. So its first parameter is no string: see
// [pgdb.Pool.Query].
const realm = `SELECT ` + ownedColumns + ` FROM api_keys
	WHERE owner_realm = $2 AND owner_realm <> '' AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1)`

// EachOwned calls do with every key of the realm that is accepted now, in no order. It streams: it keeps no list. do
// runs while a connection is in use, so it must be quick. An error of do ends the list, and EachOwned returns it.
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

// Deliver notes that a key is where its users read it. Noted again, it stays as it was noted first.
// [ErrNotFound] when the project has no such key that is owned.
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

// Terms are what a key is good for.
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

// Amend gives a key other terms, in the place of all those that it has; its expiry may also be put off. One
// that was given an end before its time keeps being [Owned.Ended] as long as that end stays.
// [ErrNotFound] when the project has no such key that is accepted now.
func (a *Admin) Amend(ctx context.Context, projectID, keyID string, t Terms) (auth.Record, error) {
	now := a.now()
	o := MintOptions{ProjectID: projectID, Name: t.Name, Scopes: t.Scopes, Rate: t.Rate, ExpiresAt: t.ExpiresAt}
	if err := o.complete(now); err != nil {
		return auth.Record{}, fmt.Errorf("amend a key: %w", err)
	}
	r, err := a.change(ctx, amend, projectID, keyID, o.Name, o.Scopes.Names(), o.Rate, orNull(o.ExpiresAt), now)
	if err != nil {
		return auth.Record{}, fmt.Errorf("amend a key: %w", err)
	}
	return r, nil
}
