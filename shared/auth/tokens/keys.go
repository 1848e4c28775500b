package tokens

import (
	"cmp"
	"context"
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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/egressproxy"
)

const (
	// readEvery is how often the signing keys of an issuer are read without a request that needs them. A key that the
	// issuer has removed is accepted for so long.
	readEvery = 5 * time.Minute

	// keysLife is how long the keys are used while every read fails.
	keysLife = 24 * time.Hour

	// readAgain is the least time between two reads.
	readAgain = time.Second

	// maxWaiting is how many requests wait for a read of one issuer's keys.
	maxWaiting = 100

	// readLimit is how long one read may take.
	readLimit = 5 * time.Second

	// maxDocument is the largest discovery document or key set in bytes.
	maxDocument = 1 << 20
)

// keySet has the signing keys of one issuer. RemoteKeySet of go-oidc does not serve. One malformed key takes the whole set
// away there, and each unknown key id causes a read, of which a client can make any number.
type keySet struct {
	issuer  Issuer
	proxy   egressproxy.Config
	log     *slog.Logger
	reads   singleflight.Group
	waiting chan struct{} // has an element for each request that waits

	ctx    context.Context // of the reads
	cancel context.CancelFunc

	leftOut sync.Once // a token's groups were left out

	mu      sync.Mutex
	keys    []jose.JSONWebKey
	good    time.Time // when the read of keys began
	began   time.Time // when the last read began
	err     error     // of the last read
	skipped []string  // key ids that the last good read could not use
}

var errNeverRead = errors.New("they were not read yet")

// newKeySet returns the key set of an issuer. The error names a CAFile that cannot be read.
func newKeySet(issuer Issuer, proxy egressproxy.Config, log *slog.Logger) (*keySet, error) {
	s := &keySet{issuer: issuer, proxy: proxy, log: log, err: errNeverRead, waiting: make(chan struct{}, maxWaiting)}
	if _, err := s.client(); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// client returns a client for one read. The client trusts the certificates that the CAFile has now.
func (s *keySet) client() (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.DisableKeepAlives = nil, true
	if s.issuer.TokenFile == "" { // otherwise it is the API server of the cluster
		s.proxy.Use(transport, nil)
	}
	if s.issuer.CAFile != "" {
		pem, err := os.ReadFile(s.issuer.CAFile)
		roots := x509.NewCertPool()
		if err == nil && !roots.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("%s has no certificate in PEM", s.issuer.CAFile)
		}
		if err != nil {
			return nil, fmt.Errorf("the caFile of the issuer %s: %w", s.issuer.URL, err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

func (s *keySet) up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err == nil
}

// run reads the keys now and then until ctx ends: soon again after a failure. No read goes on after run.
func (s *keySet) run(ctx context.Context) {
	defer s.cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.readSoon():
		}
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

// find returns the keys that may have signed a token with the header. If the set has none, find calls permit, and waits for a
// read that begins after find. The error is the error of permit or of ctx, or an [*Unavailable] if that read fails or
// too many requests wait. Otherwise the error says that the issuer has no such key.
func (s *keySet) find(ctx context.Context, header jose.Header, permit func() error) ([]any, error) {
	asked := time.Now()
	found, _, err := s.known(header)
	if len(found) > 0 {
		return found, nil
	}
	if err := permit(); err != nil {
		return nil, err
	}
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		return nil, &Unavailable{s.issuer.URL, errors.New("too many tokens wait for them")}
	}
	for began := (time.Time{}); len(found) == 0 && began.Before(asked); {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.readSoon():
		}
		found, began, err = s.known(header)
	}
	switch {
	case len(found) > 0:
		return found, nil
	case err != nil:
		return nil, &Unavailable{s.issuer.URL, err}
	}
	return nil, refused(apierr.RefusedSignature, "the issuer has no such signing key")
}

// known returns the keys that may have signed a token with the header, when the last read began, and its error. A key with an
// algorithm signs with that algorithm alone. All keys are possible for a token without a key id.
func (s *keySet) known(header jose.Header) (found []any, began time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.good) > keysLife {
		return nil, s.began, s.err
	}
	for _, k := range s.keys {
		if (header.KeyID == "" || k.KeyID == header.KeyID) && cmp.Or(k.Algorithm, header.Algorithm) == header.Algorithm {
			found = append(found, k.Key)
		}
	}
	return found, s.began, s.err
}

