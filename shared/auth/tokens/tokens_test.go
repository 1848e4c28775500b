package tokens_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/lectern-dev/lectern/shared/auth/tokens"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/issuertest"
)

// start returns a verifier of an issuer's tokens.
func start(t *testing.T) (*tokens.Verifier, *issuertest.Issuer) {
	t.Helper()
	issuer := issuertest.Start(t)
	var all tokens.Issuers
	if err := all.UnmarshalText([]byte(issuer.Setting())); err != nil {
		t.Fatal(err)
	}
	v, err := tokens.NewVerifier(all, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return v, issuer
}

func TestVerify(t *testing.T) {
	v, issuer := start(t)
	now := time.Now()
	in := func(d time.Duration) int64 { return now.Add(d).Unix() }
	groups := func(n int) []string { return slices.Repeat([]string{"g"}, n) }
	for name, tt := range map[string]struct {
		more   map[string]any
		groups int
	}{
		"plain":               {nil, 0},
		"several audiences":   {map[string]any{"aud": []string{"other", issuertest.Audience}}, 0},
		"within the skew":     {map[string]any{"exp": in(-30 * time.Second), "nbf": in(30 * time.Second)}, 0},
		"groups":              {map[string]any{"groups": groups(50)}, 50},
		"too many groups":     {map[string]any{"groups": groups(51)}, 0},
		"groups of no texts":  {map[string]any{"groups": []int{1}}, 0},
		"a claim of any form": {map[string]any{"x": map[string]any{"y": []any{1, nil}}}, 0},
	} {
		got, err := v.Verify(t.Context(), issuer.Token("ana", tt.more))
		if err != nil || got.Subject != "ana" || got.Issuer != issuer.URL || len(got.Groups) != tt.groups {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
	claims := map[string]any{"iss": issuer.URL, "sub": "ana", "aud": issuertest.Audience, "exp": in(time.Hour)}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	valid := issuer.Token("ana", nil)
	parts := strings.Split(valid, ".")
	plain := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for name, token := range map[string]string{
		"empty":                  "",
		"no token":               "a.b.c",
		"another audience":       issuer.Token("ana", map[string]any{"aud": "other"}),
		"no audience":            issuer.Token("ana", map[string]any{"aud": nil}),
		"another issuer":         issuer.Token("ana", map[string]any{"iss": "https://other.example.com"}),
		"expired":                issuer.Token("ana", map[string]any{"exp": in(-61 * time.Second)}),
		"no expiry":              issuer.Token("ana", map[string]any{"exp": nil}),
		"not yet valid":          issuer.Token("ana", map[string]any{"nbf": in(90 * time.Second)}),
		"no subject":             issuer.Token("", nil),
		"nobody signed it":       plain(`{"alg":"none"}`) + "." + parts[1] + ".",
		"the public key as HMAC": issuer.Sign(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: issuer.PublicKey(), KeyID: "key 1"}}, claims),
		"another key, same id":   issuer.Sign(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: other, KeyID: "key 1"}}, claims),
		"an unknown key":         issuer.Sign(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: other, KeyID: "key 2"}}, claims),
		"claims changed":         parts[0] + "." + plain(fmt.Sprintf(`{"iss":%q,"sub":"eve","aud":"lectern","exp":%d}`, issuer.URL, in(time.Hour))) + "." + parts[2],
		"over 8 KiB":             issuer.Token("ana", map[string]any{"x": strings.Repeat("x", 8<<10)}),
		"a megabyte":             strings.Repeat("e", 1<<20),
	} {
		got, err := v.Verify(t.Context(), token)
		if _, unavailable := errors.AsType[*tokens.Unavailable](err); err == nil || unavailable || token != "" && strings.Contains(err.Error(), token) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestSigningKeys checks which tokens are accepted while an issuer changes its keys or cannot be reached. No client can
// make the verifier read the keys often.
func TestSigningKeys(t *testing.T) {
	v, issuer := start(t)
	verify := func(token string) error {
		_, err := v.Verify(t.Context(), token)
		return err
	}
	unavailable := func(err error) bool { return errors.As(err, new(*tokens.Unavailable)) }
	up := func() (up bool) {
		v.EachIssuer(func(_ string, is bool) { up = is })
		return up
	}
	issuer.Down.Store(true)
	first := issuer.Token("ana", nil)
	if err := verify(first); !unavailable(err) || up() {
		t.Fatalf("before the keys were read: %v", err)
	}
	issuer.Down.Store(false)
	eventually.Succeeds(t, "the first key", func() error { return verify(first) })
	reads := issuer.Reads.Load()
	began := time.Now()
	for range 1000 {
		issuer.Rotate()
		_ = verify(issuer.Token("eve", nil))
	}
	if n, most := issuer.Reads.Load()-reads, 1+int64(time.Since(began)/(5*time.Second)); n > most {
		t.Errorf("1,000 unknown keys in %v caused %d reads; want at most %d", time.Since(began), n, most)
	}
	eventually.Succeeds(t, "the last key", func() error { return verify(issuer.Token("ana", nil)) })
	if err := verify(first); err == nil || unavailable(err) {
		t.Errorf("a key that the issuer removed: %v", err)
	}
	issuer.Down.Store(true)
	last := issuer.Token("ana", nil)
	issuer.Rotate()
	eventually.True(t, "the issuer is down", func() bool { return unavailable(verify(issuer.Token("ana", nil))) })
	if err := verify(last); err != nil || up() {
		t.Errorf("a known key while the issuer is down: %v", err)
	}
	issuer.Down.Store(false)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { v.Run(ctx); close(ended) }()
	eventually.True(t, "the keys are read without a request", up)
	cancel()
	<-ended
}

func TestIssuersRefuse(t *testing.T) {
	for given, named := range map[string]string{
		`{}`:   "allowed: a JSON list",
		`[{}]`: `url ""`,
		`[{"url":"http://login.example.com","audiences":["a"]}]`:                                        "an https URL",
		`[{"url":"https://a.example"}]`:                                                                 "at least one text",
		`[{"url":"https://a.example","audience":"a"}]`:                                                  `"audience"`,
		`[{"url":"https://a.example","audiences":["a"]},{"url":"https://a.example","audiences":["b"]}]`: "twice",
	} {
		var all tokens.Issuers
		if err := all.UnmarshalText([]byte(given)); err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("%s: %v; want %q in the error", given, err, named)
		}
	}
}
