package pgkeys_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// TestUpgrades checks that key databases of all released versions upgrade in place.
func TestUpgrades(t *testing.T) {
	imported := config.NewSecret("the key of another system")
	person := auth.Identity{Issuer: "https://id.example.com", Subject: "alice'%\\ü"}
	admin := func(t *testing.T, db pgtest.DB) *pgkeys.Admin {
		return pgkeys.NewAdmin(pool(t, db.AdminURL), &invalidated{}, time.Now, slog.New(slog.DiscardHandler))
	}
	pgtest.CheckUpgrades(t, pgkeys.Schema(), func(t *testing.T, db pgtest.DB) {
		a := admin(t, db)
		for _, o := range []pgkeys.MintOptions{
			{ProjectID: "pr/ö", Name: "imported '%\\ü", Value: imported, Rate: 5},
			{ProjectID: "pr/ö", Identity: person, Scopes: auth.ScopesOf(auth.EntriesRead), ExpiresAt: time.Now().AddDate(100, 0, 0)},
			{ProjectID: "pr/ö", Name: "revoked"},
		} {
			_, r, err := a.Mint(t.Context(), o)
			if err == nil && o.Name == "revoked" {
				_, err = a.Revoke(t.Context(), r.ProjectID, r.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}, func(t *testing.T, db pgtest.DB) string {
		var all strings.Builder
		say := func(v any, err error) {
			if err != nil {
				t.Fatal(err)
			}
			if err := json.NewEncoder(&all).Encode(v); err != nil {
				t.Fatal(err)
			}
		}
		store := pgkeys.NewStore(pool(t, db.ReaderURL))
		say(store.Lookup(t.Context(), "pr/ö", auth.HashKey(imported.Reveal())))
		say(store.Grants(t.Context(), "pr/ö", []auth.Hash{person.Hash()}))
		say(admin(t, db).List(t.Context(), "pr/ö"))
		return all.String()
	})
}
