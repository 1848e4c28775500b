package stage

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/must"
)

// makeCertificate writes three PEM files at the given paths: a certificate for localhost, its private key, and the
// certificate of the authority that signed it. The certificates are valid for a day.
func makeCertificate(certificate, key, authority string) {
	now := time.Now()
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), BasicConstraintsValid: true,
		}
	}
	write := func(path, kind string, der []byte) {
		must.Do(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	}
	rootKey := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	leafKey := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	root, leaf := template("benchmark authority"), template("localhost")
	root.IsCA, root.KeyUsage = true, x509.KeyUsageCertSign
	leaf.DNSNames = []string{"localhost"}
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	write(authority, "CERTIFICATE", must.Get(x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)))
	write(certificate, "CERTIFICATE", must.Get(x509.CreateCertificate(rand.Reader, leaf, root, leafKey.Public(), rootKey)))
	write(key, "PRIVATE KEY", must.Get(x509.MarshalPKCS8PrivateKey(leafKey)))
}
