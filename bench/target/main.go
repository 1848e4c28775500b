// Command target is the third party for measurements of the credential proxy: a TLS server for HTTP/1.1 that does as
// little as possible.
//
//	GET /small        1 KiB of JSON
//	GET /bulk?bytes=N N bytes
//	POST /sink        reads the body, and answers with how many bytes it had
//	GET /events       server-sent events: one at once, and one a second
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "target:", err)
		os.Exit(1)
	}
}

func run() error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /small", small)
	mux.HandleFunc("GET /bulk", bulk)
	mux.HandleFunc("POST /sink", sink)
	mux.HandleFunc("GET /events", events)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	server := &http.Server{
		Addr: os.Getenv("LISTEN"), Handler: mux, Protocols: protocols,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute,
	}
	return server.ListenAndServeTLS(os.Getenv("CERTIFICATE"), os.Getenv("CERTIFICATE_KEY"))
}

const smallBytes = 1 << 10

var smallAnswer = []byte(`{"text":"` + strings.Repeat("x", smallBytes-len(`{"text":""}`)) + `"}`) // read-only

func small(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(smallBytes)}
	_, _ = w.Write(smallAnswer)
}

func bulk(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseInt(r.URL.Query().Get("bytes"), 10, 64)
	if err != nil {
		http.Error(w, "bytes is no number", http.StatusBadRequest)
		return
	}
	w.Header()["Content-Type"] = []string{"application/octet-stream"}
	w.Header()["Content-Length"] = []string{strconv.FormatInt(n, 10)}
	piece := make([]byte, 64<<10)
	for n > 0 {
		sent, err := w.Write(piece[:min(n, int64(len(piece)))])
		if err != nil {
			return
		}
		n -= int64(sent)
	}
}

func sink(w http.ResponseWriter, r *http.Request) {
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r.Body}, make([]byte, 64<<10))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprint(w, n)
}

func events(w http.ResponseWriter, r *http.Request) {
	w.Header()["Content-Type"] = []string{"text/event-stream"}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		fmt.Fprintf(w, "data: %d\n\n", n)
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}
