package tokens

import (
	"cmp"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"
)

const (
	// readEvery is how often the signing keys of an issuer are read without a request that needs them. A key that the
	// issuer has removed is accepted for so long.
	readEvery = 5 * time.Minute

	// readAgain is the least time between two reads for an unknown key id.
	readAgain = 5 * time.Second

	// readLimit is how long one read may take.
	readLimit = 5 * time.Second

	// maxDocument is the largest discovery document or key set in bytes.
	maxDocument = 1 << 20
)

// keySet has the signing keys of one issuer. [oidc.RemoteKeySet] would read the keys again for each unknown key id, of
// which a client can make any number.
type keySet struct {
	issuer     Issuer
	client     *http.Client
	algorithms []jose.SignatureAlgorithm
	log        *slog.Logger
	reads      singleflight.Group

	mu   sync.Mutex
	keys []jose.JSONWebKey
	read time.Time // when the last read ended
	err  error     // of the last read
}

var errNeverRead = errors.New("they were not read yet")

func newKeySet(issuer Issuer, log *slog.Logger) (*keySet, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	if issuer.CAFile != "" {
		pem, err := os.ReadFile(issuer.CAFile)
		roots := x509.NewCertPool()
		if err == nil && !roots.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("%s has no certificate in PEM", issuer.CAFile)
		}
		if err != nil {
			return nil, fmt.Errorf("the caFile of the issuer %s: %w", issuer.URL, err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	s := &keySet{issuer: issuer, log: log, err: errNeverRead, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, name := range algorithms {
		s.algorithms = append(s.algorithms, jose.SignatureAlgorithm(name))
	}
	return s, nil
}

func (s *keySet) up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err == nil
}

// run reads the keys now and then until ctx ends: soon again after a failure.
func (s *keySet) run(ctx context.Context) {
	defer s.client.CloseIdleConnections()
	for {
		<-s.readSoon()
		next := readEvery
		if !s.up() {
			next = readAgain
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// find returns the keys of a key id, or all keys if the id is empty. If find knows none, it reads the keys again, at
// most once in readAgain. The error is an [*Unavailable] if the last read failed, or the error of ctx.
func (s *keySet) find(ctx context.Context, id string) ([]crypto.PublicKey, error) {
	found, wait, err := s.known(id)
	if len(found) == 0 && wait <= 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.readSoon():
		}
		found, _, err = s.known(id)
	}
	switch {
	case len(found) > 0:
		return found, nil
	case err != nil:
		return nil, &Unavailable{s.issuer.URL, err}
	}
	return nil, errors.New("the issuer has no such signing key")
}

// known returns the keys of a key id, how long no further read may begin, and the error of the last read.
func (s *keySet) known(id string) (found []crypto.PublicKey, wait time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.keys {
		if id == "" || k.KeyID == id {
			found = append(found, k.Key)
		}
	}
	return found, readAgain - time.Since(s.read), s.err
}

// readSoon joins the read that is in progress, or starts one. The read goes on when its request has ended.
func (s *keySet) readSoon() <-chan singleflight.Result {
	return s.reads.DoChan("", func() (any, error) { s.readNow(); return nil, nil })
}

// readNow replaces the keys by those that the issuer has now. If the issuer cannot be reached, the keys stay.
func (s *keySet) readNow() {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	keys, err := s.download(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && (s.err == nil || errors.Is(s.err, errNeverRead)):
		s.log.WarnContext(ctx, "an issuer of tokens cannot be reached: tokens with known signing keys go on", slog.String("issuer", s.issuer.URL), slog.Any("error", err))
	case err == nil && s.err != nil:
		s.log.InfoContext(ctx, "the signing keys of an issuer of tokens were read", slog.String("issuer", s.issuer.URL), slog.Int("keys", len(keys)))
	}
	if err == nil {
		s.keys = keys
	}
	s.err, s.read = err, time.Now()
}

// download returns the asymmetric keys for signatures in the key set that the issuer's discovery document names.
func (s *keySet) download(ctx context.Context) ([]jose.JSONWebKey, error) {
	var about struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := s.get(ctx, strings.TrimSuffix(s.issuer.URL, "/")+"/.well-known/openid-configuration", &about); err != nil {
		return nil, err
	}
	if about.Issuer != s.issuer.URL {
		return nil, fmt.Errorf("the discovery document is of the issuer %q", about.Issuer)
	}
	var set jose.JSONWebKeySet
	if err := s.get(ctx, about.Keys, &set); err != nil {
		return nil, err
	}
	var keys []jose.JSONWebKey
	for _, k := range set.Keys {
		if cmp.Or(k.Use, "sig") == "sig" && k.IsPublic() && k.Valid() {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// get reads a JSON document of the issuer.
func (s *keySet) get(ctx context.Context, from string, into any) error {
	u, err := url.Parse(from)
	if err != nil || !secure(u) {
		return fmt.Errorf("%q is no https URL", from)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	if s.issuer.TokenFile != "" {
		token, err := os.ReadFile(s.issuer.TokenFile)
		if err != nil {
			return fmt.Errorf("the tokenFile of the issuer: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", from, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxDocument)).Decode(into); err != nil {
		return fmt.Errorf("GET %s: %w", from, err)
	}
	return nil
}
