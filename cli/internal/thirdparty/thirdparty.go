// Package thirdparty is an API for trying out the credential proxy. The API answers a request with the request that it
// received, and with the SHA-256 of each header. The hash proves that a credential arrived, although the proxy removes
// the credential from the answer. The API stores nothing and logs nothing.
package thirdparty

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// maxBody is the maximum part of a request's body that the answer repeats, in bytes. The rest of the body only counts
// for its length and hash.
const maxBody = 64 << 10

// Received is the answer of the API in JSON: the request that the API received.
type Received struct {
	Method string `json:"method"`
	// Target is the path and the query of the request, exactly as they were sent.
	Target string `json:"target"`
	Host   string `json:"host"`
	// Headers has the value of each header by its canonical name. Several lines of a header are joined by ", ". Host
	// is not included.
	Headers map[string]string `json:"headers"`
	// SHA256 has the SHA-256 of each header's value as it arrived, in hexadecimal.
	SHA256 map[string]string `json:"headers_sha256"`
	// Body is the first 64 KiB of the body, or "" if these bytes are not UTF-8.
	Body string `json:"body"`
	// BodyBytes is the length of the whole body. BodySHA256 is the SHA-256 of the whole body in hexadecimal.
	BodyBytes  int64  `json:"body_bytes"`
	BodySHA256 string `json:"body_sha256"`
}

// New returns the API's handler, which answers each request with a [Received].
func New() http.Handler { return http.HandlerFunc(answer) }

func answer(w http.ResponseWriter, r *http.Request) {
	sum := sha256.New()
	body := beginning{}
	n, err := io.Copy(io.MultiWriter(sum, &body), r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client disconnected within its body
	}
	got := Received{
		Method: r.Method, Target: r.RequestURI, Host: r.Host, Headers: map[string]string{}, SHA256: map[string]string{},
		BodyBytes: n, BodySHA256: hex.EncodeToString(sum.Sum(nil)),
	}
	if utf8.Valid(body) {
		got.Body = string(body)
	}
	for name, values := range r.Header {
		value := strings.Join(values, ", ")
		digest := sha256.Sum256([]byte(value))
		got.Headers[name], got.SHA256[name] = value, hex.EncodeToString(digest[:])
	}
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(got) // nobody reads on where it fails
}

// beginning is a writer that keeps the first maxBody bytes and discards the rest.
type beginning []byte

// Write keeps the part of p that still fits into maxBody bytes, and reports all of p as written.
func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), maxBody-len(*b))]...)
	return len(p), nil
}
