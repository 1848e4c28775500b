package keyring_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/keyring"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

func TestRotationOverlaps(t *testing.T) {
	k := authtest.New(t, redistest.Start(t).URL)
	rings := []*keyring.Keyring{k.Keyring(keyring.Options{}), k.Keyring(keyring.Options{})}
	old, r := k.Minted(pgkeys.MintOptions{ProjectID: "p"})
	for _, ring := range rings {
		if err := verify(ring, "p", old); err != nil {
			t.Fatal(err)
		}
	}
	const overlap = 700 * time.Millisecond
	rotated := time.Now()
	fresh, _, err := k.Rotate(t.Context(), "p", r.ID, overlap)
	if err != nil {
		t.Fatal(err)
	}
	for i, ring := range rings {
		if err := verify(ring, "p", fresh.Reveal()); err != nil {
			t.Errorf("process %d, the new key: %v", i, err)
		}
		if err := verify(ring, "p", old); err != nil && time.Since(rotated) < overlap {
			t.Errorf("process %d, the old key during the overlap: %v", i, err)
		}
		until(t, "the old key is refused", func() bool { return errors.Is(verify(ring, "p", old), auth.ErrExpired) })
		if took := time.Since(rotated); took > overlap+time.Second {
			t.Errorf("process %d accepted the old key for %v", i, took)
		}
		if err := verify(ring, "p", fresh.Reveal()); err != nil {
			t.Errorf("process %d, the new key after the overlap: %v", i, err)
		}
	}
}

// TestMintedKeyIsGoodAtOnce checks that a key is valid as soon as its mint is announced, even if it was tried before it
// existed.
func TestMintedKeyIsGoodAtOnce(t *testing.T) {
	k := authtest.New(t, redistest.Start(t).URL)
	ring := k.Keyring(keyring.Options{})
	key, _ := auth.Mint()
	until(t, "announcements are heard", func() bool {
		_, _ = k.Minted(pgkeys.MintOptions{ProjectID: "other"})
		return ring.Redis.PubSubNumSub(t.Context(), "lectern:apikey:changed").Val()["lectern:apikey:changed"] == 1
	})
	if err := verify(ring, "p", key.Reveal()); !errors.Is(err, auth.ErrUnknown) {
		t.Fatal(err)
	}
	k.Minted(pgkeys.MintOptions{ProjectID: "p", Value: key})
	if took := until(t, "the key is good", func() bool { return verify(ring, "p", key.Reveal()) == nil }); took > 900*time.Millisecond {
		t.Errorf("it took %v: the announcement was not heard", took)
	}
}

// TestAllStoresOutOfReach checks that a copy is used for at most its TTL while no store is reachable. Then the answer
// is 503, never 401. This also holds without a Redis. If the process also loses Redis, it drops its copies when the
// subscription ends.
func TestAllStoresOutOfReach(t *testing.T) {
	for _, tt := range []struct {
		name  string
		redis func(*testing.T) *redistest.Server
		least time.Duration
	}{
		{"no Redis", func(*testing.T) *redistest.Server { return nil }, time.Second},
		{"Redis killed", func(t *testing.T) *redistest.Server { return redistest.Start(t) }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			redis, url := tt.redis(t), config.Secret{}
			if redis != nil {
				url = redis.URL
			}
			server := pgtest.Private(t, nil)
			k := authtest.On(t, server.Database(t, pgkeys.Schema()), url)
			k.Config.CacheTTL = 2 * time.Second
			ring := k.Keyring(keyring.Options{})
			key := k.Key("p")
			never := k.Key("p")
			if err := verify(ring, "p", key); err != nil {
				t.Fatal(err)
			}
			read := time.Now()
			if redis != nil {
				redis.Kill()
			}
			if err := server.Pause(); err != nil {
				t.Fatal(err)
			}
			accepted := time.Duration(0)
			until(t, "the answer is 503", func() bool {
				err := verify(ring, "p", key)
				switch {
				case err == nil:
					accepted = time.Since(read)
				case !unavailable(err):
					t.Fatalf("%v after it was read: %v", time.Since(read), err)
				}
				return err != nil
			})
			if accepted < tt.least || accepted > k.Config.CacheTTL+250*time.Millisecond {
				t.Errorf("accepted for %v, want at most the TTL of %v", accepted, k.Config.CacheTTL)
			}
			if err := verify(ring, "p", never); !unavailable(err) {
				t.Errorf("a key that this process has not seen: %v, want unavailable", err)
			}
			if err := server.Resume(); err != nil {
				t.Fatal(err)
			}
			until(t, "Postgres answers again", func() bool { return verify(ring, "p", key) == nil && verify(ring, "p", never) == nil })
		})
	}
}

func TestForeignKeys(t *testing.T) {
	k := authtest.New(t, redistest.Start(t).URL)
	off := k.Keyring(keyring.Options{})
	k.Config.ForeignKeys = true
	on := k.Keyring(keyring.Options{})
	key, _ := k.Minted(pgkeys.MintOptions{ProjectID: "p", Value: config.NewSecret("sk live 0001")})
	until(t, "the foreign key is good", func() bool { return verify(on, "p", key) == nil })
	if err := verify(on, "q", key); !errors.Is(err, auth.ErrUnknown) {
		t.Errorf("in another project: %v", err)
	}
	if err := verify(off, "p", key); !errors.Is(err, auth.ErrMalformed) {
		t.Errorf("where FOREIGN_KEYS is off: %v", err)
	}
	if err := verify(on, "p", k.Key("p")); err != nil {
		t.Errorf("a minted key: %v", err)
	}
}

