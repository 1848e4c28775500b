package authn_test

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/issuertest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// serve returns a handler of two operations that the guard of a protects. The header Test-Address has the client's
// address.
func serve(a *authn.Authenticator) http.Handler {
	router := httpapi.NewRouter()
	router.Get("/projects/{projectId}/entries", a.Guard.Protect(auth.EntriesRead, func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusOK)
		return nil
	}))
	router.Get("/me/projects", a.Guard.Projects(func(w http.ResponseWriter, _ *http.Request, list func(string, int) ([]auth.Principal, error)) error {
		_, err := list("", 1)
		if err == nil {
			w.WriteHeader(http.StatusOK)
		}
		return err
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := &httpapi.Info{Logger: slog.New(slog.DiscardHandler), ClientAddress: r.Header.Get("Test-Address")}
		router.ServeHTTP(w, r.WithContext(httpapi.WithInfo(r.Context(), info)))
	})
}

func get(h http.Handler, address, path, credential string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if strings.HasPrefix(credential, "eyJ") {
		r.Header.Set("Authorization", "Bearer "+credential)
	} else {
		r.Header.Set("X-Api-Key", credential)
	}
	r.Header.Set("Test-Address", address)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// lookups returns the number of look-ups in a layer, such as postgres.
func lookups(t *testing.T, reader *metric.ManualReader, layer string) (n int64) {
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
				if l, _ := p.Attributes.Value(attribute.Key("layer")); l.AsString() == layer {
					n += p.Value
				}
			}
		}
	}
	return n
}

// TestFlood sends more guesses of a credential from one address than its rate allows. The address gets 429 for them, but a
// credential of the same kind that was accepted there keeps working, also a renewed token. Other addresses are not
// affected, and the number of look-ups in Postgres is bounded.
func TestFlood(t *testing.T) {
	issuer := issuertest.Start(t)
	minted := func(k *authtest.Keys) func() string {
		key := k.Key("p")
		return func() string { return key }
	}
	random := func() string { key, _ := auth.Mint(); return key.Reveal() }
	// granted grants an identity, and returns a function that signs another token for ana at each call.
	granted := func(identity auth.Identity) func(*authtest.Keys) func() string {
		return func(k *authtest.Keys) func() string {
			identity.Issuer = issuer.URL
			if _, _, err := k.Mint(t.Context(), pgkeys.MintOptions{ProjectID: "p", Identity: identity}); err != nil {
				t.Fatal(err)
			}
			return func() string {
				return issuer.Token("ana", map[string]any{"groups": []string{"sales"}, "jti": rand.Text()})
			}
		}
	}
	parts := strings.Split(issuer.Token("eve", nil), ".")
	forged := func() string {
		claims := fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":"ana","exp":%d,"jti":%q}`, issuer.URL, issuertest.Audience, time.Now().Add(time.Hour).Unix(), rand.Text())
		return parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + parts[2]
	}
	for name, kind := range map[string]struct {
		redis bool
		path  string
		inUse func(*authtest.Keys) func() string
		guess func() string
	}{
		"keys with Redis":  {true, "/projects/p/entries", minted, random},
		"keys":             {false, "/projects/p/entries", minted, random},
		"projects of keys": {false, "/me/projects", minted, random},
		"imported keys": {false, "/projects/p/entries", func(k *authtest.Keys) func() string {
			key, _ := k.Minted(pgkeys.MintOptions{ProjectID: "p", Value: config.NewSecret("pin 4711")})
			return func() string { return key }
		}, func() string { return fmt.Sprintf("pin %04d", mathrand.IntN(4711)) }},
		"tokens of a subject": {false, "/projects/p/entries", granted(auth.Identity{Subject: "ana"}), forged},
		"tokens of a group":   {false, "/projects/p/entries", granted(auth.Identity{Group: "sales"}), forged},
		"projects of tokens":  {false, "/me/projects", granted(auth.Identity{Subject: "ana"}), forged},
	} {
		t.Run(name, func(t *testing.T) {
			var redis config.ServerURL
			if kind.redis {
				redis = redistest.Start(t).URL
			}
			k := authtest.New(t, redis)
			k.Config.ForeignKeys = true
			if err := k.Config.Issuers.UnmarshalText([]byte(issuer.Setting())); err != nil {
				t.Fatal(err)
			}
			flood(t, k, kind.path, kind.inUse(k), kind.guess)
		})
	}
}

