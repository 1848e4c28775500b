package httpserver_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
)

// TestTooManyAtOnce checks that requests over the limit are refused at once, with an error of the API. Once another
// request ends, the next one is served. The internal address has no limit.
func TestTooManyAtOnce(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, setup{
		environ: map[string]string{"MAX_IN_FLIGHT": "2", "CORS_ALLOWED_ORIGINS": "https://app.example"},
		routes: func(public *httpapi.Router) {
			public.Get("/projects/{projectId}/slow", func(w http.ResponseWriter, r *http.Request) error {
				entered <- struct{}{}
				<-leave
				return nil
			})
			public.Get("/quick", func(http.ResponseWriter, *http.Request) error { return nil })
		},
	})
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			if resp, _ := s.get(t, s.public+"/projects/pr_1/slow"); resp.StatusCode != http.StatusOK {
				t.Errorf("a request within the limit: %d", resp.StatusCode)
			}
		})
		<-entered
	}
	begin := time.Now()
	for range 100 {
		resp, body := s.get(t, s.public+"/projects/pr_1/slow", "Origin", "https://app.example")
		want := `{"error":{"code":"unavailable","message":"The service cannot answer right now. Try again shortly."},"projectId":"pr_1"}` + "\n"
		if resp.StatusCode != http.StatusServiceUnavailable || body != want || resp.Header.Get("Retry-After") != "1" ||
			resp.Header.Get("Access-Control-Allow-Origin") == "" || resp.Header.Get("X-Request-Id") == "" {
			t.Fatalf("over the limit: %d %v %s", resp.StatusCode, resp.Header, body)
		}
	}
	took := time.Since(begin)
	if took > time.Minute {
		t.Errorf("100 refusals took %v", took)
	}
	if resp, _ := s.get(t, s.internal+"/healthz"); resp.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %d", resp.StatusCode)
	}
	close(leave)
	running.Wait()
	if resp, _ := s.get(t, s.public+"/quick"); resp.StatusCode != http.StatusOK {
		t.Errorf("with room again: %d", resp.StatusCode)
	}
	if err := s.stop(); err != nil { // flushes the log
		t.Error(err)
	}
	served := s.lines(t, "request")
	if n := len(slices.DeleteFunc(served, func(line map[string]any) bool {
		return line["status"] != 503.0 || line["level"] != "INFO"
	})); n > 0 {
		t.Errorf("%d access lines of refusals have the level INFO, not DEBUG", n)
	}
	if n := strings.Count(s.log.String(), "too many at once"); n == 0 || n > 5+int(took/time.Second) {
		t.Errorf("%d lines about 100 refusals", n)
	}
	if strings.Contains(s.log.String(), `"msg":"request failed"`) {
		t.Error("each refusal is logged as a failure")
	}
}

// TestBodyThatDoesNotCome checks that a handler waits READ_TIMEOUT for a body that it reads. No answer waits for a body that its
// handler does not read. The connection ends with such an answer, and the request gives back its place.
func TestBodyThatDoesNotCome(t *testing.T) {
	t.Parallel()
	routes := func(public *httpapi.Router) {
		public.Get("/quick", func(http.ResponseWriter, *http.Request) error { return nil })
		public.Get("/long", func(w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write(make([]byte, 100_000)) // large enough that the headers are sent before the handler returns
			return err
		})
		public.Get("/closes", func(_ http.ResponseWriter, r *http.Request) error {
			go func() { _, _ = io.Copy(io.Discard, r.Body) }() // as http.Transport does
			return r.Body.Close()
		})
		public.Get("/reads", func(_ http.ResponseWriter, r *http.Request) error {
			if _, err := io.ReadAll(r.Body); !errors.Is(err, os.ErrDeadlineExceeded) {
				return fmt.Errorf("read %w", err)
			}
			return nil
		})
	}
	patient := serve(t, setup{environ: map[string]string{"READ_TIMEOUT": "1h", "MAX_IN_FLIGHT": "1"}, routes: routes})
	impatient := serve(t, setup{environ: map[string]string{"READ_TIMEOUT": "1s"}, routes: routes})
	for _, tt := range []struct {
		on     *running
		path   string
		status int
	}{
		{patient, "/quick", 200}, {patient, "/long", 200}, {patient, "/closes", 200}, {patient, "/unknown", 404}, {impatient, "/reads", 200},
	} {
		conn := faulttest.Dial(t, tt.on.public)
		defer conn.Close()
		fmt.Fprint(conn, "GET "+tt.path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 262144\r\n\r\nx")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", tt.path, err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != tt.status || !resp.Close {
			t.Errorf("%s: answered %d, Connection: close is %v, %v", tt.path, resp.StatusCode, resp.Close, err)
		}
	}
}

// TestDeadlineOfTheHandler checks that a handler can stop reading a body by a deadline of its own. READ_TIMEOUT does
// not delay it, and the client gets its answer.
func TestDeadlineOfTheHandler(t *testing.T) {
	s := serve(t, setup{
		environ: map[string]string{"READ_TIMEOUT": "1h"},
		routes: func(public *httpapi.Router) {
			public.Get("/stops", func(w http.ResponseWriter, r *http.Request) error {
				read := make(chan error, 1)
				go func() {
					for {
						if _, err := r.Body.Read(make([]byte, 10)); err != nil {
							read <- err
							return
						}
					}
				}()
				if err := http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)); err != nil {
					return err
				}
				if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
					return err
				}
				if _, err := r.Body.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
					return fmt.Errorf("a read after the deadline: %w", err)
				}
				return nil
			})
		},
	})
	for range 20 { // the read may end before or after the deadline
		answer, err := raw(t, s.public, "GET /stops HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx")
		if err != nil || !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
			t.Fatalf("answered %q, %v", answer, err)
		}
	}
}

// TestClientThatDisconnects checks that the disconnection of a client during an answer is not logged as a failure.
func TestClientThatDisconnects(t *testing.T) {
	s := serve(t, setup{routes: func(public *httpapi.Router) {
		public.Get("/endless", func(w http.ResponseWriter, r *http.Request) error {
			return httpapi.WritePieces(w, r, []byte("v"), func(yield func([]byte, error) bool) {
				for yield(make([]byte, 64<<10), nil) {
				}
			})
		})
	}})
	conn := faulttest.Dial(t, s.public)
	if _, err := io.WriteString(conn, "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if line := s.lines(t, "request")[0]; line["code"] != "canceled" || line["aborted"] != true {
		t.Errorf("the access line is %v", line)
	}
	if strings.Contains(s.log.String(), `"msg":"request failed"`) {
		t.Error("it is logged as a failure")
	}
}

// TestChunkedRequestIsTheLast checks for each listener that the connection ends after a chunked request. A proxy in front
// may treat the bytes after it as part of its body.
func TestChunkedRequestIsTheLast(t *testing.T) {
	quick := func(router *httpapi.Router) *httpapi.Router {
		router.Get("/quick", func(http.ResponseWriter, *http.Request) error { return nil })
		return router
	}
	s := serve(t, setup{routes: func(public *httpapi.Router) { quick(public) }, internal: quick(httpapi.NewRouter())})
	plain := serve(t, setup{plain: http.Header{}, routes: func(public *httpapi.Router) { quick(public) }})
	for name, url := range map[string]string{"public": s.public, "internal": s.internal, "plain": plain.public} {
		all, err := raw(t, url, "GET /quick HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
		if err != nil || strings.Count(all, "HTTP/1.1 ") != 1 || !strings.HasPrefix(all, "HTTP/1.1 200 ") {
			t.Errorf("%s: answered %q, %v", name, all, err)
		}
	}
}
