package pgkeys

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
)

const getForUpdate = `SELECT ` + columns + `, key_hash, scopes, lifetime_ms FROM api_keys WHERE project_id = $1 AND key_id = $2 FOR UPDATE`

const expireOld = `UPDATE api_keys SET expires_at = least(expires_at, $3) WHERE project_id = $1 AND key_id = $2`

// Rotate mints a new key with the old key's name, scopes and rate. The old key expires after the overlap, or at its own
// expiry if that is sooner. If the old key was minted for a lifetime, the new key has the same lifetime from now. The
// error is [ErrNotFound] if the project has no such key, and [ErrInactive] if the old key is revoked or has expired. A
// negative overlap and the id of an identity's rights are an [*Invalid].
func (a *Admin) Rotate(ctx context.Context, projectID, keyID string, overlap time.Duration) (config.Secret, auth.Record, error) {
	key, r, err := a.rotate(ctx, projectID, keyID, overlap)
	if err != nil {
		return config.Secret{}, auth.Record{}, fmt.Errorf("rotate a key: %w", exists(err))
	}
	return key, r, nil
}

func (a *Admin) rotate(ctx context.Context, projectID, keyID string, overlap time.Duration) (config.Secret, auth.Record, error) {
	if overlap < 0 {
		return config.Secret{}, auth.Record{}, &Invalid{"overlap", overlap.String(), "a duration of 0s or more, such as 24h"}
	}
	now := a.now()
	key, h := auth.Mint()
	var (
		fresh    auth.Record
		oldHash  []byte
		scopes   []string // as stored, including scopes that only a newer version knows
		lifetime *int64
	)
	err := a.pool.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		old, err := scan(tx.QueryRow(ctx, getForUpdate, projectID, keyID), &oldHash, &scopes, &lifetime)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrNotFound
		case err != nil:
			return err
		case !old.Active(now):
			return ErrInactive
		case !old.Identity.IsZero():
			return &Invalid{"keyId", keyID, "the id of a key: an identity's rights have no key to rotate"}
		}
		var expires *time.Time
		if lifetime != nil {
			at := now.Add(time.Duration(*lifetime) * time.Millisecond)
			expires = &at
		}
		fresh, err = scan(tx.QueryRow(ctx, insert,
			projectID, h[:], auth.NewKeyID(), old.Name, scopes, old.Rate, false, expires, lifetime, "", "", "", ""))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, expireOld, projectID, keyID, now.Add(overlap))
		return err
	})
	if err != nil {
		return config.Secret{}, auth.Record{}, err
	}
	a.invalidate(ctx, projectID, keyID, auth.Hash(oldHash))
	return key, fresh, nil
}
