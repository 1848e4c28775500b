// Package authtest gives tests a key database of their own, and keys in it. It has the requirements of pgtest, such
// as a TestMain that calls pgtest.Main.
//
// Production code does not import it; the linter checks this.
package authtest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// Keys is a migrated key database and an Admin of it.
type Keys struct {
	*authn.Admin

	// Config is the configuration of a service that verifies these keys: all roles, and the Redis that New was given.
	// Rates have their defaults. A test may change it before use.
	Config auth.Config

	t testing.TB
}

// New returns a key database of t's own on the test binary's Postgres. On Citus the database is not distributed: package pgkeys
// tests distributed keys. Copies of changed keys are invalidated in the Redis at redisURL, unless redisURL is empty. The
// database is removed when t ends.
func New(t testing.TB, redisURL config.ServerURL) *Keys {
	t.Helper()
	return On(t, pgtest.Undistributed(t, pgkeys.Schema()), redisURL)
}

// On is like [New] with a database that has [pgkeys.Schema], such as one on a server of t's own.
func On(t testing.TB, db pgtest.DB, redisURL config.ServerURL) *Keys {
	t.Helper()
	environ := map[string]string{
		"AUTH_DATABASE_URL":         db.ReaderURL,
		"AUTH_ADMIN_DATABASE_URL":   db.AdminURL,
		"AUTH_MIGRATE_DATABASE_URL": db.OwnerURL,
	}
	if !redisURL.IsZero() {
		environ["REDIS_URL"] = redisURL.Reveal()
	}
	k := &Keys{t: t}
	if err := config.Load(&k.Config, environ); err != nil {
		t.Fatalf("authtest: %v", err)
	}
	admin, err := authn.OpenAdmin(t.Context(), k.patient(), authn.Options{Pool: pgdb.Options{AcquireTimeout: time.Minute}})
	if err != nil {
		t.Fatalf("authtest: %v", err)
	}
	k.Admin = admin
	t.Cleanup(func() {
		if err := admin.Close(); err != nil {
			t.Errorf("authtest: close the admin: %v", err)
		}
	})
	return k
}

// patient returns Config with URLs as [pgtest.Patient] returns them.
func (k *Keys) patient() auth.Config {
	c := k.Config
	for _, url := range []*config.ServerURL{&c.DatabaseURL, &c.AdminURL} {
		*url = config.NewServerURL(pgtest.Patient(url.Reveal()))
	}
	return c
}

// Key mints a key for the project with the scopes, or with the default ones if none are given. It returns the key's
// text.
func (k *Keys) Key(projectID string, scopes ...auth.Scope) string {
	k.t.Helper()
	key, _ := k.Minted(pgkeys.MintOptions{ProjectID: projectID, Scopes: auth.ScopesOf(scopes...)})
	return key
}

// Minted mints a key with the given options, and returns its text and its record.
func (k *Keys) Minted(o pgkeys.MintOptions) (string, auth.Record) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	key, r, err := k.Mint(ctx, o)
	if err != nil {
		k.t.Fatalf("authtest: %v", err)
	}
	return key.Reveal(), r
}

// Authenticator opens an Authenticator that verifies these keys, by Config, and closes it when t ends. A look-up waits up to
// a minute for a connection, unless o says otherwise.
func (k *Keys) Authenticator(o authn.Options) *authn.Authenticator {
	k.t.Helper()
	o.Pool.AcquireTimeout = cmp.Or(o.Pool.AcquireTimeout, time.Minute)
	ring, err := authn.Open(k.t.Context(), k.patient(), o)
	if err != nil {
		k.t.Fatalf("authtest: %v", err)
	}
	k.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := ring.Close(ctx); err != nil {
			k.t.Errorf("authtest: close the authenticator: %v", err)
		}
	})
	return ring
}
