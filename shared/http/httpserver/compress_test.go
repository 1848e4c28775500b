package httpserver_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// list returns a JSON body of at least n bytes.
func list(n int) []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `{"entry_id":"en_%d"},`, i)
	}
	b.WriteString("0]")
	return b.Bytes()
}

func decoded(t *testing.T, coding string, body io.Reader) ([]byte, error) {
	t.Helper()
	switch coding {
	case "gzip":
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(z)
	case "zstd":
		z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return io.ReadAll(z)
	}
	return io.ReadAll(body)
}

func bodies(rt *httpapi.Router) {
	rt.Get("/large", func(w http.ResponseWriter, r *http.Request) error {
		return httpapi.WriteBody(w, r, "application/json", list(50_000), "")
	})
	rt.Get("/small", func(w http.ResponseWriter, r *http.Request) error {
		return httpapi.WriteBody(w, r, "application/json", list(500), "")
	})
	rt.Get("/image", func(w http.ResponseWriter, r *http.Request) error {
		return httpapi.WriteBody(w, r, "image/png", list(50_000), "")
	})
	rt.Get("/untyped", func(w http.ResponseWriter, _ *http.Request) error {
		w.Header()["Content-Type"] = nil
		_, err := w.Write(list(50_000))
		return err
	})
	rt.Get("/stream", func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Type", "application/x-ndjson")
		if r.Method == http.MethodHead {
			return nil
		}
		for range 20 {
			if _, err := w.Write(list(3000)); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestCompression(t *testing.T) {
	t.Parallel()
	s := serve(t, setup{routes: bodies})
	stream := bytes.Repeat(list(3000), 20)
	for _, tc := range []struct {
		name, path, accept, coding string
		want                       []byte
	}{
		{"not asked for", "/large", "", "", list(50_000)},
		{"gzip", "/large", "gzip", "gzip", list(50_000)},
		{"zstd", "/large", "zstd", "zstd", list(50_000)},
		{"both", "/large", "gzip, deflate, br, zstd", "zstd", list(50_000)},
		{"gzip preferred", "/large", "zstd;q=0.5, gzip", "gzip", list(50_000)},
		{"gzip refused", "/large", "gzip;q=0", "", list(50_000)},
		{"another", "/large", "br", "", list(50_000)},
		{"small", "/small", "gzip", "", list(500)},
		{"does not shrink", "/image", "gzip", "", list(50_000)},
		{"without a type", "/untyped", "gzip", "gzip", list(50_000)},
		{"stream, gzip", "/stream", "gzip", "gzip", stream},
		{"stream, zstd", "/stream", "zstd", "zstd", stream},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resp, body := s.get(t, s.public+tc.path, "Accept-Encoding", tc.accept)
			if got := resp.Header.Get("Content-Encoding"); got != tc.coding {
				t.Fatalf("Content-Encoding: %q, want %q", got, tc.coding)
			}
			got, err := decoded(t, tc.coding, strings.NewReader(body))
			if err != nil || !bytes.Equal(got, tc.want) {
				t.Errorf("the body is not what was written: %d bytes, %v", len(got), err)
			}
			if tc.coding != "" && len(body) > len(tc.want)/3 {
				t.Errorf("%d bytes became %d", len(tc.want), len(body))
			}
			if got := resp.Header["Vary"]; len(got) != 1 {
				t.Errorf("Vary: %q, want it once", got)
			}
			if tc.path == "/untyped" && resp.Header["Content-Type"] != nil {
				t.Errorf("Content-Type was made up: %s", resp.Header.Get("Content-Type"))
			}
			if tag := resp.Header.Get("Etag"); tag != "" {
				again, _ := s.get(t, s.public+tc.path, "Accept-Encoding", tc.accept, "If-None-Match", tag)
				if again.StatusCode != http.StatusNotModified || again.Header.Get("Etag") != tag {
					t.Errorf("with %s: %d, want 304 under the same tag", tag, again.StatusCode)
				}
			}
		})
	}
}

// TestHeadAnswersAsGet checks that HEAD has the same headers as GET, for every Accept-Encoding.
func TestHeadAnswersAsGet(t *testing.T) {
	t.Parallel()
	s := serve(t, setup{routes: bodies})
	random := rand.New(rand.NewPCG(1, 2))
	accepts := []string{"", "gzip", "zstd", "gzip, zstd", "identity", "*", " GZIP ; q=0.7,zstd;q=0.7", "gzip;q=0", "gzip;q=2", ",,", "gzip;x=1;q=0.1, zstd;Q=0.05"}
	for range 100 {
		var parts []string
		for range random.IntN(4) {
			part := []string{"gzip", "zstd", "br", "Zstd", "GZIP", "deflate"}[random.IntN(6)]
			if random.IntN(2) == 0 {
				part += ";q=" + strconv.FormatFloat(float64(random.IntN(11))/10, 'f', -1, 64)
			}
			parts = append(parts, part)
		}
		accepts = append(accepts, strings.Join(parts, ", "))
	}
	for _, accept := range accepts {
		for _, path := range []string{"/large", "/small", "/image", "/stream", "/nowhere"} {
			get, _ := s.get(t, s.public+path, "Accept-Encoding", accept)
			head, body := s.do(t, http.MethodHead, s.public+path, "Accept-Encoding", accept)
			if body != "" {
				t.Errorf("HEAD %s has a body", path)
			}
			for _, h := range []http.Header{get.Header, head.Header} {
				h.Del("Date")
				h.Del("X-Request-Id")
				if h.Get("Content-Encoding") != "" {
					h.Del("Content-Length") // GET knows it if the compressed body fits in one buffer, HEAD never does
				}
			}
			if diff := cmp.Diff(get.Header, head.Header); diff != "" || get.StatusCode != head.StatusCode {
				t.Fatalf("%s with Accept-Encoding %q: %d and %d (-get +head):\n%s", path, accept, get.StatusCode, head.StatusCode, diff)
			}
		}
	}
}

// TestBrokenOffAnswersLookBroken checks that clients can detect a truncated answer in every version of HTTP and every
// coding. A client that reads only the compressed stream can detect it too.
func TestBrokenOffAnswersLookBroken(t *testing.T) {
	t.Parallel()
	broken := func(fault any) httpapi.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Type", "application/json")
			for i := range 40 {
				if _, err := w.Write(list(5000)); err != nil {
					return err
				}
				if i%10 == 9 {
					_ = http.NewResponseController(w).Flush()
				}
			}
			panic(fault)
		}
	}
	s := serve(t, setup{routes: func(rt *httpapi.Router) {
		rt.Get("/aborts", broken(http.ErrAbortHandler))
		rt.Get("/panics", broken("in the middle"))
	}})
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	h2 := &http.Transport{Protocols: protocols, DisableCompression: true}
	defer h2.CloseIdleConnections()

	for _, path := range []string{"/aborts", "/panics"} {
		for _, accept := range []string{"", "gzip", "zstd"} {
			for _, version := range []string{"HTTP/1.0", "HTTP/1.1", "HTTP/2"} {
				t.Run(path+" "+accept+" "+version, func(t *testing.T) {
					if version == "HTTP/1.0" {
						// In HTTP/1.0 the end of the connection is the end of the body, so only a reset shows the
						// fault.
						got, err := raw(t, s.public, "GET "+path+" HTTP/1.0\r\nAccept-Encoding: "+accept+"\r\n\r\n")
						if !errors.Is(err, syscall.ECONNRESET) {
							t.Errorf("%d bytes ended with %v, want a reset", len(got), err)
						}
						return
					}
					client := s.client
					if version == "HTTP/2" {
						client = &http.Client{Transport: h2, Timeout: waitTimeout}
					}
					req, err := http.NewRequest(http.MethodGet, s.public+path, nil)
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Accept-Encoding", accept)
					resp, err := client.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = resp.Body.Close() }()
					if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != accept {
						t.Fatalf("%d, Content-Encoding %q", resp.StatusCode, resp.Header.Get("Content-Encoding"))
					}
					body, err := io.ReadAll(resp.Body)
					if err == nil {
						t.Error("the transfer looks complete")
					}
					if accept != "" {
						if _, err := decoded(t, accept, bytes.NewReader(body)); err == nil {
							t.Error("the compressed stream looks complete")
						}
					}
				})
			}
		}
	}
	eventually.True(t, "18 lines", func() bool { return len(s.lines(t, "request")) == 18 })
	for _, line := range s.lines(t, "request") {
		if line["aborted"] != true {
			t.Errorf("the access line does not say that the answer broke off: %v", line)
		}
	}
}
