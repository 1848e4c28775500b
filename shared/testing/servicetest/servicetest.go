// Package servicetest runs a whole service for a test, over a real Postgres and a real Redis. It sends HTTP requests
// to the service as clients do. It needs a TestMain that calls pgtest.Main.
//
// Production code does not import it; the linter checks this.
package servicetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/openapitest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// The keys that services in tests accept.
const (
	IngestKey   = "test-ingest-key-0123456789"
	InternalKey = "test-internal-key-0123456789"
	AdminKey    = "test-admin-key-0123456789" // of the administrator "tester"
)

// Backing has the databases and the Redis of a service. Several services may share a Backing.
type Backing struct {
	DB    pgtest.DB
	Redis *redistest.Server
	Keys  *authtest.Keys
}

// NewBacking creates the databases of a service with that schema, and a Redis, for t.
func NewBacking(t testing.TB, schema migrate.Schema) *Backing {
	t.Helper()
	redis := redistest.Start(t)
	return &Backing{DB: pgtest.Database(t, schema), Redis: redis, Keys: authtest.New(t, redis.URL)}
}

// Environ returns the configuration of a service on b, as environment variables.
func (b *Backing) Environ() map[string]string {
	return map[string]string{
		"DATABASE_URL":            b.DB.ReaderURL,
		"INGEST_DATABASE_URL":     b.DB.IngestURL,
		"REMOVE_DATABASE_URL":     b.DB.RemoverURL,
		"MIGRATE_DATABASE_URL":    b.DB.OwnerURL,
		"AUTH_DATABASE_URL":       b.Keys.Config.DatabaseURL.Reveal(),
		"AUTH_ADMIN_DATABASE_URL": b.Keys.Config.AdminURL.Reveal(),
		"REDIS_URL":               b.Redis.URL.Reveal(),
		"INGEST_API_KEYS":         IngestKey,
		"INTERNAL_API_KEYS":       InternalKey,
		"ADMIN_API_KEYS":          "tester=" + AdminKey,
		"LISTEN_PUBLIC":           "127.0.0.1:0",
		"LISTEN_INTERNAL":         "127.0.0.1:0",
		"DRAIN_DELAY":             "0s",
		"RATE_LIMIT":              "0",
		"ANON_RATE_LIMIT":         "0",
		"OTEL_TRACES_EXPORTER":    "none",
		"DATABASE_MAX_CONNS":      "8",
		// On a busy machine, Postgres may take seconds to open a connection.
		"DATABASE_ACQUIRE_TIMEOUT": "30s",
		"LOG_LEVEL":                "debug",
	}
}

// Service is a running service.
type Service struct {
	*Backing
	URL         string // of the public listener
	InternalURL string // of the internal listener

	t    testing.TB
	log  *logtest.Buffer
	stop context.CancelFunc
	done chan error
}

// Start runs a service on b until t ends. environ overrides [Backing.Environ]. common returns the part of C that all
// services have.
func Start[C any](t testing.TB, b *Backing, run func(context.Context, C) error, common func(*C) *service.Config, environ map[string]string) *Service {
	t.Helper()
	all := b.Environ()
	all["LISTEN_PUBLIC"] = needs.Address(t) // so that a later service of t can listen there
	maps.Copy(all, environ)
	var cfg C
	if err := config.Load(&cfg, all); err != nil {
		t.Fatalf("servicetest: %v", err)
	}
	s := &Service{Backing: b, t: t, log: &logtest.Buffer{}, done: make(chan error, 1)}
	ready := make(chan struct{})
	c := common(&cfg)
	c.LogOutput = s.log
	c.StopTimeout = time.Minute // a busy machine may do nothing for seconds
	c.HTTP.Ready = func(public, internal net.Addr) {
		s.URL, s.InternalURL = "http://"+public.String(), "http://"+internal.String()
		close(ready)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	go func() { s.done <- run(ctx, cfg) }()
	select {
	case <-ready:
	case err := <-s.done:
		cancel()
		t.Fatalf("servicetest: the service did not start: %v\n%s", err, s.log.Errors(t))
	}
	s.log.ReportErrors(t, "the service")
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("servicetest: the service stopped with: %v", err)
		}
	})
	return s
}

// Stop stops the service and returns the result of its Run.
func (s *Service) Stop() error {
	s.stop()
	err, open := <-s.done
	if open {
		close(s.done)
	}
	return err
}

// Log returns the service's log.
func (s *Service) Log() string { return s.log.String() }

// Request is a request to a service.
type Request struct {
	Method  string // GET when empty
	Path    string // with its query, as it is sent
	Key     string // X-Api-Key; none when empty
	Headers map[string]string
	Body    io.Reader
}

func (r Request) method() string {
	if r.Method == "" {
		return http.MethodGet
	}
	return r.Method
}

// Answer is an answer that was read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Err    error // of reading the body
}

// JSON decodes the body.
func (a Answer) JSON(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, into); err != nil {
		t.Fatalf("answer %d is not JSON: %v\n%.500s", a.Status, err, a.Body)
	}
}

