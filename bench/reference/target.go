package main

import (
	"crypto/tls"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// target is the third party for measurements of the credential proxy: a TLS server for HTTP/1.1 that does as little as
// possible.
//
//	GET /small        1 KiB of JSON
//	GET /bulk?bytes=N N bytes
func target(server *http.Server) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /small", small)
	mux.HandleFunc("GET /bulk", bulk)
	server.Handler = mux
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	return server.ListenAndServeTLS(os.Getenv("CERTIFICATE"), os.Getenv("CERTIFICATE_KEY"))
}

const smallBytes = 1 << 10

var smallAnswer = []byte(`{"text":"` + strings.Repeat("x", smallBytes-len(`{"text":""}`)) + `"}`) // read-only

func small(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = []string{"application/json"}
	w.Header()["Content-Length"] = []string{strconv.Itoa(smallBytes)}
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
