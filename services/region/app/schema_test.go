package app

import (
	"io"
	"log"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/services/region/internal/store"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestReadyLooksAtTheSchema checks that a database without a schema, such as a new one, makes the service unready until
// it is migrated. No restart is needed.
func TestReadyLooksAtTheSchema(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ready := func() servicetest.Answer { return s.DoInternal(t, servicetest.Request{Path: "/readyz"}) }
	if a := ready(); a.Status != 200 || !strings.Contains(string(a.Body), `"schema":"ok"`) {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	// Without the table that records the migrations, the schema counts as missing.
	s.Exec(t, `ALTER TABLE region_migrations RENAME TO lost`)
	eventually.True(t, "it is not ready", func() bool {
		a := ready()
		return a.Status == 503 && strings.Contains(string(a.Body), `"schema":"failing"`) && strings.Contains(string(a.Body), `"postgres":"ok"`)
	})
	s.Exec(t, `ALTER TABLE lost RENAME TO region_migrations`)
	eventually.True(t, "it is ready", func() bool { return ready().Status == 200 })
}

// TestUnreadySaysWhy checks that a service that cannot reach its stores from the start says why. /readyz says the reason in words,
// and the log has the error. Neither has a password.
func TestUnreadySaysWhy(t *testing.T) {
	const secret = "not-the-password"
	b, server := servicetest.NewBreakable(t, store.Schema())
	stranger := httptest.NewTLSServer(nil)
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(stranger.Close)
	broken := func(change func(u *url.URL)) string {
		u, err := url.Parse(server.TCPURL(b.DB.ReaderURL))
		if err != nil {
			t.Fatal(err)
		}
		change(u)
		return u.String()
	}
	for _, tt := range []struct{ name, variable, value, check, cause string }{
		{"the password", "DATABASE_URL", broken(func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), secret) }), "postgres", "Postgres refuses the user or the password of its URL"},
		{"the database", "DATABASE_URL", broken(func(u *url.URL) { u.Path = "/none" }), "postgres", "Postgres has no database of the name in its URL"},
		{"the port", "DATABASE_URL", broken(func(u *url.URL) { u.Host = "127.0.0.1:1" }), "postgres", "nothing listens at the address of its URL"},
		{"Postgres' parameters", "DATABASE_URL", broken(func(u *url.URL) { u.RawQuery += "&no_such_parameter=1" }), "postgres", "Postgres answers with SQLSTATE 42704"},
		{"the key database", "AUTH_DATABASE_URL", broken(func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), secret) }), "keys", "Postgres refuses the user or the password of its URL"},
		{"the authority of Redis", "REDIS_URL", strings.Replace(stranger.URL, "https:", "rediss:", 1), "redis", "its TLS certificate is of an unknown authority, which CA_FILE can name"},
		{"Redis", "REDIS_URL", "redis://:" + secret + "@127.0.0.1:1/0", "redis", "nothing listens at the address of its URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startOn(t, b, map[string]string{tt.variable: tt.value})
			var body struct{ Causes map[string]string }
			eventually.True(t, "/readyz says why", func() bool {
				body.Causes = nil
				s.DoInternal(t, servicetest.Request{Path: "/readyz"}).JSON(t, &body)
				return body.Causes[tt.check] == tt.cause
			})
			if log := s.Log(); !strings.Contains(log, `"check fails"`) || !strings.Contains(log, tt.cause) || strings.Contains(log, secret) {
				t.Errorf("the log does not say why, or says too much:\n%s", log)
			}
			up := s.DoInternal(t, servicetest.Request{Path: "/metrics"})
			if tt.check == "redis" && !regexp.MustCompile(`(?m)^lectern_redis_up(\{[^}]*\})? 0$`).Match(up.Body) {
				t.Error("lectern_redis_up is not 0")
			}
		})
	}
}
