package tokenendpoint

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// asserted is the life of an assertion. Some token endpoints allow no more than three minutes. skew is how far the clock of a
// token endpoint may be behind.
const asserted, skew = 2 * time.Minute, 10 * time.Second

// maxKey is the longest key in bits, as in crypto/tls. The time of a signature grows with its cube, and nothing can end a
// signature.
const maxKey = 8192

// assertion returns a signed assertion for a request (RFC 7523, section 3), or a [Fault] if the key is none. Google and others
// read the scopes from the assertion.
func assertion(r Request) (string, error) {
	file := struct { // the file with the key of a service account of Google
		Key string `json:"private_key"`
		ID  string `json:"private_key_id"`
	}{Key: r.PrivateKey}
	_ = json.Unmarshal([]byte(r.PrivateKey), &file) // a key in PEM is no JSON
	refused := &Fault{Refused: true, text: "privateKeyRef names no RSA key in PEM, and no JSON file with one"}
	block, _ := pem.Decode([]byte(file.Key))
	if block == nil {
		return "", refused
	}
	parsed, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		key, _ = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	switch {
	case key == nil:
		return "", refused
	case key.N.BitLen() > maxKey:
		return "", &Fault{Refused: true, text: fmt.Sprintf("privateKeyRef names a key of %d bits; allowed: up to %d", key.N.BitLen(), maxKey)}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: file.ID}}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", refused
	}
	now := time.Now()
	claims := map[string]any{
		"iss": r.ClientID, "aud": cmp.Or(r.Audience, r.TokenURL), "jti": rand.Text(),
		"iat": now.Add(-skew).Unix(), "exp": now.Add(asserted).Unix(),
	}
	for name, value := range map[string]string{"sub": r.Subject, "scope": strings.Join(r.Scopes, " ")} {
		if value != "" {
			claims[name] = value
		}
	}
	signed, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		return "", refused
	}
	return signed, nil
}
