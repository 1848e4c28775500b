package auth_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/tokens"
	"github.com/lectern-dev/lectern/shared/egressproxy"
	"github.com/lectern-dev/lectern/shared/testing/issuertest"
)

func BenchmarkVerifyWarm(b *testing.B) {
	v, ctx, key := warm(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(ctx, "pr_benchmark", key); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerifyWarmToken is BenchmarkVerifyWarm with a token in place of a key.
func BenchmarkVerifyWarmToken(b *testing.B) {
	issuer := issuertest.Start(b)
	var all tokens.Issuers
	if err := all.UnmarshalText([]byte(issuer.Setting())); err != nil {
		b.Fatal(err)
	}
	verifier, err := tokens.NewVerifier(all, egressproxy.Config{}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	s := newStore()
	v := auth.NewVerifier(s, auth.VerifierOptions{MaxLookups: 64, Issuers: auth.NewIssuers(verifier, func(context.Context, string) {})})
	b.Cleanup(v.Close)
	s.putHash(auth.Record{ID: "key_1", ProjectID: "pr_benchmark", Scopes: auth.DefaultScopes}, auth.Identity{Issuer: issuer.URL, Subject: "ana"}.Hash())
	ctx, token := context.Background(), issuer.Token("ana", map[string]any{"groups": nil, "name": strings.Repeat("n", 500)})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(ctx, "pr_benchmark", token); err != nil {
			b.Fatal(err)
		}
	}
}

// warm returns a verifier with a key. It uses the real clock, so it renews its copy.
func warm(b *testing.B) (*auth.Verifier, context.Context, string) {
	s := newStore()
	v := auth.NewVerifier(s, auth.VerifierOptions{MaxLookups: 64})
	b.Cleanup(v.Close)
	key, _ := auth.Mint()
	s.put(auth.Record{ID: "key_1", ProjectID: "pr_benchmark", Scopes: auth.DefaultScopes}, key.Reveal())
	return v, context.Background(), key.Reveal()
}

func TestWarmVerificationMakesNoGarbage(t *testing.T) {
	b := setup(t, auth.VerifierOptions{})
	if err := b.verify(t); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { _, _ = b.Verify(ctx, "p", b.key) }); n != 0 {
		t.Errorf("%v allocations a verification, want 0", n)
	}
}
