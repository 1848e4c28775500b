package pgkeys_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
)

func TestMintAndLookup(t *testing.T) {
	b := setup(t)
	for _, tt := range []struct {
		name string
		in   pgkeys.MintOptions
		want auth.Record // the fields that differ from the default
	}{
		{"defaults", pgkeys.MintOptions{ProjectID: "p"}, auth.Record{ProjectID: "p", Scopes: auth.DefaultScopes}},
		{
			"everything",
			pgkeys.MintOptions{ProjectID: "pr/ö", Name: "CI of the shop", Scopes: auth.ScopesOf(auth.ProxyUse), Rate: 5, ExpiresAt: b.now.Add(time.Hour)},
			auth.Record{ProjectID: "pr/ö", Name: "CI of the shop", Scopes: auth.ScopesOf(auth.ProxyUse), Rate: 5, ExpiresAt: b.now.Add(time.Hour)},
		},
		{"brought along", pgkeys.MintOptions{ProjectID: "p", Value: config.NewSecret("my own key")}, auth.Record{ProjectID: "p", Scopes: auth.DefaultScopes, Foreign: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			key, minted := b.mint(t, tt.in)
			if tt.in.Value.IsZero() {
				if _, err := auth.ParseKey(key.Reveal()); err != nil {
					t.Error(err)
				}
			} else if key.Reveal() != tt.in.Value.Reveal() {
				t.Error("another key than the one brought along")
			}
			if age := time.Since(minted.CreatedAt); age < -time.Minute || age > time.Minute {
				t.Errorf("created at %v", minted.CreatedAt)
			}
			want := tt.want
			want.ID, want.CreatedAt = minted.ID, minted.CreatedAt
			if diff := cmp.Diff(want, minted); diff != "" {
				t.Errorf("minted: %s", diff)
			}
			found, err := b.lookup(tt.in.ProjectID, key)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("found: %s", diff)
			}
			if _, err := b.lookup("another project", key); !errors.Is(err, auth.ErrUnknown) {
				t.Errorf("in another project: %v, want unknown", err)
			}
		})
	}
}

// ana is an identity with rights of its own.
var ana = auth.Identity{Issuer: "https://login.example.com", Subject: "ana"}

// TestIdentity checks that an identity has rights without a key, one record at a time in each project.
func TestIdentity(t *testing.T) {
	b := setup(t)
	staff := auth.Identity{Issuer: ana.Issuer, Group: "ana"}
	account := auth.Identity{Issuer: ana.Issuer, Subject: ana.Subject, UID: "uid-1"}
	for _, identity := range []auth.Identity{ana, staff, account} {
		key, first := b.mint(t, pgkeys.MintOptions{ProjectID: "p", Identity: identity, Name: "one"})
		if !key.IsZero() || first.Identity != identity || first.Foreign {
			t.Fatalf("%v: minted %+v", identity, first)
		}
		if _, _, err := b.Mint(t.Context(), pgkeys.MintOptions{ProjectID: "p", Identity: identity}); !errors.Is(err, pgkeys.ErrExists) {
			t.Fatalf("%v again: %v; want ErrExists", identity, err)
		}
		if _, _, err := b.Rotate(t.Context(), "p", first.ID, 0); err == nil {
			t.Error("rotated without a key")
		}
		if _, err := b.Revoke(t.Context(), "p", first.ID); err != nil {
			t.Fatal(err)
		}
		_, second := b.mint(t, pgkeys.MintOptions{ProjectID: "p", Identity: identity, Rate: 3, ExpiresAt: b.now.Add(time.Hour)})
		if second.ID != first.ID || !second.RevokedAt.IsZero() || second.Name != "" || second.Rate != 3 {
			t.Errorf("granted again: %+v", second)
		}
		found, err := b.store.Grants(t.Context(), "p", []auth.Hash{identity.Hash()})
		if diff := cmp.Diff([]auth.Record{second}, found); err != nil || diff != "" {
			t.Errorf("found: %v, %s", err, diff)
		}
	}
	b.mint(t, pgkeys.MintOptions{ProjectID: "q", Identity: ana})
	found, err := b.store.Grants(t.Context(), "p", []auth.Hash{staff.Hash(), ana.Hash()})
	if err != nil || len(found) != 2 {
		t.Errorf("both in p: %v, %+v", err, found)
	}
	var projects []string
	err = b.store.EachProject(t.Context(), []auth.Hash{staff.Hash(), ana.Hash()}, func(r auth.Record) bool {
		projects = append(projects, r.ProjectID)
		return true
	})
	if err != nil || !slices.Equal(projects, []string{"p", "p", "q"}) {
		t.Errorf("records of both: %v, %v", projects, err)
	}
	b.invalidated.take()
	b.mintOwned(t, pgkeys.OwnedOptions{MintOptions: pgkeys.MintOptions{ProjectID: "r", Identity: ana}, Owner: auth.Owner{Realm: "cluster", ID: "1"}, Number: 1})
	if diff := cmp.Diff([]string{"r " + ana.Hash().String()}, b.invalidated.take()); diff != "" {
		t.Errorf("invalidated for an owner's grant: %s", diff)
	}
}