// readSoon joins the read that waits or is in progress, or starts one, at the earliest readAgain after the last read. The
// read goes on when its request has ended.
func (s *keySet) readSoon() <-chan singleflight.Result {
	return s.reads.DoChan("", func() (any, error) {
		s.mu.Lock()
		wait := time.Until(s.began.Add(readAgain))
		s.mu.Unlock()
		select {
		case <-s.ctx.Done():
		case <-time.After(wait):
		}
		s.readNow()
		return nil, nil
	})
}

// readNow replaces the keys by those that the issuer has now. If the issuer cannot be reached, the keys stay.
func (s *keySet) readNow() {
	ctx, cancel := context.WithTimeout(s.ctx, readLimit)
	defer cancel()
	began := time.Now()
	keys, skipped, err := s.download(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && (s.err == nil || errors.Is(s.err, errNeverRead)):
		s.log.WarnContext(ctx, "the signing keys of an issuer of tokens cannot be read: tokens with known keys go on for a day", slog.String("issuer", s.issuer.URL), slog.Any("error", err))
	case err == nil && s.err != nil:
		s.log.InfoContext(ctx, "the signing keys of an issuer of tokens were read", slog.String("issuer", s.issuer.URL), slog.Int("keys", len(keys)))
	}
	s.err, s.began = err, began
	if err != nil {
		return
	}
	if !slices.Equal(skipped, s.skipped) {
		s.log.WarnContext(ctx, "some signing keys of an issuer of tokens are not used", slog.String("issuer", s.issuer.URL), slog.Any("kids", skipped))
	}
	s.keys, s.good, s.skipped = keys, began, skipped
}

// noteGroupsLeftOut logs, once, that the issuer leaves the groups out of a token.
func (s *keySet) noteGroupsLeftOut() {
	s.leftOut.Do(func() {
		s.log.WarnContext(s.ctx, "an issuer leaves the groups out of tokens with many groups: grant the subject, or have the issuer send granted groups alone", slog.String("issuer", s.issuer.URL))
	})
}

// download returns the keys for signatures in the key set that the issuer's discovery document names. download skips keys
// of unknown kinds and malformed keys (RFC 7517, section 5), and returns their ids. A set without a usable key is an error.
func (s *keySet) download(ctx context.Context) (keys []jose.JSONWebKey, skipped []string, err error) {
	var about struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := s.get(ctx, strings.TrimSuffix(s.issuer.URL, "/")+"/.well-known/openid-configuration", &about); err != nil {
		return nil, nil, err
	}
	if about.Issuer != s.issuer.URL {
		return nil, nil, fmt.Errorf("the discovery document is of the issuer %q", about.Issuer)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := s.get(ctx, about.Keys, &set); err != nil {
		return nil, nil, err
	}
	for _, text := range set.Keys {
		var about struct {
			ID  string `json:"kid"`
			Use string `json:"use"`
		}
		var k jose.JSONWebKey
		switch err := json.Unmarshal(text, &about); {
		case err == nil && cmp.Or(about.Use, "sig") != "sig":
		case err != nil || json.Unmarshal(text, &k) != nil || !k.IsPublic() || !k.Valid():
			skipped = append(skipped, about.ID)
		default:
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, nil, fmt.Errorf("GET %s: the set has %d keys, and no key for signatures that can be used", about.Keys, len(set.Keys))
	}
	return keys, skipped, nil
}

// get reads a JSON document of the issuer.
func (s *keySet) get(ctx context.Context, from string, into any) error {
	u, err := url.Parse(from)
	if err != nil || !secure(u) {
		return fmt.Errorf("%q is no https URL", from)
	}
	client, err := s.client()
	if err != nil {
		return err
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
		own, err := url.Parse(s.issuer.URL)
		if err != nil {
			return err
		}
		req.URL.Scheme, req.URL.Host, req.Host = own.Scheme, own.Host, own.Host
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", req.URL, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxDocument)).Decode(into); err != nil {
		return fmt.Errorf("GET %s: %w", req.URL, err)
	}
	return nil
}
