package tokens_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/lectern-dev/lectern/shared/auth/tokens"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/egressproxy"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/issuertest"
	"github.com/lectern-dev/lectern/shared/testing/proxytest"
)

// TestEgressProxy checks that the keys of an issuer are read through EGRESS_PROXY.
func TestEgressProxy(t *testing.T) {
	network := proxytest.Start(t)
	issuer := issuertest.Start(t)
	v, err := tokens.NewVerifier(tokens.Issuers{{URL: issuer.URL, Audiences: []string{issuertest.Audience}}},
		egressproxy.Config{URL: config.NewServerURL(network.URL)}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), issuer.Token("ana", nil), always); err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(issuer.URL, "http://", "GET ", 1); network.Asked() != want {
		t.Errorf("%s, want %s", network.Asked(), want)
	}
}

// start returns a verifier of an issuer's tokens.
func start(t *testing.T) (*tokens.Verifier, *issuertest.Issuer) {
	t.Helper()
	issuer := issuertest.Start(t)
	var all tokens.Issuers
	if err := all.UnmarshalText([]byte(issuer.Setting())); err != nil {
		t.Fatal(err)
	}
	v, err := tokens.NewVerifier(all, egressproxy.Config{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return v, issuer
}

// always permits every read of signing keys.
func always() error { return nil }

func TestVerify(t *testing.T) {
	t.Parallel()
	v, issuer := start(t)
	now := time.Now()
	in := func(d time.Duration) int64 { return now.Add(d).Unix() }
	var groups []string // as Entra sends them: 16 KiB
	for n := range 400 {
		groups = append(groups, fmt.Sprintf("group %03d of the company, all", n)[:27])
	}
	kind := func(typ string, claims any) string {
		return issuer.Sign(issuer.Key(), (&jose.SignerOptions{}).WithType(jose.ContentType(typ)), claims)
	}
	claims := map[string]any{"iss": issuer.URL, "sub": "ana", "aud": issuertest.Audience, "exp": in(time.Hour)}
	for name, tt := range map[string]struct {
		token  string
		groups int
	}{
		"plain":                {issuer.Token("ana", nil), 0},
		"several audiences":    {issuer.Token("ana", map[string]any{"aud": []string{"other", issuertest.Audience}}), 0},
		"within the skew":      {issuer.Token("ana", map[string]any{"exp": in(-30 * time.Second), "nbf": in(30 * time.Second)}), 0},
		"51 groups":            {issuer.Token("ana", map[string]any{"groups": groups[:51]}), 51},
		"400 groups":           {issuer.Token("ana", map[string]any{"groups": groups}), 400},
		"one group as text":    {issuer.Token("ana", map[string]any{"groups": "analysts"}), 1},
		"groups of no texts":   {issuer.Token("ana", map[string]any{"groups": []int{1}}), 0},
		"groups elsewhere":     {issuer.Token("ana", map[string]any{"_claim_names": map[string]string{"groups": "src1"}}), 0},
		"a claim of any form":  {issuer.Token("ana", map[string]any{"x": map[string]any{"y": []any{1, nil}}}), 0},
		"12 KiB":               {issuer.Token("ana", map[string]any{"x": strings.Repeat("x", 9<<10)}), 0},
		"capital letters":      {issuer.Token("ana", map[string]any{"GROUPS": "x", "Name": "Ana"}), 0},
		"typ JWT":              {kind("JWT", claims), 0},
		"typ at+jwt":           {kind("at+jwt", claims), 0},
		"typ in another case":  {kind("application/AT+JWT", claims), 0},
		"a time with fraction": {issuer.Token("ana", map[string]any{"exp": float64(in(time.Hour)) + 0.5}), 0},
	} {
		got, err := v.Verify(t.Context(), tt.token, always)
		if err != nil || got.Subject != "ana" || got.Issuer != issuer.URL || len(got.Groups) != tt.groups {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
	for name, tt := range map[string]struct {
		claim any
		uid   string
	}{
		"an account's uid":          {map[string]any{"namespace": "shop", "serviceaccount": map[string]any{"name": "reports", "uid": "u-1"}}, "u-1"},
		"an account without a uid":  {map[string]any{"serviceaccount": map[string]any{"name": "reports"}}, ""},
		"a uid that is no text":     {map[string]any{"serviceaccount": map[string]any{"uid": 1}}, ""},
		"another claim of the name": {"cluster-1", ""},
	} {
		got, err := v.Verify(t.Context(), issuer.Token("ana", map[string]any{"kubernetes.io": tt.claim}), always)
		if err != nil || got.UID != tt.uid {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	named := func(id string, key any, algorithm jose.SignatureAlgorithm) string {
		return issuer.Sign(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil, claims)
	}
	text := func(format string, args ...any) string {
		return issuer.Sign(issuer.Key(), nil, json.RawMessage(fmt.Sprintf(format, args...)))
	}
	parts := strings.Split(issuer.Token("ana", nil), ".")
	plain := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for name, tt := range map[string]struct{ token, named string }{
		"empty":                  {"", "malformed"},
		"no token":               {"a.b.c", "malformed"},
		"another audience":       {issuer.Token("ana", map[string]any{"aud": "other"}), "another audience"},
		"no audience":            {issuer.Token("ana", map[string]any{"aud": nil}), "another audience"},
		"another issuer":         {issuer.Token("ana", map[string]any{"iss": "https://other.example.com"}), "TOKEN_ISSUERS"},
		"expired":                {issuer.Token("ana", map[string]any{"exp": in(-61 * time.Second)}), "expired"},
		"no expiry":              {issuer.Token("ana", map[string]any{"exp": nil}), "expired"},
		"an expiry before 1970":  {issuer.Token("ana", map[string]any{"exp": -1e300}), "expired"},
		"an expiry as text":      {issuer.Token("ana", map[string]any{"exp": fmt.Sprint(in(time.Hour))}), "claims of the token are malformed"},
		"not yet valid":          {issuer.Token("ana", map[string]any{"nbf": in(90 * time.Second)}), "not valid yet"},
		"no subject":             {issuer.Token("", nil), "no subject"},
		"a subject of letters":   {issuer.Token("ana", map[string]any{"sub": nil, "SUB": "ana", "\u017fub": "ana"}), "letter case"},
		"other letter case":      {issuer.Token("ana", map[string]any{"Aud": "other"}), "letter case"},
		"two subjects":           {text(`{"iss":%q,"sub":"eve","sub":"ana","aud":"lectern","exp":%d}`, issuer.URL, in(time.Hour)), "claims of the token are malformed"},
		"two of another claim":   {text(`{"iss":%q,"sub":"ana","aud":"lectern","exp":%d,"x":1,"x":1}`, issuer.URL, in(time.Hour)), "claims of the token are malformed"},
		"a logout token":         {kind("logout+jwt", claims), "type of the token"},
		"an event":               {issuer.Token("ana", map[string]any{"events": map[string]any{"x": map[string]any{}}}), "about an event"},
		"a security event":       {kind("secevent+jwt", claims), "type of the token"},
		"a proof of possession":  {kind("dpop+jwt", claims), "type of the token"},
		"bound to a key":         {issuer.Token("ana", map[string]any{"cnf": map[string]any{"jkt": "x"}}), "bound to a key"},
		"nobody signed it":       {plain(`{"alg":"none"}`) + "." + parts[1] + ".", "malformed, or its algorithm"},
		"the public key as HMAC": {named("key 1", issuer.PublicKey(), jose.HS256), "malformed, or its algorithm"},
		"another key, same id":   {named("key 1", other, jose.ES256), "signature"},
		"an unknown key":         {named("key 2", other, jose.ES256), "no such signing key"},
		"claims changed":         {parts[0] + "." + plain(fmt.Sprintf(`{"iss":%q,"sub":"eve","aud":"lectern","exp":%d}`, issuer.URL, in(time.Hour))) + "." + parts[2], "signature"},
		"over 16 KiB":            {issuer.Token("ana", map[string]any{"x": strings.Repeat("x", 16<<10)}), "allowed: 16384"},
		"a megabyte":             {strings.Repeat("e", 1<<20), "allowed: 16384"},
	} {
		got, err := v.Verify(t.Context(), tt.token, always)
		_, unavailable := errors.AsType[*tokens.Unavailable](err)
		if err == nil || unavailable || !strings.Contains(err.Error(), tt.named) || tt.token != "" && strings.Contains(err.Error(), tt.token) {
			t.Errorf("%s: %+v, %v; want %q in the error", name, got, err, tt.named)
		}
	}
}

// TestKeySets checks that a key that cannot be used does not take the other keys away (RFC 7517, section 5).
func TestKeySets(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{
		"X25519 to encrypt":       `{"kty":"OKP","crv":"X25519","use":"enc","kid":"x","x":"3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08"}`,
		"X25519 without a use":    `{"kty":"OKP","crv":"X25519","kid":"x","x":"3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08"}`,
		"Ed448":                   `{"kty":"OKP","crv":"Ed448","kid":"x","x":"X9dEm1m0Yf0s54fsYWrUah2hNCSFpw4fig6nXYDpZ3jt8SR2m0bHBhvWeD3x5Q9s0foavq_oJWGA"}`,
		"secp256k1":               `{"kty":"EC","crv":"secp256k1","kid":"x","x":"3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08","y":"3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08"}`,
		"ML-DSA":                  `{"kty":"AKP","alg":"ML-DSA-44","kid":"x","pub":"unH59k4RuutY-pxvu24U5h8YZD2rSVtHU5qRZsoBmBMcRPgmu9VuNOVdteXi1zNIXjnqJg"}`,
		"RSA without a modulus":   `{"kty":"RSA","kid":"x","e":"AQAB"}`,
		"a bad certificate":       `{"kty":"RSA","kid":"x","n":"sXch","e":"AQAB","x5c":["bm8gY2VydGlmaWNhdGU="]}`,
		"a secret":                `{"kty":"oct","kid":"x","k":"c2VjcmV0"}`,
		"a kid that is a number":  `{"kty":"RSA","kid":1}`,
		"no object":               `"key"`,
		"null":                    `null`,
		"the same kid to encrypt": `{"kty":"RSA","use":"enc","kid":"key 1","n":"sXch","e":"AQAB"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, issuer := start(t)
			issuer.Publish(key)
			if _, err := v.Verify(t.Context(), issuer.Token("ana", nil), always); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFilesOfAnIssuer checks that a read uses the certificates and the token that an issuer's files have now. No other
// host gets the token.
func TestFilesOfAnIssuer(t *testing.T) {
	t.Parallel()
	var sent atomic.Value // the token of the last read
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s got %q", r.Host, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	var server *httptest.Server
	signer := issuertest.Start(t)
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Store(r.Header.Get("Authorization"))
		if r.URL.Path != "/keys" {
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, server.URL, elsewhere.URL+"/keys")
			return
		}
		_, _ = w.Write(signer.KeySet())
	}))
	defer server.Close()
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	v, err := tokens.NewVerifier(tokens.Issuers{{
		URL: server.URL, Audiences: []string{issuertest.Audience}, CAFile: write("ca.crt", anotherCertificate(t)), TokenFile: write("token", []byte("first")),
	}}, egressproxy.Config{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	verify := func() error {
		_, err := v.Verify(t.Context(), signer.Token("ana", map[string]any{"iss": server.URL}), always)
		return err
	}
	if err := verify(); !errors.As(err, new(*tokens.Unavailable)) {
		t.Fatalf("with another authority: %v", err)
	}
	write("ca.crt", good)
	eventually.Succeeds(t, "the new authority", verify)
	if sent.Load() != "Bearer first" {
		t.Errorf("the issuer got %q", sent.Load())
	}
	write("token", []byte("second"))
	signer.Rotate()
	eventually.Succeeds(t, "the new key", verify)
	if sent.Load() != "Bearer second" {
		t.Errorf("the issuer got %q after the token changed", sent.Load())
	}
}

// anotherCertificate returns a certificate in PEM that signs nothing.
func anotherCertificate(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestSigningKeys checks which tokens are accepted while an issuer changes its keys or cannot be reached. No client can
// make the verifier read the keys often, and none waits for a read without permission.
func TestSigningKeys(t *testing.T) {
	t.Parallel()
	v, issuer := start(t)
	verify := func(token string) error {
		_, err := v.Verify(t.Context(), token, always)
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
	if err := verify(first); err != nil {
		t.Fatalf("a token that waits for the next read: %v", err)
	}
	forbidden := errors.New("no read for this network")
	permit := func() error { return forbidden }
	if _, err := v.Verify(t.Context(), first, permit); err != nil {
		t.Errorf("a known key needs no read: %v", err)
	}
	issuer.Rotate()
	second := issuer.Token("ana", nil)
	if _, err := v.Verify(t.Context(), second, permit); !errors.Is(err, forbidden) {
		t.Errorf("an unknown key without permission: %v", err)
	}
	if err := verify(second); err != nil {
		t.Errorf("a new key: %v", err)
	}
	if err := verify(first); err == nil || unavailable(err) {
		t.Errorf("a key that the issuer removed: %v", err)
	}

	reads := issuer.Reads.Load()
	began := time.Now()
	var wait sync.WaitGroup
	for i := range 1000 {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		forged := issuer.Sign(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: fmt.Sprint("forged ", i)}}, nil,
			map[string]any{"iss": issuer.URL, "sub": "eve", "aud": issuertest.Audience, "exp": time.Now().Add(time.Hour).Unix()})
		wait.Go(func() {
			if err := verify(forged); err == nil {
				t.Error("a forged token is accepted")
			}
		})
	}
	wait.Wait()
	if n, most := issuer.Reads.Load()-reads, 1+int64(time.Since(began)/time.Second); n > most {
		t.Errorf("1,000 unknown keys in %v caused %d reads; want at most %d", time.Since(began), n, most)
	}

	issuer.Down.Store(true)
	issuer.Rotate()
	if err := verify(issuer.Token("ana", nil)); !unavailable(err) {
		t.Errorf("an unknown key while the issuer is down: %v", err)
	}
	if err := verify(second); err != nil || up() {
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
