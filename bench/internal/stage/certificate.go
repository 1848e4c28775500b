package stage

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"time"
)

// makeCertificate writes a certificate for localhost and 127.0.0.1, its key, and the authority that signed it,
// as PEM.
func makeCertificate(certificate, key, authority string) error {
	now := time.Now()
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), BasicConstraintsValid: true,
		}
	}
	rootKey, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	leafKey, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	root := template("benchmark authority")
	root.IsCA, root.KeyUsage = true, x509.KeyUsageCertSign
	leaf := template("localhost")
	leaf.DNSNames, leaf.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	rootDER, err1 := x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
	leafDER, err2 := x509.CreateCertificate(rand.Reader, leaf, root, leafKey.Public(), rootKey)
	keyDER, err3 := x509.MarshalPKCS8PrivateKey(leafKey)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	write := func(path, kind string, der []byte) error {
		return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	}
	return errors.Join(write(certificate, "CERTIFICATE", leafDER), write(key, "PRIVATE KEY", keyDER), write(authority, "CERTIFICATE", rootDER))
}
