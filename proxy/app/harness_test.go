package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lectern-dev/lectern/proxy/app"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// waitTimeout bounds the wait for an event that should happen at once.
const waitTimeout = 5 * time.Minute

const (
	project = "pr_demo"
	origin  = "https://app.example.com"
)

// The credentials of the test policy.
const (
	canary  = "sk_live_c4n4ryC4N4RY51Hx0Qw9"   // cred_main
	other   = "second/secret+with=odd&chars?"  // cred_other
	nested  = "{{ cred_main }} as a value"     // cred_nested
	crlf    = "value-with\r\nX-Injected: 1"    // cred_crlf
	short   = "short"                          // cred_short
	dots    = ".."                             // cred_dots, too short as well
	foreign = "another-projects-secret-value"  // cred_foreign, of another project
	staging = "another-environments-secret-v"  // cred_staging, of another environment
	narrow  = "narrowed-to-headers-and-a-path" // cred_narrow
	unlist  = "known-but-not-on-the-list-xx"   // cred_unlisted, of no endpoint
)

// setup configures a test's proxy.
type setup struct {
	environ   map[string]string
	manifests func(w *world) string // manifests in addition to the credentials; nil: standard
	open      bool                  // loopback is allowed
	handler   http.Handler          // of the target; nil: echo
	configure func(*app.Config)
}

// world is a running proxy with a target and a name server.
type world struct {
	t         testing.TB
	base      string // the proxy's public URL
	internal  string
	folder    string
	authority *authority
	target    *target
	plain     *target // without TLS
	names     *names
	log       *logtest.Buffer
	client    *http.Client
	stop      func() error
}

func standard(w *world) string {
	return endpoint(w, "web", nil)
}

// passThrough returns an endpoint without credentials. Its answers are not searched.
func passThrough(w *world) string {
	return endpoint(w, "web", m{"credentials": nil})
}

// endpoint returns the manifest of an endpoint for the target, with the settings that most tests need.
func endpoint(w *world, name string, further m) string {
	spec := m{
		"projectId": project, "environment": "prod",
		"origins":      []m{{"domain": "example.com"}},
		"destinations": []m{{"pattern": `https://api\.lectern\.test:` + w.target.port + `/.*`}, {"domain": "allowed.test"}},
		"ports":        []json.Number{json.Number(w.target.port), "443"},
		"credentials":  []string{"cred_main", "cred_other", "cred_nested", "cred_crlf", "cred_short", "cred_dots", "cred_narrow"},
		"caBundle":     w.authority.pem,
		"timeouts":     m{"connect": "1m", "headers": "2m", "idle": "2m"}, // a test of a time-out sets its own
	}
	for k, v := range further {
		if v == nil {
			delete(spec, k)
			continue
		}
		spec[k] = v
	}
	return object("ProxyEndpoint", name, spec)
}

// run starts a world.
func run(t testing.TB, s setup) *world {
	t.Helper()
	var cfg app.Config
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if cfg.Auth.DatabaseURL.IsZero() { // nothing else runs, so any goroutine left at the end is a leak
			goleak.VerifyNone(t, before)
		}
	})
	w := &world{t: t, authority: newAuthority(t), names: newNames(t), log: &logtest.Buffer{}, folder: t.TempDir()}
	if s.handler == nil {
		s.handler = http.HandlerFunc(echo)
	}
	second := !strings.Contains(t.Name(), overHTTP1)
	w.target = newTarget(t, w.authority, true, second, s.handler)
	w.plain = newTarget(t, w.authority, false, second, s.handler)
	w.names.set("api.lectern.test", "127.0.0.1")
	w.names.set("allowed.test", "127.0.0.1")
	if s.manifests == nil {
		s.manifests = standard
	}
	w.write("policy.yaml", s.manifests(w))
	w.write("credentials.yaml", credential("cred_main", project, "prod", canary, nil)+
		credential("cred_other", project, "prod", other, nil)+
		credential("cred_nested", project, "prod", nested, nil)+
		credential("cred_crlf", project, "prod", crlf, nil)+
		credential("cred_short", project, "prod", short, nil)+
		credential("cred_dots", project, "prod", dots, nil)+
		credential("cred_unlisted", project, "prod", unlist, nil)+
		credential("cred_narrow", project, "prod", narrow, m{"places": []string{"Header"}, "destinations": []m{{"pattern": `https://api\.lectern\.test:` + w.target.port + `/narrow/.*`}}})+
		credential("cred_foreign", "pr_other", "prod", foreign, nil)+
		credential("cred_staging", project, "staging", staging, nil))
	environ := map[string]string{
		"LISTEN_PUBLIC": "127.0.0.1:0", "LISTEN_INTERNAL": "127.0.0.1:0", "DRAIN_DELAY": "0s", "LOG_LEVEL": "debug", "PPROF": "true",
		"PROXY_MANIFESTS": w.folder,
	}
	if s.open {
		environ["PROXY_ALLOWED_RANGES"] = "127.0.0.0/8"
	}
	for k, v := range s.environ {
		environ[k] = v
	}
	if err := config.Load(&cfg, environ); err != nil {
		t.Fatal(err)
	}
	cfg.Resolver, cfg.LogOutput = w.names.resolver(), w.log
	if s.configure != nil {
		s.configure(&cfg)
	}
	type addresses struct{ public, internal net.Addr }
	ready := make(chan addresses, 1)
	cfg.HTTP.Ready = func(public, internal net.Addr) { ready <- addresses{public, internal} }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx, cfg); close(ended) }()
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	w.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	w.stop = sync.OnceValue(func() error {
		transport.CloseIdleConnections()
		cancel()
		err, running := <-ended
		if !running {
			return nil // the proxy did not start, and the test has failed
		}
		return err
	})
	t.Cleanup(func() {
		if err := w.stop(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the proxy ended with %v", err)
		}
	})
	select {
	case a := <-ready:
		w.base, w.internal = "http://"+a.public.String(), "http://"+a.internal.String()
	case err := <-ended:
		t.Fatalf("the proxy did not start: %v", err)
	}
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	temporary := filepath.Join(w.folder, "."+name)
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(w.folder, name)); err != nil {
		w.t.Fatal(err)
	}
}

