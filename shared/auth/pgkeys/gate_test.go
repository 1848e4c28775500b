package pgkeys_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// gate records the projects of the statements that it admits.
type gate struct{ projects []string }

func (g *gate) Enter(ctx context.Context, project string) (context.Context, pgdb.Leave, error) {
	g.projects = append(g.projects, project)
	return ctx, func(_ *pgconn.PgConn, _ pgconn.CommandTag, err error) error { return err }, nil
}

func (g *gate) Close() {}

// TestEachOwnedIsOfNoProject checks that EachOwned enters the gate without a project, because the keys of a realm
// belong to several projects.
func TestEachOwnedIsOfNoProject(t *testing.T) {
	p, err := pgdb.Open(t.Context(), config.NewSecret(pgtest.Database(t, pgkeys.Schema()).OwnerURL), pgdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var g gate
	p.SetGate(&g)
	admin := pgkeys.NewAdmin(p, &announced{}, time.Now, slog.New(slog.DiscardHandler))
	if err := admin.EachOwned(t.Context(), "cluster", func(pgkeys.Owned) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := admin.Owned(t.Context(), "p1", auth.Owner{Realm: "cluster", ID: "o1"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"", "p1"}; !slices.Equal(g.projects, want) {
		t.Errorf("the gate was asked for the projects %q, want %q", g.projects, want)
	}
}
