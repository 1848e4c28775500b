package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/pglocal"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// PrivatePrimary is [Private] with a server that standbys can replicate, and that keeps acknowledged writes when it
// is killed.
func PrivatePrimary(t testing.TB) *Instance {
	t.Helper()
	return Private(t, map[string]string{
		"wal_level": "replica", "max_wal_senders": "8", "wal_keep_size": "256MB", "synchronous_commit": "on",
		"hot_standby_feedback": "off", "max_standby_streaming_delay": "1s",
	})
}

// Standby returns a streaming standby of i for t alone, with the settings of i.
func (i *Instance) Standby(t testing.TB) *Instance {
	t.Helper()
	s, err := startIn(pglocal.Options{Port: needs.Port(t)},
		func(ctx context.Context, o pglocal.Options) (*pglocal.Server, error) {
			return pglocal.Standby(ctx, i.Server, o)
		})
	requirePostgres(t, err)
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return s
}

// Promote makes the standby i a primary, and returns when it accepts writes.
func (i *Instance) Promote(ctx context.Context) error {
	return i.connect(ctx, "", func(conn *pgx.Conn) error {
		var done bool
		if err := conn.QueryRow(ctx, `SELECT pg_promote(true, 30)`).Scan(&done); err != nil || !done {
			return fmt.Errorf("pgtest: promoted within 30 s: %v, %w", done, err)
		}
		return nil
	})
}

// Here returns the URLs of db on i. db was created on the server that i replicates or replaces.
func (i *Instance) Here(db DB) DB {
	here := func(of string) string {
		u, err := url.Parse(of)
		if err != nil {
			return ""
		}
		return i.roleURL(u.User.Username(), db.Name)
	}
	return DB{
		Name: db.Name, OwnerURL: here(db.OwnerURL), ReaderURL: here(db.ReaderURL), IngestURL: here(db.IngestURL),
		RemoverURL: here(db.RemoverURL), AdminURL: here(db.AdminURL),
	}
}
