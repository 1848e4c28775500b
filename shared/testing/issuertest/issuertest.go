// Package issuertest gives tests an OpenID provider on this machine that signs any claims.
//
// Production code does not import it; the linter checks this.
package issuertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Audience is the audience of tokens for which a test gives none.
const Audience = "lectern"

// Issuer is an OpenID provider with one signing key at a time.
type Issuer struct {
	// URL is the issuer, as tokens have it.
	URL string
	// Reads counts the reads of the signing keys.
	Reads atomic.Int64
	// Down makes every request to the issuer fail.
	Down atomic.Bool

	t testing.TB

	mu   sync.Mutex
	key  *ecdsa.PrivateKey
	kids int
}

// Start returns an Issuer that runs until t ends.
func Start(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t}
	i.Rotate()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	i.URL = server.URL
	answer := func(path string, body func() any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			if i.Down.Load() {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			_ = json.NewEncoder(w).Encode(body())
		})
	}
	answer("/.well-known/openid-configuration", func() any {
		return map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"}
	})
	answer("/keys", func() any {
		i.Reads.Add(1)
		i.mu.Lock()
		defer i.mu.Unlock()
		return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: i.kid(), Use: "sig", Algorithm: "ES256"}}}
	})
	return i
}

func (i *Issuer) kid() string { return fmt.Sprintf("key %d", i.kids) }

// Rotate replaces the signing key.
func (i *Issuer) Rotate() {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.kids = key, i.kids+1
}

// Setting is the value of TOKEN_ISSUERS for the issuer, whose claim groups has the groups.
func (i *Issuer) Setting() string {
	return fmt.Sprintf(`[{"url":%q,"audiences":[%q],"groupsClaim":"groups"}]`, i.URL, Audience)
}

// Token signs a token for a subject that is valid for an hour. more replaces or adds claims; nil removes a claim.
func (i *Issuer) Token(subject string, more map[string]any) string {
	i.t.Helper()
	now := time.Now()
	claims := map[string]any{"iss": i.URL, "sub": subject, "aud": Audience, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(claims, more)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.Sign(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: i.kid()}}, claims)
}

// Sign signs claims with any key, so also with one that is not the issuer's.
func (i *Issuer) Sign(key jose.SigningKey, claims map[string]any) string {
	i.t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		i.t.Fatal(err)
	}
	signer, err := jose.NewSigner(key, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		i.t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

// PublicKey is the issuer's public key in the form in which a confused verifier would take it for a secret.
func (i *Issuer) PublicKey() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	bytes, err := i.key.PublicKey.Bytes()
	if err != nil {
		i.t.Fatal(err)
	}
	return bytes
}
