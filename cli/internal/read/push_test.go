package read_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/copies/push"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// hook is a receiver of webhooks. It stores the changes whose number is greater than the last one that it stored.
type hook struct {
	*httptest.Server
	t       *testing.T
	address string   // host and port
	secrets []string // each verifies each request
	// fault, if set, may answer a request, and store its changes before. It reports whether it answered.
	fault func(request int, w http.ResponseWriter, r *http.Request, store func()) bool

	mu       sync.Mutex
	requests int
	sizes    []int // changes of each request
	ids      []string
	lines    []string
	last     int64
}

func newHook(t *testing.T, secrets ...string) *hook {
	t.Helper()
	h := &hook{t: t, secrets: secrets, address: needs.Address(t)}
	h.listen()
	t.Cleanup(func() { h.Server.Close() })
	return h
}

// listen starts the receiver, at the same address each time.
func (h *hook) listen() {
	h.t.Helper()
	listener, err := net.Listen("tcp", h.address)
	if err != nil {
		h.t.Fatal(err)
	}
	h.Server = httptest.NewUnstartedServer(h)
	_ = h.Listener.Close()
	h.Listener = listener
	h.Start()
}

// with looks at the receiver, or changes it, while it stores nothing.
func (h *hook) with(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

// ServeHTTP verifies a request, and stores its changes unless there is a fault.
func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed
	}
	for _, secret := range h.secrets {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err == nil {
			err = verifier.Verify(body, r.Header)
		}
		if err != nil {
			h.t.Errorf("%v: %v", r.Header, err)
		}
	}
	var m struct {
		Type string
		Data struct {
			ProjectID string `json:"project_id"`
			FirstSeq  int64  `json:"first_seq"`
			LastSeq   int64  `json:"last_seq"`
			Changes   []json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &m); err != nil || m.Type != "lectern.changes" || m.Data.ProjectID != "pr_1" {
		h.t.Errorf("%v: %s", err, body)
	}
	var fault func(int, http.ResponseWriter, *http.Request, func()) bool
	var request int
	h.with(func() {
		h.requests++
		h.sizes, h.ids = append(h.sizes, len(m.Data.Changes)), append(h.ids, r.Header.Get("webhook-id"))
		request, fault = h.requests, h.fault
	})
	store := func() {
		h.with(func() {
			before := int64(0)
			for i, change := range m.Data.Changes {
				seq := clitest.Decode[struct{ Seq int64 }](h.t, string(change)).Seq
				if seq <= before || i == 0 && seq != m.Data.FirstSeq || i == len(m.Data.Changes)-1 && seq != m.Data.LastSeq {
					h.t.Errorf("change %d after %d in %d to %d", seq, before, m.Data.FirstSeq, m.Data.LastSeq)
				}
				if before = seq; seq > h.last {
					h.lines, h.last = append(h.lines, canonical(h.t, change)), seq
				}
			}
		})
	}
	if fault == nil || !fault(request, w, r, store) {
		store()
		w.WriteHeader(http.StatusNoContent)
	}
}

// stored returns the changes that the receiver stored, as lines.
func (h *hook) stored() (lines []string) {
	h.with(func() { lines = slices.Clone(h.lines) })
	return lines
}