func TestRevoke(t *testing.T) {
	b := setup(t)
	key, r := b.mint(t, pgkeys.MintOptions{ProjectID: "p"})
	first := b.now
	for range 2 {
		got, err := b.Revoke(t.Context(), "p", r.ID)
		if err != nil || !got.RevokedAt.Equal(first) {
			t.Fatalf("revoked at %v, %v; want %v", got.RevokedAt, err, first)
		}
		if diff := cmp.Diff([]string{"p " + auth.HashKey(key.Reveal()).String()}, b.invalidated.take()); diff != "" {
			t.Errorf("invalidated: %s", diff)
		}
		b.now = b.now.Add(time.Hour)
	}
	if got, err := b.lookup("p", key); err != nil || got.Active(b.now) {
		t.Errorf("looked up: %+v, %v", got, err)
	}
	for _, id := range []struct{ project, key string }{{"p", "key_no"}, {"q", r.ID}} {
		if _, err := b.Revoke(t.Context(), id.project, id.key); !errors.Is(err, pgkeys.ErrNotFound) {
			t.Errorf("revoke %v: %v, want not found", id, err)
		}
	}
	if n := len(b.invalidated.take()); n != 0 {
		t.Errorf("%d copies of keys that are not there were invalidated", n)
	}
}

func TestRotate(t *testing.T) {
	b := setup(t)
	const overlap = 10 * time.Minute
	for _, tt := range []struct {
		name       string
		life       time.Duration // of the old key; 0: it does not expire
		oldEnds    time.Duration // from now
		newExpires time.Duration // from now; 0: never
	}{
		{"without end", 0, overlap, 0},
		{"long-lived", 24 * time.Hour, overlap, 24 * time.Hour},
		{"ends before the overlap", time.Minute, time.Minute, time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := pgkeys.MintOptions{ProjectID: "p", Name: "n", Scopes: auth.ScopesOf(auth.EntriesRead, auth.ProxyUse), Rate: 9}
			if tt.life > 0 {
				o.ExpiresAt = b.now.Add(tt.life)
			}
			key, old := b.mint(t, o)
			// Rotate twice: the lifetime of the new key must not depend on the old key's expiry after the first
			// rotation.
			for range 2 {
				fresh, r, err := b.Rotate(t.Context(), "p", old.ID, overlap)
				if err != nil {
					t.Fatal(err)
				}
				if r.Name != "n" || r.Scopes != o.Scopes || r.Rate != 9 || r.Foreign || r.ID == old.ID {
					t.Errorf("the new key is %+v", r)
				}
				want := time.Time{}
				if tt.newExpires > 0 {
					want = b.now.Add(tt.newExpires)
				}
				if d := r.ExpiresAt.Sub(want); d < -time.Second || d > time.Second {
					t.Errorf("the new key expires at %v, want %v", r.ExpiresAt, want)
				}
				if _, err := b.lookup("p", fresh); err != nil {
					t.Errorf("the new key: %v", err)
				}
				got, err := b.lookup("p", key)
				if err != nil || !got.ExpiresAt.Equal(b.now.Add(tt.oldEnds)) {
					t.Errorf("the old key ends at %v, %v; want %v", got.ExpiresAt, err, b.now.Add(tt.oldEnds))
				}
				if n := len(b.invalidated.take()); n != 1 {
					t.Errorf("invalidated %d times, want once: the old key's copy", n)
				}
			}
		})
	}

	_, ended := b.mint(t, pgkeys.MintOptions{ProjectID: "p", ExpiresAt: b.now.Add(time.Second)})
	_, revoked := b.mint(t, pgkeys.MintOptions{ProjectID: "p"})
	if _, err := b.Revoke(t.Context(), "p", revoked.ID); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(time.Second)
	for _, tt := range []struct {
		name, project, id string
		want              error
	}{
		{"expired", "p", ended.ID, pgkeys.ErrInactive},
		{"revoked", "p", revoked.ID, pgkeys.ErrInactive},
		{"unknown", "p", "key_no", pgkeys.ErrNotFound},
		{"another project's", "q", revoked.ID, pgkeys.ErrNotFound},
	} {
		before, _ := b.List(t.Context(), "p")
		if _, _, err := b.Rotate(t.Context(), tt.project, tt.id, overlap); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if after, _ := b.List(t.Context(), "p"); len(after) != len(before) {
			t.Errorf("%s: a key was stored", tt.name)
		}
	}
}

