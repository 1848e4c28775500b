package pgkeys_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/postgres/citus"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// BenchmarkLookup looks up a key, and a person of whose groups one has rights, in a project that grants 10,000 groups.
func BenchmarkLookup(b *testing.B) {
	db := pgtest.Database(b, pgkeys.Schema())
	owner := pgtest.Connect(b, db.OwnerURL)
	for _, sql := range []string{`INSERT INTO api_keys (project_id, key_hash, key_id, scopes, identity_issuer, identity_group)
		SELECT 'p', sha256(n::text::bytea), n, '{entries:read}', 'https://id.example.com', n FROM generate_series(1, 10000) n`, `ANALYZE api_keys`} {
		if _, err := owner.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	store := pgkeys.NewStore(pgtest.Pool(b, db.ReaderURL, pgdb.Options{MaxConns: 4, AcquireTimeout: time.Minute, Attach: citus.Attach}))
	b.Run("key", func(b *testing.B) {
		for b.Loop() {
			if _, err := store.Lookup(b.Context(), "p", auth.HashKey("1")); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, groups := range []int{10, 50, 100, 400} {
		b.Run(fmt.Sprintf("%d groups", groups), func(b *testing.B) {
			var hashes []auth.Hash
			for n := range groups {
				hashes = append(hashes, auth.HashKey(fmt.Sprint(1-n)))
			}
			for b.Loop() {
				if found, err := store.Grants(b.Context(), "p", hashes); err != nil || len(found) != 1 {
					b.Fatal(found, err)
				}
			}
		})
	}
}
