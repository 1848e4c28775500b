// Package pgkeys owns the key store in Postgres: the table and its roles, and the look-up of a key. The package also
// mints, rotates and revokes keys.
//
// A key may have an owner: an object that a program manages. The program does not rotate an owned key. The program
// mints another key, and ends the old key when the new key is where its users read it (see [Owned]).
//
// There are three roles. The owner migrates. The admin role mints, rotates, lists and revokes keys. The admin role
// cannot delete a key, or change a key's hash, id or project. The reader looks keys up and writes their last use. The
// reader can neither mint a key nor undo a revocation.
package pgkeys

import (
	"embed"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema returns the tables of the key store and the rights of its roles, for [migrate.Up].
func Schema() migrate.Schema {
	return migrate.Schema{
		Name:       "auth",
		Migrations: migrate.Files(migrations),
		Grants: map[migrate.Role][]string{
			migrate.Reader: {"SELECT, UPDATE (last_used_at) ON api_keys"},
			migrate.Admin: {`SELECT, INSERT (project_id, key_hash, key_id, name, scopes, rate, is_foreign, created_at, expires_at, lifetime_ms,
					identity_issuer, identity_subject, identity_group, identity_uid, owner_realm, owner_id, owner_name, owner_number, owner_request),
				UPDATE (name, scopes, rate, expires_at, lifetime_ms, revoked_at, owner_realm, owner_id, owner_name, owner_number,
					owner_request, delivered_at) ON api_keys`},
		},
	}
}

const columns = `project_id, key_id, name, scopes, rate, is_foreign, created_at, expires_at, revoked_at, last_used_at,
	identity_issuer, identity_subject, identity_group, identity_uid`

// scan returns the record of a row that has the columns of columns, and reads the columns after them into further. A
// NULL time becomes the zero time.
func scan(row pgx.Row, further ...any) (auth.Record, error) {
	var (
		r                      auth.Record
		scopes                 []string
		expires, revoked, used pgTime
	)
	dest := append([]any{&r.ProjectID, &r.ID, &r.Name, &scopes, &r.Rate, &r.Foreign, &r.CreatedAt, &expires, &revoked, &used,
		&r.Identity.Issuer, &r.Identity.Subject, &r.Identity.Group, &r.Identity.UID}, further...)
	if err := row.Scan(dest...); err != nil {
		return auth.Record{}, err
	}
	// Scopes that a newer version stored grant nothing here.
	r.Scopes, _ = auth.KnownScopes(scopes...)
	r.CreatedAt = r.CreatedAt.UTC()
	r.ExpiresAt, r.RevokedAt, r.LastUsedAt = expires.utc(), revoked.utc(), used.utc()
	return r, nil
}
