package authn_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/issuertest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// TestGivenRights gives rights to credentials that two processes with Redis refused a moment before. No request that begins
// over a second later is refused, whatever copies the processes and Redis have.
func TestGivenRights(t *testing.T) {
	t.Parallel()
	issuer := issuertest.Start(t)
	k := authtest.New(t, redistest.Patient(redistest.Start(t).URL, time.Minute))
	k.Config.ForeignKeys, k.Config.CacheTTL = true, auth.MaxCacheTTL
	if err := k.Config.Issuers.UnmarshalText([]byte(issuer.Setting())); err != nil {
		t.Fatal(err)
	}
	processes := []*authn.Authenticator{k.Authenticator(authn.Options{}), k.Authenticator(authn.Options{})}
	give := func(t *testing.T, o pgkeys.MintOptions) auth.Record {
		t.Helper()
		o.ProjectID = "p"
		_, r, err := k.Mint(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	subject := func(name string) pgkeys.MintOptions {
		return pgkeys.MintOptions{Identity: auth.Identity{Issuer: issuer.URL, Subject: name}}
	}
	unknown, _ := auth.Mint()
	ofOther := k.Key("q")
	const entries = "/projects/p/entries"
	address := 0
	for _, tt := range []struct {
		name       string
		path       string
		credential string
		given      pgkeys.MintOptions
		before     func(t *testing.T, request func(*authn.Authenticator) int) // ends with refused requests
		late       time.Duration                                              // in addition to a second
	}{
		{"a new key", entries, unknown.Reveal(), pgkeys.MintOptions{Value: unknown}, nil, 0},
		{"a key of another project", entries, ofOther, pgkeys.MintOptions{Value: config.NewSecret(ofOther)}, nil, 0},
		// A process reads new imported keys once a second, which takes longer on a busy machine.
		{"an imported key", entries, "pin 4711", pgkeys.MintOptions{Value: config.NewSecret("pin 4711")}, nil, time.Hour},
		{"an imported key, projects", "/me/projects", "pin 4712", pgkeys.MintOptions{Value: config.NewSecret("pin 4712")}, nil, time.Hour},
		{"a subject", entries, issuer.Token("new", nil), subject("new"), nil, 0},
		{"a group", entries, issuer.Token("member", map[string]any{"groups": []string{"sales"}}), pgkeys.MintOptions{
			Identity: auth.Identity{Issuer: issuer.URL, Group: "sales"},
		}, nil, 0},
		{"a subject again, after a revocation", entries, issuer.Token("revoked", nil), subject("revoked"),
			func(t *testing.T, request func(*authn.Authenticator) int) {
				r := give(t, subject("revoked"))
				eventually.True(t, "the subject is accepted", func() bool { return request(processes[0]) == 200 })
				if _, err := k.Revoke(t.Context(), "p", r.ID); err != nil {
					t.Fatal(err)
				}
			}, 0},
		{"a subject again, after its expiry", entries, issuer.Token("expired", nil), subject("expired"),
			func(t *testing.T, request func(*authn.Authenticator) int) {
				o := subject("expired")
				eventually.True(t, "the subject is accepted before its rights expire", func() bool {
					o.ProjectID, o.ExpiresAt = "p", time.Now().Add(2*time.Second)
					_, _, _ = k.Mint(t.Context(), o) // an error while the rights have not expired
					return request(processes[0]) == 200
				})
			}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address++
			request := func(a *authn.Authenticator) int {
				return get(serve(a), fmt.Sprintf("192.0.2.%d", address), tt.path, tt.credential).StatusCode
			}
			if tt.before != nil {
				tt.before(t, request)
			}
			for _, a := range processes {
				eventually.True(t, "the credential is refused", func() bool { return request(a) == 401 })
			}
			give(t, tt.given)
			given := time.Now()
			for i, a := range processes {
				eventually.True(t, "the credential is accepted", func() bool {
					began := time.Now()
					status := request(a)
					if late := began.Sub(given); status == 401 && late > time.Second+tt.late {
						t.Fatalf("process %d refused a request that began %v after the rights were given", i, late)
					}
					return status == 200
				})
			}
		})
	}
}
