package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/ingest"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sqlError is an error of a database that refuses a statement.
type sqlError string

func (e sqlError) Error() string    { return "refused" }
func (e sqlError) SQLState() string { return string(e) }

func notesBody(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, noteLine("pr_1", fmt.Sprint("n", i), ""))
	}
	return b.String()
}

func TestABatchIsRepeatedWhileTheDatabaseIsAway(t *testing.T) {
	s := fakeStore{before: func(call int, _ string, _ []note) error {
		if call == 2 || call == 3 {
			return fmt.Errorf("store: %w", apierr.NotAvailable(errors.New("40001")))
		}
		return nil
	}}
	got := mustPost(t, &s, ingest.Options{RetryTime: time.Minute}, notesBody(3000))
	if got.Stored != 3000 || s.calls != 5 {
		t.Errorf("stored %d in %d calls, want 3000 in 5", got.Stored, s.calls)
	}
}

func TestNothingIsAcknowledgedWhenABatchCanNotBeStored(t *testing.T) {
	tests := []struct {
		name string
		in   error
		want int
	}{
		{"away for good", apierr.NotAvailable(errors.New("08006")), 503},
		{"a fault of ours", errors.New("no such column"), 500},
		{"a right is missing", sqlError("42501"), 500},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := fakeStore{before: func(call int, _ string, _ []note) error {
				if call > 1 {
					return tt.in
				}
				return nil
			}}
			code, _, body := post(t, &s, ingest.Options{RetryTime: time.Millisecond}, notesBody(3000))
			if code != tt.want || strings.Contains(body, "stored") || strings.Contains(body, "column") {
				t.Errorf("answer %d %s, want %d without the stored records or the cause", code, body, tt.want)
			}
		})
	}
}

func TestARecordThatTheDatabaseRefusesIsFound(t *testing.T) {
	bad := map[string]bool{"n0": true, "n7": true, "n8": true, "n1099": true}
	s := fakeStore{before: func(_ int, _ string, records []note) error {
		for _, n := range records {
			if bad[n.ID] {
				return fmt.Errorf("store: %w", sqlError("22021"))
			}
		}
		return nil
	}}
	got := mustPost(t, &s, ingest.Options{}, notesBody(1100))
	if got.Stored != 1096 || got.Rejected != 4 {
		t.Fatalf("stored %d, rejected %d; want 1096, 4", got.Stored, got.Rejected)
	}
	for i, line := range []int64{1, 8, 9, 1100} {
		if r := got.Rejects[i]; r.Line != line || r.Code != ingest.InvalidField || !strings.Contains(r.Message, "22021") {
			t.Errorf("reject %d is %+v, want line %d", i, r, line)
		}
	}
}

// server serves a handler of notes as a service does. ended receives each request's panic value, or nil.
func server(t *testing.T, s *fakeStore, o ingest.Options, readTimeout time.Duration) (url string, ended chan any) {
	t.Helper()
	ended = make(chan any, 10)
	handler := ingest.Handler(kind(s), o)
	return serve(t, readTimeout, func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			ended <- v
			if v != nil {
				panic(v)
			}
		}()
		handler.ServeHTTP(w, r)
	}), ended
}

// serve serves /notes on the internal address of a service's server, and returns the URL of that address.
func serve(t *testing.T, readTimeout time.Duration, handler http.HandlerFunc) string {
	t.Helper()
	internal := httpapi.NewRouter()
	internal.Any("/notes", handler)
	return servertest.Start(t, servertest.Options{
		Options: httpserver.Options{Internal: internal}, Environ: map[string]string{"READ_TIMEOUT": readTimeout.String()},
	}).Internal
}

// dial sends the head of a POST with a Content-Length of length, and then body.
func dial(t *testing.T, url string, length int, body string) *faulttest.Raw {
	t.Helper()
	conn := faulttest.Dial(t, url)
	conn.Say(fmt.Sprintf("POST /notes HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", length, body))
	return conn
}

func TestABodyThatBreaksOff(t *testing.T) {
	var s fakeStore
	url, ended := server(t, &s, ingest.Options{}, time.Minute)
	conn := dial(t, url, 1<<20, notesBody(1001))
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, _ := io.ReadAll(conn); len(answer) > 0 {
		t.Errorf("half a body was answered %q", answer)
	}
	if v := <-ended; v != http.ErrAbortHandler {
		t.Errorf("the request ended with %v, want ErrAbortHandler", v)
	}
}

