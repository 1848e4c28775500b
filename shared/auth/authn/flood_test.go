package authn_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/trustedkeys"
)

// serve returns a handler of one operation that the guard of a protects. The header Test-Address has the client's
// address.
func serve(a *authn.Authenticator) http.Handler {
	router := httpapi.NewRouter()
	router.Get("/projects/{projectId}/entries", a.Guard.Protect(auth.EntriesRead, func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusOK)
		return nil
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := &httpapi.Info{Logger: slog.New(slog.DiscardHandler), ClientAddress: r.Header.Get("Test-Address")}
		router.ServeHTTP(w, r.WithContext(httpapi.WithInfo(r.Context(), info)))
	})
}

func get(h http.Handler, address, key string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "/projects/p/entries", nil)
	r.Header.Set("X-Api-Key", key)
	r.Header.Set("Test-Address", address)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// lookups returns the number of look-ups in Postgres.
func lookups(t *testing.T, reader *metric.ManualReader) (n int64) {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != "lectern.key.lookups" {
				continue
			}
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				if layer, _ := p.Attributes.Value(attribute.Key("layer")); layer.AsString() == "postgres" {
					n += p.Value
				}
			}
		}
	}
	return n
}

// TestFloodOfRandomKeys sends more well-formed random keys from one address than its rate allows. The address gets 429
// for them, but a key in use there keeps working. Other addresses are not affected, and the number of look-ups in
// Postgres is bounded.
func TestFloodOfRandomKeys(t *testing.T) {
	for _, tt := range []struct {
		name  string
		redis func(*testing.T) config.ServerURL
	}{
		{"with Redis", func(t *testing.T) config.ServerURL { return redistest.Start(t).URL }},
		{"without Redis", func(*testing.T) config.ServerURL { return config.ServerURL{} }},
	} {
		t.Run(tt.name, func(t *testing.T) { flood(t, tt.redis(t)) })
	}
}

func flood(t *testing.T, redis config.ServerURL) {
	const flooder, other = "192.0.2.1", "192.0.2.2"
	k := authtest.New(t, redis)
	const clients = 16
	reader := metric.NewManualReader()
	a := k.Authenticator(authn.Options{Meter: metric.NewMeterProvider(metric.WithReader(reader))})
	h := serve(a)
	inUse := k.Key("p")
	if resp := get(h, flooder, inUse); resp.StatusCode != 200 {
		t.Fatalf("status %d", resp.StatusCode)
	}

	const spell = 1500 * time.Millisecond // longer than a copy of a key is used
	before := lookups(t, reader)
	var (
		unauthorized, limited atomic.Int64
		wg                    sync.WaitGroup
	)
	start := time.Now()
	for range clients {
		wg.Go(func() {
			for time.Since(start) < spell || limited.Load() == 0 && time.Since(start) < 2*time.Minute {
				random, _ := auth.Mint()
				resp := get(h, flooder, random.Reveal())
				switch resp.StatusCode {
				case 401:
					unauthorized.Add(1)
				case 429:
					limited.Add(1)
					if resp.Header.Get("Retry-After") == "" {
						t.Error("429 without Retry-After")
					}
				default:
					t.Errorf("a random key: status %d", resp.StatusCode)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	fresh, checks := 0, 0
	for time.Since(start) < spell {
		if resp := get(h, flooder, inUse); resp.StatusCode != 200 {
			t.Errorf("the key in use at the flooding address: status %d", resp.StatusCode)
		}
		if checks%20 == 0 {
			if resp := get(h, other, k.Key("p")); resp.StatusCode != 200 {
				t.Errorf("a key that is not cached, from another address: status %d", resp.StatusCode)
			}
			fresh++
		}
		checks++
		time.Sleep(5 * time.Millisecond)
	}
	wg.Wait()
	took := time.Since(start)

	reached := lookups(t, reader) - before
	windows := int64(took/time.Second) + 2
	most := windows*int64(trustedkeys.RefusedPerSecond+clients) + int64(fresh) + int64(took/(700*time.Millisecond)) + 1
	t.Logf("%d answers 401, %d answers 429, %d look-ups in Postgres, at most %d may be", unauthorized.Load(), limited.Load(), reached, most)
	if reached > most {
		t.Errorf("%d look-ups reached Postgres, want at most %d", reached, most)
	}
	if limited.Load() == 0 {
		t.Errorf("%d answers 401 and none 429: the flood is not limited", unauthorized.Load())
	}
	eventually.True(t, "the address may try other keys again", func() bool { return get(h, flooder, k.Key("p")).StatusCode == 200 })
}
