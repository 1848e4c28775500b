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
	"slices"
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

	mu     sync.Mutex
	key    *ecdsa.PrivateKey
	kids   int
	others []json.RawMessage // of the key set, in addition to key
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
		return json.RawMessage(i.KeySet())
	})
	return i
}

// KeySet is the key set as the issuer answers it (RFC 7517).
func (i *Issuer) KeySet() []byte {
	i.t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	own, err := json.Marshal(jose.JSONWebKey{Key: i.key.Public(), KeyID: i.kid(), Use: "sig", Algorithm: "ES256"})
	if err != nil {
		i.t.Fatal(err)
	}
	set, err := json.Marshal(map[string]any{"keys": append(slices.Clone(i.others), own)})
	if err != nil {
		i.t.Fatal(err)
	}
	return set
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

// Publish adds a key, in JSON, to the key set.
func (i *Issuer) Publish(key string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.others = append(i.others, json.RawMessage(key))
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
	return i.Sign(i.Key(), nil, claims)
}

// Key is the signing key with its key id.
func (i *Issuer) Key() jose.SigningKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: i.kid()}}
}

// Sign signs claims, a map or JSON, with any key, so also with a key that is not the issuer's. options add headers.
func (i *Issuer) Sign(key jose.SigningKey, options *jose.SignerOptions, claims any) string {
	i.t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		i.t.Fatal(err)
	}
	signer, err := jose.NewSigner(key, options)
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