func TestExpireAndGetAndList(t *testing.T) {
	b := setup(t)
	_, first := b.mint(t, pgkeys.MintOptions{ProjectID: "p", Name: "1"})
	_, second := b.mint(t, pgkeys.MintOptions{ProjectID: "p", Name: "2", ExpiresAt: b.now.Add(time.Minute)})
	b.mint(t, pgkeys.MintOptions{ProjectID: "q", Name: "3"})
	at := b.now.Add(time.Hour)
	if got, err := b.Expire(t.Context(), "p", first.ID, at); err != nil || !got.ExpiresAt.Equal(at) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := b.Expire(t.Context(), "p", second.ID, at); err != nil || !got.ExpiresAt.Equal(second.ExpiresAt) {
		t.Errorf("an expiry was put off: %+v, %v", got, err)
	}
	if _, err := b.Expire(t.Context(), "q", first.ID, at); !errors.Is(err, pgkeys.ErrNotFound) {
		t.Errorf("err = %v, want not found", err)
	}
	all, err := b.List(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
	}
	if diff := cmp.Diff([]string{"1", "2"}, names); diff != "" {
		t.Error(diff)
	}
	if got, err := b.Get(t.Context(), "p", second.ID); err != nil || got.Name != "2" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := b.Get(t.Context(), "q", second.ID); !errors.Is(err, pgkeys.ErrNotFound) {
		t.Errorf("err = %v, want not found", err)
	}
}

func TestScopesOfANewerVersion(t *testing.T) {
	b := setup(t)
	key, r := b.mint(t, pgkeys.MintOptions{ProjectID: "p"})
	owner := connect(t, b.db.OwnerURL)
	if _, err := owner.Exec(t.Context(), `UPDATE api_keys SET scopes = '{entries:read,entries:dream}'`); err != nil {
		t.Fatal(err)
	}
	if got, err := b.lookup("p", key); err != nil || got.Scopes != auth.ScopesOf(auth.EntriesRead) {
		t.Errorf("%+v, %v", got, err)
	}
	_, fresh, err := b.Rotate(t.Context(), "p", r.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	var scopes []string
	if err := owner.QueryRow(t.Context(), `SELECT scopes FROM api_keys WHERE project_id = 'p' AND key_id = $1`, fresh.ID).Scan(&scopes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"entries:read", "entries:dream"}, scopes); diff != "" {
		t.Errorf("rotation lost scopes: %s", diff)
	}
}