// Do sends a request to the public listener. The answer must agree with the published description.
func (s *Service) Do(t testing.TB, r Request) Answer {
	t.Helper()
	a := do(t, s.URL, r)
	for _, fault := range document(t).Faults(described(r, a)) {
		t.Errorf("%s %.200s: %d: %s", r.method(), r.Path, a.Status, fault)
	}
	return a
}

// CheckDescription probes the routes and parameters of the service, with a key that may read everything. They must be
// those of service in the table of routes and the published description.
func (s *Service) CheckDescription(t testing.TB, service routes.Service, key string) {
	t.Helper()
	ask := func(path string) openapitest.Answer {
		r := Request{Path: path, Key: key}
		return described(r, do(t, s.URL, r))
	}
	for _, fault := range document(t).ServiceFaults(service, ask) {
		t.Error(fault)
	}
}

func document(t testing.TB) *openapitest.Document {
	t.Helper()
	d, err := openapitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func described(r Request, a Answer) openapitest.Answer {
	return openapitest.Answer{Method: r.method(), Path: r.Path, Status: a.Status, Header: a.Header, Body: a.Body, Broken: a.Err != nil}
}

// Get requests a path of the public listener with a key.
func (s *Service) Get(t testing.TB, key, path string) Answer {
	t.Helper()
	return s.Do(t, Request{Path: path, Key: key})
}

// CheckRate checks that requests have a rate of perSecond and a burst of twice that, and returns an answer that was refused.
// It sends 30 requests at once, and again if Redis answered too late to count them, as Redis may on a busy machine.
func CheckRate(t testing.TB, perSecond int, get func() Answer) (refused Answer) {
	t.Helper()
	burst, rounds := 2*perSecond, 0
	eventually.Succeeds(t, fmt.Sprintf("a rate of %d a second holds", perSecond), func() error {
		answers := make(chan Answer, 30)
		begin := time.Now()
		for range cap(answers) {
			go func() {
				var a Answer
				defer func() { answers <- a }() // get may end its goroutine
				a = get()
			}()
		}
		served := 0
		for range cap(answers) {
			if a := <-answers; a.Status == http.StatusTooManyRequests {
				refused = a
			} else {
				served++
			}
		}
		if rounds++; rounds == 1 && served < burst {
			t.Errorf("%d of the first requests were served, and the burst is %d", served, burst)
		}
		// A process may serve up to a burst more than Redis has counted.
		if most := 2*burst + perSecond*int(1+time.Since(begin).Seconds()); served > most || served == cap(answers) {
			return fmt.Errorf("%d of %d requests were served, and %d may be", served, cap(answers), most)
		}
		return nil
	})
	return refused
}

// DoInternal sends a request to the internal listener.
func (s *Service) DoInternal(t testing.TB, r Request) Answer {
	t.Helper()
	a := do(t, s.InternalURL, r)
	d, err := openapitest.LoadInternal()
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range d.InternalFaults(described(r, a)) {
		t.Errorf("%s %.200s: %d: %s", r.method(), r.Path, a.Status, fault)
	}
	return a
}

// client neither follows redirects nor requests compression.
var client = &http.Client{
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       2 * time.Minute,
}

func do(t testing.TB, base string, r Request) Answer {
	t.Helper()
	req, err := http.NewRequest(r.method(), base+r.Path, r.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method(), r.Path, err)
	}
	if r.Key != "" {
		req.Header.Set("X-Api-Key", r.Key)
	}
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method(), r.Path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: body, Err: err}
}

// Ingested is the answer of an ingest endpoint.
type Ingested struct {
	Stored   int `json:"stored"`
	Changed  int `json:"changed"`
	Existing int `json:"existing"`
	Rejected int `json:"rejected"`
	Rejects  []struct {
		Line    int    `json:"line"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"rejects"`
}

// Ingest sends lines to /internal/<resource>. It sends strings unchanged and other values as JSON.
func (s *Service) Ingest(t testing.TB, resource string, lines ...any) Ingested {
	t.Helper()
	a := s.ingest(t, resource, lines...)
	if a.Status != http.StatusOK {
		t.Fatalf("ingest %s: %d %s", resource, a.Status, a.Body)
	}
	var in Ingested
	a.JSON(t, &in)
	return in
}

func (s *Service) ingest(t testing.TB, resource string, lines ...any) Answer {
	t.Helper()
	var body strings.Builder
	for _, line := range lines {
		switch l := line.(type) {
		case string:
			body.WriteString(l)
		default:
			b, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			body.Write(b)
		}
		body.WriteByte('\n')
	}
	return s.DoInternal(t, Request{
		Method: http.MethodPost, Path: "/internal/" + resource, Key: IngestKey,
		Headers: map[string]string{"Content-Type": "application/x-ndjson"}, Body: strings.NewReader(body.String()),
	})
}

// MustIngest sends records, and fails t if one of them is rejected.
func (s *Service) MustIngest(t testing.TB, resource string, lines ...any) Ingested {
	t.Helper()
	in := s.Ingest(t, resource, lines...)
	if in.Rejected != 0 {
		t.Fatalf("ingest %s: %d rejected, first %+v", resource, in.Rejected, in.Rejects[0])
	}
	return in
}
