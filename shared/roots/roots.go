// Package roots has the process trust certificate authorities in addition to those of the system. The Go runtime keeps
// the authorities for all outgoing TLS in one place, so the package needs no part in any connection. The main package of
// the program has the line //go:debug x509usefallbackroots=1, with which these authorities replace the system's (see
// x509.SetFallbackRoots).
package roots

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/lectern-dev/lectern/shared/config"
)

// Config names the certificate authorities.
type Config struct {
	// A file with certificate authorities in PEM, which the process trusts in addition to those of the system. They count for
	// all outgoing TLS: targets of the proxy, token endpoints, issuers, Postgres and Redis. The file is read at the start. On
	// Linux alone. Not set: the system's.
	CAFile string `env:"CA_FILE"`
}

// Trust adds the authorities of CAFile to those of the system, for the whole process. A process calls Trust at most once,
// before its first connection. The error is a [*config.Fault], or says that the program lacks the line.
func (c Config) Trust() error {
	if c.CAFile == "" {
		return nil
	}
	if runtime.GOOS != "linux" { // the verifiers of other systems know no file
		return &config.Fault{Variable: "CA_FILE", Problem: "is set, and this is no Linux; add the certificates to the system's store"}
	}
	pool, err := x509.SystemCertPool()
	if err != nil { // a system without authorities
		pool = x509.NewCertPool()
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		return config.Invalid("CA_FILE", c.CAFile, "a file that can be read, with certificates in PEM")
	}
	x509.SetFallbackRoots(pool)
	if now, err := x509.SystemCertPool(); err != nil || !now.Equal(pool) {
		return errors.New("CA_FILE has no effect: the program was built without //go:debug x509usefallbackroots=1")
	}
	return nil
}

// Explain adds to err that CA_FILE can help, if err says that a certificate is of no authority that the process trusts.
// Otherwise it returns err.
func Explain(err error) error {
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return fmt.Errorf("%w; CA_FILE can name a file with further authorities", err)
	}
	return err
}