func TestForeignHashes(t *testing.T) {
	b := setup(t)
	hashes := func(since time.Time) map[auth.Hash]bool {
		t.Helper()
		set := map[auth.Hash]bool{}
		upTo, err := b.store.ForeignHashes(t.Context(), since, func(h auth.Hash) { set[h] = true })
		if err != nil || time.Since(upTo) > time.Minute {
			t.Fatalf("up to %v, %v", upTo, err)
		}
		return set
	}
	b.mint(t, pgkeys.MintOptions{ProjectID: "p"})
	b.mint(t, pgkeys.MintOptions{ProjectID: "p", Value: config.NewSecret("one")})
	b.mint(t, pgkeys.MintOptions{ProjectID: "q", Value: config.NewSecret("two")})
	_, gone := b.mint(t, pgkeys.MintOptions{ProjectID: "q", Value: config.NewSecret("three")})
	if _, err := b.Revoke(t.Context(), "q", gone.ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[auth.Hash]bool{auth.HashKey("one"): true, auth.HashKey("two"): true}, hashes(time.Time{})); diff != "" {
		t.Error(diff)
	}
	if got := hashes(time.Now().Add(time.Hour)); len(got) != 0 {
		t.Errorf("%d hashes of the future", len(got))
	}
}

func TestWriteUses(t *testing.T) {
	b := setup(t)
	_, one := b.mint(t, pgkeys.MintOptions{ProjectID: "p"})
	_, two := b.mint(t, pgkeys.MintOptions{ProjectID: "p"})
	_, three := b.mint(t, pgkeys.MintOptions{ProjectID: "q"})
	write := func(at time.Time) {
		t.Helper()
		if err := b.store.WriteUses(t.Context(), []auth.Use{
			{ProjectID: "p", KeyID: one.ID, At: at},
			{ProjectID: "p", KeyID: two.ID, At: at.Add(time.Second)},
			{ProjectID: "q", KeyID: three.ID, At: at},
		}); err != nil {
			t.Fatal(err)
		}
	}
	write(b.now)
	write(b.now.Add(-time.Hour)) // an older use, from another process
	for _, tt := range []struct {
		project, id string
		want        time.Time
	}{{"p", one.ID, b.now.Add(time.Second)}, {"p", two.ID, b.now.Add(time.Second)}, {"q", three.ID, b.now}} {
		if r, err := b.Get(t.Context(), tt.project, tt.id); err != nil || !r.LastUsedAt.Equal(tt.want) {
			t.Errorf("%s last used at %v, %v; want %v", tt.id, r.LastUsedAt, err, tt.want)
		}
	}
}

// TestWriteUsesOfManyProjects checks that WriteUses writes the uses of more projects than fit in one transaction. If
// one transaction fails, it still writes the others.
func TestWriteUsesOfManyProjects(t *testing.T) {
	b := setup(t)
	const projects = 450
	uses := make([]auth.Use, projects)
	for i := range uses {
		_, key := b.mint(t, pgkeys.MintOptions{ProjectID: fmt.Sprintf("many%03d", i)})
		uses[i] = auth.Use{ProjectID: key.ProjectID, KeyID: key.ID, At: b.now}
	}
	written := func() (n int) {
		for _, u := range uses {
			r, err := b.Get(t.Context(), u.ProjectID, u.KeyID)
			if err != nil {
				t.Fatal(err)
			}
			if r.LastUsedAt.Equal(b.now) {
				n++
			}
		}
		return n
	}
	faulty := slices.Clone(uses)
	faulty[3].KeyID = "\x00" // Postgres refuses a NUL character
	if err := b.store.WriteUses(t.Context(), faulty); err == nil {
		t.Error("a fault was not reported")
	}
	if n := written(); n < projects/2 || n == projects {
		t.Errorf("with a fault in one transaction, %d of %d are written", n, projects)
	}
	if err := b.store.WriteUses(t.Context(), uses); err != nil {
		t.Fatal(err)
	}
	if n := written(); n != projects {
		t.Errorf("%d of %d are written", n, projects)
	}
}

