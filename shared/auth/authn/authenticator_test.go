package authn_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// TestAllStoresOutOfReach checks that a copy is used for at most a second while no store is reachable. Then the answer
// is 503, never 401.
func TestAllStoresOutOfReach(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	server := pgtest.Private(t, nil)
	k := authtest.On(t, server.Database(t, pgkeys.Schema()), redis.URL)
	a := k.Authenticator(authn.Options{Pool: pgdb.Options{AcquireTimeout: time.Second}})
	key, never := k.Key("p"), k.Key("p")
	if err := verify(a, "p", key); err != nil {
		t.Fatal(err)
	}
	redis.Kill()
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	paused := time.Now()
	eventually.True(t, "the answer is 503", func() bool {
		began := time.Now()
		err := verify(a, "p", key)
		switch {
		case err == nil && began.Sub(paused) > time.Second:
			t.Fatalf("accepted %v after the last store went", began.Sub(paused))
		case err != nil && !unavailable(err):
			t.Fatal(err)
		}
		return err != nil
	})
	if err := verify(a, "p", never); !unavailable(err) {
		t.Errorf("a key that this process has not seen: %v, want unavailable", err)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "Postgres answers again", func() bool { return verify(a, "p", key) == nil && verify(a, "p", never) == nil })
}

func TestForeignKeys(t *testing.T) {
	t.Parallel()
	k := authtest.New(t, redistest.Start(t).URL)
	off := k.Authenticator(authn.Options{})
	k.Config.ForeignKeys = true
	on := k.Authenticator(authn.Options{})
	key, _ := k.Minted(pgkeys.MintOptions{ProjectID: "p", Value: config.NewSecret("sk live 0001")})
	eventually.True(t, "the foreign key is good", func() bool { return verify(on, "p", key) == nil })
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
	t.Parallel()
	k := authtest.New(t, config.ServerURL{})
	a := k.Authenticator(authn.Options{})
	key, r := k.Minted(pgkeys.MintOptions{ProjectID: "p"})
	_, unused := k.Minted(pgkeys.MintOptions{ProjectID: "p"})
	before := time.Now()
	if err := verify(a, "p", key); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(t.Context()); err != nil {
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
	t.Parallel()
	redis := redistest.Start(t)
	k := authtest.New(t, redis.URL)
	k.Config.RateLimit = 1
	var logs logtest.Buffer
	spans := tracetest.NewInMemoryExporter()
	var key string
	stranger, _ := auth.Mint()
	// use sends a new key and one that nobody has to another process, and returns the process with its metrics.
	use := func() (*authn.Authenticator, map[string]int64) {
		key = k.Key("p")
		reader := metric.NewManualReader()
		a := k.Authenticator(authn.Options{
			Log:    slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Meter:  metric.NewMeterProvider(metric.WithReader(reader)),
			Tracer: trace.NewTracerProvider(trace.WithSyncer(spans)),
		})
		for range 4 {
			_, _, _ = a.Guard.Check(t.Context(), "p", key, auth.EntriesRead)
		}
		if err := verify(a, "p", stranger.Reveal()); !refused(err) {
			t.Fatal(err)
		}
		return a, metricsOf(t, reader)
	}
	a, got := use()
	eventually.True(t, "Redis answers in time", func() bool {
		if got["lectern.key.lookups redis error"] == 0 && got["lectern.rate.limited"] == 2 {
			return true
		}
		a, got = use() // on a busy machine, the look-ups before may have gone without Redis, or taken a second
		return false
	})
	// On a busy machine the process renews its copy, and reads the key again.
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
	eventually.True(t, "the loss of Redis is logged", func() bool { _ = verify(a, "p", key); return strings.Contains(logs.String(), "redis") })
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

// metricsOf returns the values of the metrics lectern.… by name, layer and outcome.
func metricsOf(t *testing.T, reader metric.Reader) map[string]int64 {
	t.Helper()
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
	return got
}

func TestCloseLeavesNothingRunning(t *testing.T) {
	redis := redistest.Start(t)
	k := authtest.New(t, redis.URL)
	k.Config.ForeignKeys = true
	key := k.Key("p")
	ignore := goleak.IgnoreCurrent()
	a := k.Authenticator(authn.Options{})
	if err := verify(a, "p", key); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	goleak.VerifyNone(t, ignore)
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	k := authtest.New(t, config.ServerURL{})
	owner := pgtest.Connect(t, k.Config.MigrateURL.Reveal())
	if _, err := owner.Exec(t.Context(), `DROP TABLE api_keys, auth_migrations`); err != nil {
		t.Fatal(err)
	}
	if err := authn.Migrate(t.Context(), k.Config, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	a := k.Authenticator(authn.Options{})
	if err := verify(a, "p", k.Key("p")); err != nil {
		t.Error(err)
	}
	k.Config.MigrateURL = config.ServerURL{}
	if err := authn.Migrate(t.Context(), k.Config, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "AUTH_MIGRATE_DATABASE_URL") {
		t.Errorf("without an owner: %v", err)
	}
}