// url returns a URL on the target's host.
func (w *world) url(path string) string { return "https://api.lectern.test:" + w.target.port + path }

// call is a request to the proxy.
type call struct {
	method  string // "" is GET
	target  string // the parameter url, unescaped; only used if query is empty
	query   string
	path    string // "" is /proxy
	headers []string
	without []string // default headers to omit
	body    string
	chunked bool
}

func (w *world) request(c call) *http.Request {
	w.t.Helper()
	if c.method == "" {
		c.method = http.MethodGet
	}
	if c.path == "" {
		c.path = "/proxy"
	}
	if c.query == "" {
		c.query = "url=" + url.QueryEscape(c.target)
	}
	var body io.Reader
	if c.body != "" {
		body = strings.NewReader(c.body)
		if c.chunked {
			body = struct{ io.Reader }{body}
		}
	}
	r, err := http.NewRequest(c.method, w.base+c.path+"?"+c.query, body)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("X-Project-ID", project)
	r.Header.Set("X-Environment", "prod")
	r.Header.Set("Origin", origin)
	for _, name := range c.without {
		r.Header.Del(name)
	}
	for i := 0; i < len(c.headers); i += 2 {
		r.Header.Add(c.headers[i], c.headers[i+1])
	}
	return r
}

// from sends a call from another origin.
func (c call) from(origin string) call {
	c.without = append(slices.Clone(c.without), "Origin")
	c.headers = append(slices.Clone(c.headers), "Origin", origin)
	return c
}

// answer is an answer with its whole body.
type answer struct {
	*http.Response
	body string
}

func (w *world) do(c call) answer {
	w.t.Helper()
	resp, err := w.client.Do(w.request(c))
	if err != nil {
		w.t.Fatal(err)
	}
	return read(w.t, resp)
}

func read(t testing.TB, resp *http.Response) answer {
	t.Helper()
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp, string(b)}
}

// code returns the error code of a refusal, "" for the target's answer.
func (a answer) code() string {
	if a.Header.Get("X-Proxy-Worker-Success") != "false" {
		return ""
	}
	var body struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || body.Error.Message == "" {
		return "not an error: " + a.body
	}
	return body.Error.Code
}

// seen is the request that the echoing target got.
type seen struct {
	Method, URI, Host, Body string
	Proto                   string
	Header, Trailer         http.Header
	Length                  int64
	Encoding                []string
}

// echo answers with the request that it got, encoded so that the proxy recognises no secret in it.
func echo(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	text, _ := json.Marshal(seen{r.Method, r.RequestURI, r.Host, string(b), r.Proto, r.Header, r.Trailer, r.ContentLength, r.TransferEncoding})
	for i := range text {
		text[i] ^= 0x15
	}
	w.Header().Set("Content-Type", "application/x-bent")
	_, _ = w.Write(text)
}

// seen decodes the answer of echo.
func (a answer) seen(t testing.TB) seen {
	t.Helper()
	if a.StatusCode != http.StatusOK || a.Header.Get("X-Proxy-Worker-Success") != "true" {
		t.Fatalf("not the target's answer: %d %s", a.StatusCode, a.body)
	}
	text := []byte(a.body)
	for i := range text {
		text[i] ^= 0x15
	}
	var s seen
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return s
}

// dialled counts the lookups and connections to all targets.
func (w *world) dialled() int64 {
	return w.names.asked.Load() + w.target.accepted.Load() + w.plain.accepted.Load()
}

// audits returns the audit records.
func (w *world) audits() []map[string]any {
	w.t.Helper()
	var found []map[string]any
	for line := range strings.Lines(w.log.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			w.t.Fatalf("not JSON: %s", line)
		}
		if entry["msg"] == "audit" {
			found = append(found, entry)
		}
	}
	return found
}