// TestReaderCanDoNoMore checks that the reader's role can neither mint keys nor change their rights.
func TestReaderCanDoNoMore(t *testing.T) {
	b := setup(t)
	b.mint(t, pgkeys.MintOptions{ProjectID: "p"})
	reader := connect(t, b.db.ReaderURL)
	for _, sql := range []string{
		`INSERT INTO api_keys (project_id, key_hash, key_id, scopes) VALUES ('p', decode(repeat('00', 32), 'hex'), 'key_x', '{proxy:use}')`,
		`UPDATE api_keys SET revoked_at = NULL WHERE project_id = 'p'`,
		`UPDATE api_keys SET scopes = '{proxy:use}' WHERE project_id = 'p'`,
		`DELETE FROM api_keys WHERE project_id = 'p'`,
		`TRUNCATE api_keys`,
		`CREATE TABLE mine ()`,
	} {
		_, err := reader.Exec(t.Context(), sql)
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "42501" { // insufficient_privilege
			t.Errorf("%s: %v, want it refused", sql, err)
		}
	}
}

// TestAdminCanDoNoMore checks that the admin role can neither delete nor replace a key, and reads no other table.
func TestAdminCanDoNoMore(t *testing.T) {
	b := setup(t)
	b.mint(t, pgkeys.MintOptions{ProjectID: "p"})
	admin := connect(t, b.db.AdminURL)
	for _, sql := range []string{
		`DELETE FROM api_keys WHERE project_id = 'p'`,
		`TRUNCATE api_keys`,
		`DROP TABLE api_keys`,
		`ALTER TABLE api_keys ADD COLUMN mine text`,
		`CREATE TABLE mine ()`,
		`CREATE SCHEMA mine`,
		`SELECT * FROM auth_migrations`,
		`SELECT rolpassword FROM pg_authid`,
		`UPDATE api_keys SET key_hash = decode(repeat('00', 32), 'hex') WHERE project_id = 'p'`,
		`UPDATE api_keys SET project_id = 'q' WHERE project_id = 'p'`,
		`UPDATE api_keys SET key_id = 'key_x' WHERE project_id = 'p'`,
		`UPDATE api_keys SET created_at = now() WHERE project_id = 'p'`,
		`UPDATE api_keys SET last_used_at = NULL WHERE project_id = 'p'`,
		`INSERT INTO api_keys (project_id, key_hash, key_id, scopes, last_used_at) VALUES ('p', decode(repeat('00', 32), 'hex'), 'key_x', '{proxy:use}', now())`,
	} {
		_, err := admin.Exec(t.Context(), sql)
		// insufficient_privilege, or feature_not_supported: Citus lets no role move a row to another project
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "42501" && pg.Code != "0A000" {
			t.Errorf("%s: %v, want it refused", sql, err)
		}
	}
}

// TestTableChecks checks that the table's constraints refuse invalid rows.
func TestTableChecks(t *testing.T) {
	b := setup(t)
	owner := connect(t, b.db.OwnerURL)
	for _, values := range []string{
		`'', decode(repeat('00', 32), 'hex'), 'key_x', '{a}', 0`,
		`repeat('p', 257), decode(repeat('00', 32), 'hex'), 'key_x', '{a}', 0`,
		`'p', decode(repeat('00', 31), 'hex'), 'key_x', '{a}', 0`,
		`'p', decode(repeat('00', 32), 'hex'), '', '{a}', 0`,
		`'p', decode(repeat('00', 32), 'hex'), 'key_x', '{}', 0`,
		`'p', decode(repeat('00', 32), 'hex'), 'key_x', '{a}', -1`,
	} {
		_, err := owner.Exec(t.Context(), `INSERT INTO api_keys (project_id, key_hash, key_id, scopes, rate) VALUES (`+values+`)`)
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "23514" { // check_violation
			t.Errorf("%s: %v, want it refused", values, err)
		}
	}
}
