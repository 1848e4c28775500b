package pgkeys_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/citus"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// invalidated is an Invalidator that records its calls.
type invalidated struct {
	mu  sync.Mutex
	all []string
}

func (a *invalidated) Invalidate(_ context.Context, projectID string, h auth.Hash) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, projectID+" "+h.String())
	return nil
}

func (a *invalidated) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.all
	a.all = nil
	return all
}

type bench struct {
	*pgkeys.Admin
	store       *pgkeys.Store
	db          pgtest.DB
	invalidated *invalidated
	now         time.Time
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{db: pgtest.Database(t, pgkeys.Schema()), invalidated: &invalidated{}, now: time.Now().UTC().Truncate(time.Microsecond)}
	now := func() time.Time { return b.now }
	b.Admin = pgkeys.NewAdmin(pool(t, b.db.AdminURL), b.invalidated, now, slog.New(slog.DiscardHandler))
	b.store = pgkeys.NewStore(pool(t, b.db.ReaderURL))
	return b
}

func pool(t *testing.T, url string) *pgdb.Pool {
	t.Helper()
	return pgtest.Pool(t, url, pgdb.Options{MaxConns: 4, AcquireTimeout: time.Minute, Attach: citus.Attach})
}

func (b *bench) mint(t *testing.T, o pgkeys.MintOptions) (config.Secret, auth.Record) {
	t.Helper()
	key, r, err := b.Mint(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return key, r
}

func (b *bench) lookup(project string, key config.Secret) (auth.Record, error) {
	return b.store.Lookup(context.Background(), project, auth.HashKey(key.Reveal()))
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