// TestRefusalsCostTheSame checks that refused credentials with rights elsewhere, or with rights before, need the look-ups of
// an unknown credential. So the time of an answer does not show these rights. An imported key is an exception: no store
// is asked unless some project has the key.
func TestRefusalsCostTheSame(t *testing.T) {
	t.Parallel()
	issuer := issuertest.Start(t)
	k := authtest.New(t, redistest.Start(t).URL)
	if err := k.Config.Issuers.UnmarshalText([]byte(issuer.Setting())); err != nil {
		t.Fatal(err)
	}
	reader := metric.NewManualReader()
	h := serve(k.Authenticator(authn.Options{Meter: metric.NewMeterProvider(metric.WithReader(reader))}))
	revoked := func(o pgkeys.MintOptions) string {
		o.ProjectID = "p"
		key, r := k.Minted(o)
		if _, err := k.Revoke(t.Context(), "p", r.ID); err != nil {
			t.Fatal(err)
		}
		return key
	}
	identity := func(subject, group string) pgkeys.MintOptions {
		return pgkeys.MintOptions{ProjectID: "q", Identity: auth.Identity{Issuer: issuer.URL, Subject: subject, Group: group}}
	}
	unknown, _ := auth.Mint()
	k.Minted(identity("elsewhere", ""))
	k.Minted(identity("", "elsewhere"))
	revoked(identity("revoked", ""))
	revoked(identity("", "revoked"))
	member := func(group string) string {
		return issuer.Token("member of "+group, map[string]any{"groups": []string{group}})
	}
	for kind, tt := range map[string]struct {
		credentials     []string // the first is unknown
		redis, postgres int64
	}{
		"keys":     {[]string{unknown.Reveal(), k.Key("q"), revoked(pgkeys.MintOptions{})}, 1, 1},
		"subjects": {[]string{issuer.Token("unknown", nil), issuer.Token("elsewhere", nil), issuer.Token("revoked", nil)}, 1, 1},
		"groups":   {[]string{member("unknown"), member("elsewhere"), member("revoked")}, 0, 1},
	} {
		for n, credential := range tt.credentials {
			redis, postgres := lookups(t, reader, "redis"), lookups(t, reader, "postgres")
			if status := get(h, "192.0.2.1", "/projects/p/entries", credential).StatusCode; status != 401 {
				t.Fatalf("%s, %d: status %d", kind, n, status)
			}
			redis, postgres = lookups(t, reader, "redis")-redis, lookups(t, reader, "postgres")-postgres
			if redis != tt.redis || postgres != tt.postgres {
				t.Errorf("%s, %d: %d look-ups in Redis and %d in Postgres, want %d and %d", kind, n, redis, postgres, tt.redis, tt.postgres)
			}
		}
	}
}

func flood(t *testing.T, k *authtest.Keys, path string, inUse, guess func() string) {
	const flooder, other = "192.0.2.1", "192.0.2.2"
	const clients = 16
	reader := metric.NewManualReader()
	a := k.Authenticator(authn.Options{Meter: metric.NewMeterProvider(metric.WithReader(reader))})
	h := serve(a)
	eventually.True(t, "the credential is accepted", func() bool { return get(h, flooder, path, inUse()).StatusCode == 200 })

	const spell = 1500 * time.Millisecond // longer than a copy of a key is used
	before := lookups(t, reader, "postgres")
	var (
		unauthorized, limited atomic.Int64
		wg                    sync.WaitGroup
	)
	start := time.Now()
	for range clients {
		wg.Go(func() {
			for time.Since(start) < spell || limited.Load() == 0 && time.Since(start) < 2*time.Minute {
				resp := get(h, flooder, path, guess())
				switch resp.StatusCode {
				case 401:
					unauthorized.Add(1)
				case 429:
					limited.Add(1)
					if resp.Header.Get("Retry-After") == "" {
						t.Error("429 without Retry-After")
					}
				default:
					t.Errorf("a guess: status %d", resp.StatusCode)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	fresh, checks := 0, 0
	for time.Since(start) < spell {
		if resp := get(h, flooder, path, inUse()); resp.StatusCode != 200 {
			t.Errorf("the credential in use at the flooding address: status %d", resp.StatusCode)
		}
		if checks%20 == 0 {
			if resp := get(h, other, path, k.Key("p")); resp.StatusCode != 200 {
				t.Errorf("a key that is not cached, from another address: status %d", resp.StatusCode)
			}
			fresh++
		}
		checks++
		time.Sleep(5 * time.Millisecond)
	}
	wg.Wait()
	took := time.Since(start)

	reached := lookups(t, reader, "postgres") - before
	windows := int64(took/time.Second) + 2
	most := windows*int64(limits.RefusedPerSecond+clients) + int64(fresh) + int64(took/(700*time.Millisecond)) + 1
	t.Logf("%d answers 401, %d answers 429, %d look-ups in Postgres, at most %d may be", unauthorized.Load(), limited.Load(), reached, most)
	if guesses, most := unauthorized.Load(), windows*int64(limits.RefusedPerSecond+clients); guesses > most {
		t.Errorf("%d guesses were tried, want at most %d", guesses, most)
	}
	if reached > most {
		t.Errorf("%d look-ups reached Postgres, want at most %d", reached, most)
	}
	if limited.Load() == 0 {
		t.Errorf("%d answers 401 and none 429: the flood is not limited", unauthorized.Load())
	}
	eventually.True(t, "the address may try other keys again", func() bool { return get(h, flooder, path, k.Key("p")).StatusCode == 200 })
}