// canonical returns JSON with its keys in order and one spelling of texts.
func canonical(t *testing.T, text []byte) string {
	t.Helper()
	out, err := json.Marshal(clitest.Decode[any](t, string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// feedOf returns the changes of the feed as lines.
func feedOf(t *testing.T, environ map[string]string, flags ...string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(clitest.Must(t, environ, "", append([]string{"changes"}, flags...)...)) {
		lines = append(lines, canonical(t, []byte(line)))
	}
	return lines
}

// answers lets a receiver answer its next requests with faults, in their order. It then stores again.
func (h *hook) answers(faults ...http.HandlerFunc) {
	h.with(func() {
		h.fault = func(_ int, w http.ResponseWriter, r *http.Request, _ func()) bool {
			var next http.HandlerFunc
			h.with(func() {
				if len(faults) > 0 {
					next, faults = faults[0], faults[1:]
				}
			})
			if next != nil {
				next(w, r)
			}
			return next != nil
		}
	})
}

func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

var (
	earlierSecret = push.Secret(bytes.Repeat([]byte{7}, 24))
	hookSecret    = push.Secret(bytes.Repeat([]byte{8}, 32))
)

// fillPush stores n entries, each with an event.
func fillPush(t *testing.T, s *servicetest.Service, first, n int) {
	t.Helper()
	var batch, events []any
	for i := first; i < first+n; i++ {
		batch, events = append(batch, clitest.Entry(fmt.Sprint("e", i), i)), append(events, clitest.Event(fmt.Sprint("e", i), i))
	}
	s.MustIngest(t, "entries", batch...)
	s.MustIngest(t, "events", events...)
}

// TestPush checks what a receiver gets, in which order, from where on, and that no message shows a secret.
func TestPush(t *testing.T) {
	t.Parallel()
	s, environ := clitest.Entries(t)
	fillPush(t, s, 0, 3)
	h := newHook(t, earlierSecret, hookSecret)
	environ["LECTERN_SYNC_SECRET"] = earlierSecret + " " + hookSecret
	environ["LECTERN_SYNC_TO"] = strings.Replace(h.URL, "http://", "http://user:credential-1@", 1) + "/hook/credential-2?token=credential-3"
	state := filepath.Join(t.TempDir(), "state.json")
	push := func(flags ...string) clitest.Result {
		t.Helper()
		r := clitest.Run(t, "", environ, append([]string{"sync"}, flags...)...)
		for _, secret := range []string{earlierSecret[6:], hookSecret[6:], "credential"} {
			if strings.Contains(r.Out+r.Err, secret) {
				t.Errorf("a message shows %s: %s", secret, r.Err)
			}
		}
		return r
	}

	h.answers(status(http.StatusFound, "Location", s.URL), status(http.StatusServiceUnavailable, "Retry-After", "1"), func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	})
	r := push("--state", state, "--batch", "4")
	if r.Code != shell.ExitOK || !slices.Equal(h.sizes, []int{4, 4, 4, 4, 2}) || !slices.Equal(h.stored(), feedOf(t, environ)) {
		t.Errorf("%+v after requests of %v changes; stored %v", r, h.sizes, h.stored())
	}
	if h.ids[0] != h.ids[3] || h.ids[3] == h.ids[4] {
		t.Errorf("the ids of the messages are %q", h.ids)
	}
	for _, says := range []string{"redirect (302), which is not followed", "503 Service Unavailable; trying again in 1s", "EOF", "Copied 6 changes", "receiver " + h.URL + " is current"} {
		if !strings.Contains(r.Err, says) {
			t.Errorf("%s lacks %q", r.Err, says)
		}
	}

	erase := func(id string) {
		t.Helper()
		if a := s.DoInternal(t, servicetest.Request{Method: http.MethodDelete, Path: "/internal/projects/pr_1/entries/" + id, Key: servicetest.AdminKey}); a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	erase("e1")
	if r := push("--state", state); r.Code != shell.ExitOK || h.requests != 6 || !strings.Contains(h.stored()[6], "entry_removed") {
		t.Errorf("%+v, %d requests: %v", r, h.requests, h.stored())
	}

	// 410 stops until --resume.
	h.answers(status(http.StatusGone))
	fillPush(t, s, 3, 1)
	for range 2 {
		if r := push("--state", state); r.Code != shell.ExitFailure || !strings.Contains(r.Err, "wants no more changes (410)") || h.requests != 7 {
			t.Errorf("%+v, %d requests", r, h.requests)
		}
	}
	if r := push("--state", state, "--resume"); r.Code != shell.ExitOK || h.requests != 8 {
		t.Errorf("%+v, %d requests", r, h.requests)
	}

	feed := feedOf(t, environ)
	first := fmt.Sprint(int64(clitest.Decode[map[string]any](t, feed[0])["seq"].(float64)))
	environ["LECTERN_SYNC_STATE"] = clitest.Warehouse(t) // the table of each schema has a state
	for _, tt := range []struct {
		name  string
		flags []string
		want  []string
	}{
		{"everything", []string{"--schema", "a"}, feed},
		{"again", []string{"--schema", "a", "--from", "beginning"}, nil},
		{"after the first", []string{"--schema", "b", "--from", first}, feed[1:]},
		{"now", []string{"--schema", "c", "--from", "now"}, nil},
		{"removals", []string{"--schema", "d", "--types", "entry_removed"}, feedOf(t, environ, "--types", "entry_removed")},
	} {
		h.with(func() { h.lines, h.last = nil, 0 })
		if r := push(tt.flags...); r.Code != shell.ExitOK || !slices.Equal(h.stored(), tt.want) {
			t.Errorf("%s: %+v, %v", tt.name, r, h.stored())
		}
	}
	h.with(func() { h.lines, h.last = nil, 0 })
	fillPush(t, s, 4, 1)
	if r := push("--schema", "c", "--from", "now"); r.Code != shell.ExitOK || len(h.stored()) != 2 {
		t.Errorf("after now: %+v, %v", r, h.stored())
	}

	// A receiver that refuses the content of a request gets smaller ones. A change that it never takes is named, and left out once.
	h.with(func() {
		h.lines, h.last = nil, 0
		h.fault = func(_ int, w http.ResponseWriter, r *http.Request, _ func()) bool {
			if r.ContentLength > 1500 {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			}
			return r.ContentLength > 1500
		}
	})
	if r := push("--schema", "small"); r.Code != shell.ExitOK || !slices.Equal(h.stored(), feedOf(t, environ)) {
		t.Errorf("a receiver of small bodies: %+v, %v", r, h.stored())
	}
	h.with(func() { h.lines, h.last = nil, 0 })
	h.answers(status(http.StatusUnprocessableEntity), status(http.StatusRequestEntityTooLarge), status(http.StatusBadRequest))
	if r := push("--schema", "never", "--batch", "4"); r.Code != shell.ExitOK || !strings.Contains(r.Err, "answers 400 Bad Request to the change "+first+" (") || !strings.Contains(r.Err, "--skip "+first) {
		t.Errorf("a change that is not taken: %+v", r)
	}
	h.with(func() { h.lines, h.last = nil, 0 })
	if r := push("--schema", "skip", "--skip", first); r.Code != shell.ExitOK || !slices.Equal(h.stored(), feedOf(t, environ)[1:]) || !strings.Contains(r.Err, "Change "+first+" was skipped") {
		t.Errorf("a change that is skipped: %+v, %v", r, h.stored())
	}

	short := clitest.File(t, "secret", "whsec_c2hvcnQ=")
	requests := h.requests
	for _, tt := range []struct {
		name  string
		flags []string
		code  int
		says  string
	}{
		{"no state", []string{"--state", ""}, shell.ExitUsage, "--state is missing"},
		{"http elsewhere", []string{"--to", "http://credential.example.com/"}, shell.ExitUsage, "http for this machine or with --allow-http"},
		{"no host", []string{"--to", "https:///hook"}, shell.ExitUsage, "want https://HOST/PATH"},
		{"no port", []string{"--to", "https://example.com:99999/hook"}, shell.ExitUsage, "the port is 99999; allowed: 1 to 65535"},
		{"a short secret", []string{"--secret-file", short}, shell.ExitUsage, "the base64 of 24 to 64 bytes"},
		{"no secret", []string{"--secret-file", os.DevNull}, shell.ExitUsage, "there are 0 secrets"},
		{"no start", []string{"--from", "-1"}, shell.ExitUsage, "beginning, now, the number of a change"},
		{"a folder", []string{"--to", "file:///tmp/x", "--types", "entry"}, shell.ExitUsage, "allowed: https"},
		{"other types", []string{"--schema", "d", "--types", "entry"}, shell.ExitFailure, `the state is one with --types "entry_removed", not "entry"`},
		{"another start", []string{"--schema", "c", "--from", first}, shell.ExitFailure, `the state exists and started at "now"`},
		{"another project", []string{"--schema", "d", "--project", "pr_2"}, shell.ExitFailure, `the state is one of project "pr_1"`},
		{"another address", []string{"--schema", "a", "--url", strings.Replace(s.URL, "127.0.0.1", "localhost", 1)}, shell.ExitFailure, "give --moved"},
	} {
		if r := clitest.Run(t, "", environ, append([]string{"sync"}, tt.flags...)...); r.Code != tt.code || !strings.Contains(r.Err, tt.says) || strings.Contains(r.Err, "credential-") {
			t.Errorf("%s: %+v; want %d and %q", tt.name, r, tt.code, tt.says)
		}
	}
	if h.requests != requests {
		t.Error("a refused run sent something")
	}
}

// TestPushHeaders checks that each request has the headers that a file has at that time. No message shows a value.
func TestPushHeaders(t *testing.T) {
	t.Parallel()
	s, environ := clitest.Entries(t)
	fillPush(t, s, 0, 3)
	h := newHook(t, hookSecret)
	file := filepath.Join(t.TempDir(), "headers")
	write := func(lines string) {
		t.Helper()
		clitest.Write(t, file, lines)
	}
	environ["LECTERN_SYNC_SECRET"], environ["LECTERN_SYNC_TO"], environ["LECTERN_SYNC_HEADER_FILE"] = hookSecret, h.URL, file
	want := http.Header{"Authorization": {"Bearer credential-1"}, "X-Tenant": {"a", "b"}, "X-Last": {"ü: 1"}}
	write("# of the gateway\n\nAuthorization: Bearer credential-0\r\n")
	h.with(func() {
		h.fault = func(request int, w http.ResponseWriter, r *http.Request, _ func()) bool {
			if request == 1 {
				write("Authorization: Bearer credential-1\nx-tenant:a\nX-Tenant: b\t\nX-Last: ü: 1")
			}
			allowed := r.Header.Get("Content-Type") == "application/json" && r.Header.Get("User-Agent") == "lectern-sync"
			for name, values := range want {
				allowed = allowed && slices.Equal(r.Header[name], values)
			}
			if !allowed {
				w.WriteHeader(http.StatusUnauthorized)
			}
			return !allowed
		}
	})
	if r := clitest.Run(t, "", environ, "sync", "--state", filepath.Join(t.TempDir(), "state.json")); r.Code != shell.ExitOK || h.requests != 2 ||
		!slices.Equal(h.stored(), feedOf(t, environ)) || !strings.Contains(r.Err, "401 Unauthorized; trying again") || strings.Contains(r.Out+r.Err, "credential-") {
		t.Errorf("%+v after %d requests", r, h.requests)
	}

	for _, tt := range []struct{ name, lines, says string }{
		{"no colon", "X-A: credential-1\n\nBearer credential-2", "line 3 has no colon"},
		{"a space in the name", "credential 3: 1", "line 1 has a name that HTTP does not allow"},
		{"no name", ": credential-3", "line 1 has a name that HTTP does not allow"},
		{"a continued line", "X-A: credential-1\n credential-2: 1", "line 2 has a name that HTTP does not allow"},
		{"of push", "content-type: credential-4", "line 1 has a header that push sets itself"},
		{"a signature", "Webhook-Signature: credential-5", "line 1 has a header that push sets itself"},
		{"of the connection", "Transfer-Encoding: chunked", "line 1 has a header that push sets itself, or that belongs to the connection"},
		{"no value", "# a token\nAuthorization: ", "line 2 has no value"},
		{"a control character", "Authorization: credential\x00-6", "line 1 has a control character"},
		{"a return within a line", "Authorization: credential-7\rX-A: 1", "line 1 has a control character"},
	} {
		write(tt.lines)
		r := clitest.Run(t, "", environ, "sync", "--state", filepath.Join(t.TempDir(), "state.json"))
		if r.Code != shell.ExitUsage || !strings.Contains(r.Err, "the file of headers "+file+": "+tt.says) || strings.Contains(r.Err, "credential") {
			t.Errorf("%s: %+v, want %q", tt.name, r, tt.says)
		}
	}
	if r := clitest.Run(t, "", environ, "sync", "--state", "x.json", "--header-file", file+"s"); r.Code != shell.ExitUsage || !strings.Contains(r.Err, "the file of headers: open "+file+"s") {
		t.Errorf("no such file: %+v", r)
	}
	if h.requests != 2 {
		t.Error("a refused run sent something")
	}
}

// TestPushMetrics checks that a sync that follows verifies TLS, tries again for ever and shows for how long. After 410 it
// stays alive, shows that it has stopped, and sends nothing.
func TestPushMetrics(t *testing.T) {
	t.Parallel()
	s, environ := clitest.Entries(t)
	fillPush(t, s, 0, 1)
	h := newHook(t, hookSecret)
	untrusted := httptest.NewTLSServer(h)
	defer untrusted.Close()
	environ["LECTERN_SYNC_SECRET"] = hookSecret
	follow := func(to, state string) (value func(series string) float64, end func() string) {
		t.Helper()
		address := freeAddress(t)
		own := maps.Clone(environ)
		own["LECTERN_METRICS_ADDRESS"] = address
		sync := clitest.Begin(t, own, "sync", "--follow", "--to", to, "--state", state)
		value = func(series string) float64 {
			_, text := scrape(t, "http://"+address+"/metrics")
			v, _ := metricOf(t, text, series)
			return v
		}
		return value, func() string {
			r := sync.Stop(t)
			if r.Code != shell.ExitInterrupted {
				t.Errorf("%+v", r)
			}
			return r.Err
		}
	}
	state := filepath.Join(t.TempDir(), "state.json")
	value, end := follow(untrusted.URL, state)
	eventually.True(t, "it fails", func() bool {
		return value("lectern_sync_failing_seconds") > 0.2 && value(`lectern_sync_failures_total{side="destination"}`) > 1
	})
	if said := end(); !strings.Contains(said, "certificate") || h.requests > 0 {
		t.Errorf("%d requests; %s", h.requests, said)
	}

	value, end = follow(h.URL, state)
	eventually.True(t, "it sends", func() bool { return len(h.stored()) == 2 })
	eventually.True(t, "it does not fail", func() bool {
		return value("lectern_sync_changes_total") == 2 && value("lectern_sync_failing_seconds") == 0
	})
	h.answers(status(http.StatusGone))
	fillPush(t, s, 1, 1)
	eventually.True(t, "it has stopped", func() bool { return value("lectern_sync_stopped") == 1 })
	end()
	requests := h.requests
	value, end = follow(h.URL, state)
	eventually.True(t, "it stays stopped", func() bool { return value("lectern_sync_stopped") == 1 })
	if said := end(); h.requests != requests || !strings.Contains(said, "give --resume") {
		t.Errorf("%d requests, then %d; %s", requests, h.requests, said)
	}
}

// TestListen checks what the command prints and forwards, and that it sends a range again.
func TestListen(t *testing.T) {
	t.Parallel()
	s, environ := clitest.Entries(t)
	fillPush(t, s, 0, 2)
	secret := strings.TrimSpace(clitest.Must(t, environ, "", "listen", "--print-secret"))
	h := newHook(t, secret)
	feed := feedOf(t, environ)
	seq := func(i int) string {
		return fmt.Sprint(int64(clitest.Decode[map[string]any](t, feed[i])["seq"].(float64)))
	}

	r := clitest.Run(t, "", environ, "listen", "--forward-to", strings.TrimPrefix(h.URL, "http://"), "--replay", seq(1)+".."+seq(2), "--batch", "3")
	if want := seq(1) + "  entry          e1\n" + seq(2) + "  event          e0\n"; r.Code != shell.ExitOK || r.Out != want || !strings.Contains(r.Err, "Sent 2 changes to the receiver") {
		t.Errorf("%+v; want %q", r, want)
	}
	if !slices.Equal(h.stored(), feed[1:3]) {
		t.Errorf("%v, want %v", h.stored(), feed[1:3])
	}

	_, port, err := net.SplitHostPort(strings.TrimPrefix(h.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	process := clitest.Start(t, "listen", "--forward-to", port, "--url", s.URL, "--api-key", environ["LECTERN_API_KEY"])
	eventually.True(t, "it listens", func() bool { return metricOfService(t, s, "lectern_feed_waiting") == 1 })
	fillPush(t, s, 2, 1)
	eventually.True(t, "the new ones", func() bool { return slices.Equal(h.stored(), append(feed[1:3:3], feedOf(t, environ)[4:]...)) })
	process.End(t, os.Interrupt)

	for _, flags := range [][]string{{}, {"--forward-to", h.URL, "--replay", "2..1"}, {"--forward-to", h.URL, "--replay", "5"}, {"--forward-to", "ftp://127.0.0.1"}} {
		if r := clitest.Run(t, "", environ, append([]string{"listen"}, flags...)...); r.Code != shell.ExitUsage {
			t.Errorf("%v: %+v", flags, r)
		}
	}
}

func metricOfService(t *testing.T, s *servicetest.Service, name string) float64 {
	t.Helper()
	_, text := scrape(t, s.InternalURL+"/metrics")
	v, _ := metricOf(t, text, name)
	return v
}

// TestLongPushKilled checks that a receiver has exactly the tables in the end. The receiver fails, hangs, answers late,
// resets connections and is killed. The sender is killed 12 times. Records come, change and go meanwhile.
func TestLongPushKilled(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	s, environ := clitest.Entries(t)
	h := newHook(t, hookSecret)
	kinds := make([]int, 6)
	h.fault = func(request int, w http.ResponseWriter, r *http.Request, store func()) bool {
		h.with(func() { kinds[request%6]++ })
		switch request % 6 {
		case 0:
			w.WriteHeader(http.StatusInternalServerError)
		case 1: // hangs
			<-r.Context().Done()
		case 2: // answers too late
			store()
			<-r.Context().Done()
		case 3: // resets
			store()
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.(*net.TCPConn).SetLinger(0)
				_ = conn.Close()
			}
		default:
			return false
		}
		return true
	}
	secret := clitest.File(t, "secret", hookSecret)
	run := func() *clitest.Process {
		return clitest.Start(t, "sync", "--follow", "--quiet", "--to", h.URL, "--state", filepath.Join(filepath.Dir(secret), "state.json"), "--secret-file", secret,
			"--batch", "20", "--timeout", "500ms", "--url", s.URL, "--api-key", environ["LECTERN_API_KEY"])
	}
	requests := func() (n int) { h.with(func() { n = h.requests }); return n }
	process := run()
	for kill := range 12 {
		before := requests()
		fillPush(t, s, kill*7%400, 60) // some anew, some again
		s.MustIngest(t, "entries", clitest.Entry(fmt.Sprint("erased", kill), kill))
		s.MustIngest(t, "events", clitest.Event(fmt.Sprint("erased", kill), kill))
		path := fmt.Sprint("/internal/projects/pr_1/entries/erased", kill-3)
		s.DoInternal(t, servicetest.Request{Method: http.MethodDelete, Path: path, Key: servicetest.AdminKey})
		eventually.True(t, "requests", func() bool { return requests() > before+kill%4 })
		process.End(t, syscall.SIGKILL)
		if kill%4 != 3 {
			process = run()
			continue
		}
		h.CloseClientConnections()
		h.Server.Close()
		process = run()
		h.listen()
	}
	h.with(func() { h.fault = nil })
	want := copyOf(t, []byte(strings.Join(feedOf(t, environ), "\n")))
	eventually.True(t, "the receiver has all", func() bool { return reflect.DeepEqual(want, copyOf(t, []byte(strings.Join(h.stored(), "\n")))) })
	exported := map[string]string{}
	for line := range strings.Lines(clitest.Must(t, environ, "", "export", "entries")) {
		exported[clitest.Decode[map[string]any](t, line)["entry_id"].(string)] = canonical(t, []byte(line))
	}
	if !maps.Equal(exported, want.entries) || slices.Contains(kinds, 0) {
		t.Errorf("%d entries in the tables, %d at the receiver; faults %v", len(exported), len(want.entries), kinds)
	}
	t.Logf("%d requests, by fault %v; %d changes stored", h.requests, kinds, len(h.stored()))
}