func TestLastUseIsWritten(t *testing.T) {
	k := authtest.New(t, config.Secret{})
	ring, err := keyring.Open(t.Context(), k.Config, keyring.Options{UseInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	key, r := k.Minted(pgkeys.MintOptions{ProjectID: "p"})
	_, unused := k.Minted(pgkeys.MintOptions{ProjectID: "p"})
	before := time.Now()
	if err := verify(ring, "p", key); err != nil {
		t.Fatal(err)
	}
	if err := ring.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := k.Get(t.Context(), "p", r.ID)
	if err != nil || got.LastUsedAt.Before(before.Add(-time.Millisecond)) || got.LastUsedAt.After(time.Now()) {
		t.Errorf("last used at %v, %v", got.LastUsedAt, err)
	}
	if got, err := k.Get(t.Context(), "p", unused.ID); err != nil || !got.LastUsedAt.IsZero() {
		t.Errorf("never used, and last at %v, %v", got.LastUsedAt, err)
	}
}

// TestTelemetryHoldsNoKey checks the values of the metrics, and that no log, span, metric or Redis entry contains a
// key.
func TestTelemetryHoldsNoKey(t *testing.T) {
	redis := redistest.Start(t)
	k := authtest.New(t, redis.URL)
	k.Config.RateLimit, k.Config.RateBurst = 1, 2
	var logs logtest.Buffer
	reader := metric.NewManualReader()
	spans := tracetest.NewInMemoryExporter()
	ring := k.Keyring(keyring.Options{
		Log:    slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Meter:  metric.NewMeterProvider(metric.WithReader(reader)),
		Tracer: trace.NewTracerProvider(trace.WithSyncer(spans)),
	})
	key := k.Key("p")
	for range 4 {
		_, _, _ = ring.Guard.Check(t.Context(), "p", key, auth.EntriesRead)
	}
	stranger, _ := auth.Mint()
	if err := verify(ring, "p", stranger.Reveal()); !refused(err) {
		t.Fatal(err)
	}

	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			var points []metricdata.DataPoint[int64]
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				points = d.DataPoints
			case metricdata.Gauge[int64]:
				points = d.DataPoints
			}
			for _, p := range points {
				layer, _ := p.Attributes.Value("layer")
				outcome, _ := p.Attributes.Value("outcome")
				if strings.HasPrefix(m.Name, "lectern.") {
					got[strings.TrimSpace(m.Name+" "+layer.AsString()+" "+outcome.AsString())] = p.Value
				}
			}
		}
	}
	// The process drops its copy when its subscription begins, so it may read the key twice.
	least := map[string]int64{
		"lectern.key.lookups redis miss":   2,
		"lectern.key.lookups postgres hit": 1, "lectern.key.lookups postgres miss": 1,
	}
	for name, n := range least {
		if got[name] < n {
			t.Errorf("%s = %d, want %d or more", name, got[name], n)
		}
		delete(got, name)
	}
	delete(got, "lectern.key.lookups redis hit")
	want := map[string]int64{
		"lectern.rate.limited": 2, "lectern.redis.up": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	redis.Kill() // causes a log line about the fault
	until(t, "the loss of Redis is logged", func() bool { _ = verify(ring, "p", key); return strings.Contains(logs.String(), "redis") })
	everything := logs.String()
	for _, s := range spans.GetSpans() {
		everything += s.Name + s.Status.Description
		for _, a := range s.Attributes {
			everything += a.Value.String()
		}
		for _, e := range s.Events {
			for _, a := range e.Attributes {
				everything += a.Value.String()
			}
		}
	}
	if len(spans.GetSpans()) == 0 {
		t.Error("nothing was traced")
	}
	for what, text := range map[string]string{
		"a key": key[3:], "a refused key": stranger.Reveal()[3:], "a key's hash": auth.HashKey(key).String(),
	} {
		if strings.Contains(everything, text) {
			t.Errorf("%s is in the logs or spans", what)
		}
	}
}

func TestCloseLeavesNothingRunning(t *testing.T) {
	redis := redistest.Start(t)
	k := authtest.New(t, redis.URL)
	k.Config.ForeignKeys = true
	key := k.Key("p")
	ignore := goleak.IgnoreCurrent()
	ring, err := keyring.Open(t.Context(), k.Config, keyring.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(ring, "p", key); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := ring.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	goleak.VerifyNone(t, ignore)
}

func TestOpenWhileAllIsDown(t *testing.T) {
	var cfg auth.Config
	err := config.Load(&cfg, map[string]string{
		"AUTH_DATABASE_URL": "postgres://nobody@127.0.0.1:1/none?sslmode=disable",
		"REDIS_URL":         "redis://127.0.0.1:1",
	})
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.Open(t.Context(), cfg, keyring.Options{})
	if err != nil {
		t.Fatalf("services start in any order: %v", err)
	}
	key, _ := auth.Mint()
	if err := verify(ring, "p", key.Reveal()); !unavailable(err) {
		t.Errorf("err = %v, want unavailable", err)
	}
	if err := ring.Ready(t.Context()); err == nil {
		t.Error("reported as ready")
	}
	if err := ring.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMigrate(t *testing.T) {
	k := authtest.New(t, config.Secret{})
	owner, err := pgx.Connect(t.Context(), k.Config.MigrateURL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(context.Background())
	for _, sql := range []string{`DROP TABLE api_keys, auth_migrations`} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for range 2 { // concurrently, like two services that start
		wg.Go(func() {
			if err := keyring.Migrate(t.Context(), k.Config, slog.New(slog.DiscardHandler)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ring := k.Keyring(keyring.Options{})
	if err := verify(ring, "p", k.Key("p")); err != nil {
		t.Error(err)
	}
	k.Config.MigrateURL = config.Secret{}
	if err := keyring.Migrate(t.Context(), k.Config, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "AUTH_MIGRATE_DATABASE_URL") {
		t.Errorf("without an owner: %v", err)
	}
}
