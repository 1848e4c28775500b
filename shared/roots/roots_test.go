//go:debug x509usefallbackroots=1

package roots_test

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/roots"
)

// TestTrust checks that a client that names no authorities trusts those of the system and those of CA_FILE. The error
// before that names CA_FILE. Trust is called once in a process, as in a program.
func TestTrust(t *testing.T) {
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	start := func() (address, ca string) {
		s := httptest.NewTLSServer(http.NotFoundHandler())
		t.Cleanup(s.Close)
		return s.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	}
	get := func(address string) error {
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(address)
		if err == nil {
			_ = res.Body.Close()
		}
		return roots.Explain(err)
	}
	address, ca := start()
	if err := get(address); err == nil || !strings.HasSuffix(err.Error(), "; CA_FILE can name a file with further authorities") {
		t.Errorf("without CA_FILE: %v", err)
	}
	for _, path := range []string{"/no/such/file", write("empty", "none")} {
		if err := (roots.Config{CAFile: path}).Trust(); err == nil || !strings.HasPrefix(err.Error(), "CA_FILE is ") {
			t.Errorf("%s: %v", path, err)
		}
	}
	want, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	if err := (roots.Config{CAFile: write("ca.crt", ca)}).Trust(); err != nil {
		t.Fatal(err)
	}
	want.AppendCertsFromPEM([]byte(ca))
	if all, err := x509.SystemCertPool(); err != nil || !all.Equal(want) {
		t.Errorf("the system's authorities are gone: %v", err)
	}
	if err := get(address); err != nil {
		t.Errorf("with CA_FILE: %v", err)
	}
}