func TestASlowSenderThatGoesOnIsServed(t *testing.T) {
	t.Parallel()
	var s fakeStore
	const silence = 3 * time.Second // long enough that a busy machine sends the next part in time
	url, _ := server(t, &s, ingest.Options{}, silence)
	body := notesBody(8)
	conn := dial(t, url, len(body), "")
	begin := time.Now()
	tick := time.NewTicker(silence / 6)
	defer tick.Stop()
	step := len(body)/8 + 1
	for rest := body; rest != ""; {
		n := min(step, len(rest))
		if _, err := io.WriteString(conn, rest[:n]); err != nil {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
		rest = rest[n:]
		<-tick.C // sends the body slowly
	}
	if took := time.Since(begin); took < silence {
		t.Fatalf("sent in %v, which is too fast for this test", took)
	}
	if status, _, answer, err := conn.Answer(http.MethodPost); status != 200 || !strings.Contains(answer, `"stored":8`) {
		t.Errorf("%d %s, %v", status, answer, err)
	}
}

func TestAFailedStoreDoesNotWaitForTheSender(t *testing.T) {
	s := fakeStore{before: func(int, string, []note) error { return errors.New("broken") }}
	url, _ := server(t, &s, ingest.Options{}, time.Minute)
	conn := dial(t, url, 1<<20, notesBody(1001)) // sends nothing after this part of the body
	if status, _, _, err := conn.Answer(http.MethodPost); status != 500 {
		t.Errorf("while the sender is silent: status %d, %v; want 500", status, err)
	}
}

// endless repeats the same lines.
type endless struct {
	line  string
	rest  string
	lines int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		if e.lines == 0 {
			return 0, io.EOF
		}
		e.lines--
		e.rest = e.line
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestMemoryIsFlatInTheNumberOfLines(t *testing.T) {
	// The store is slower than the reader, so unbounded memory would grow.
	var peak atomic.Uint64
	k := kind(&fakeStore{})
	calls := 0
	k.Store = func(_ context.Context, _ string, records []note) (ingest.Result, error) {
		if calls++; calls%20 == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapAlloc))
		}
		return ingest.Result{Stored: len(records)}, nil
	}
	const lines = 100_000
	line := noteLine("pr_1", "n", `,"title":"`+strings.Repeat("t", 900)+`"`) + "\n"
	r := httptest.NewRequest(http.MethodPost, "/", &endless{line: line, lines: lines})
	w := httptest.NewRecorder()
	ingest.Handler(k, ingest.Options{}).ServeHTTP(w, r)
	if !strings.Contains(w.Body.String(), fmt.Sprintf(`"stored":%d`, lines)) {
		t.Fatalf("answer %s", w.Body)
	}
	const bound = 24 << 20
	if peak.Load() == 0 || peak.Load() > bound {
		t.Errorf("%d MiB live at the peak of %d MB, want at most %d MiB", peak.Load()>>20, lines*len(line)/1e6, bound>>20)
	}
}

// TestTheRequestAfterAFailedStoreIsServed checks that a failed store ends only the reading of its own body, and not
// that of later requests.
func TestTheRequestAfterAFailedStoreIsServed(t *testing.T) {
	s := fakeStore{before: func(call int, _ string, _ []note) error {
		if call%2 == 1 {
			return apierr.NotAvailable(errors.New("08006"))
		}
		return nil
	}}
	handler := ingest.Handler(kind(&s), ingest.Options{RetryTime: time.Nanosecond})
	url := serve(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Err() != nil {
			t.Error("a request began cancelled")
		}
		handler.ServeHTTP(w, r)
		if w.Header().Get("Connection") == "" && s.calls%2 == 1 {
			<-r.Context().Done() // wait until the server has seen the deadline
		}
	})
	defer http.DefaultClient.CloseIdleConnections()
	for i := range 10 {
		resp, err := http.Post(url+"/notes", "application/x-ndjson", strings.NewReader(notesBody(1)))
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if want := []int{503, 200}[i%2]; resp.StatusCode != want {
			t.Fatalf("request %d: %d, want %d", i, resp.StatusCode, want)
		}
	}
}
