// Package thirdparty is an API for trying out the credential proxy. It answers every request with the request that it
// received, and with the SHA-256 of each header. The hash proves that a credential arrived, although the proxy removes the
// credential from the answer. It stores nothing and logs nothing.
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

// MaxBody bounds the part of a request's body that the answer repeats, in bytes. The rest of the body is read and left out.
const MaxBody = 64 << 10

// Received is the answer: the received request.
type Received struct {
	Method string `json:"method"`
	// Target is the path and the query as they were sent.
	Target string `json:"target"`
	Host   string `json:"host"`
	// Headers are by canonical name, the lines of one joined by ", ". Host is not among them.
	Headers map[string]string `json:"headers"`
	// SHA256 is that of each header's value as it arrived, in hexadecimal.
	SHA256 map[string]string `json:"headers_sha256"`
	// Body is the beginning of the body; empty when it is not UTF-8.
	Body string `json:"body"`
	// BodyBytes is the length of all of it, and BodySHA256 its SHA-256 in hexadecimal.
	BodyBytes  int64  `json:"body_bytes"`
	BodySHA256 string `json:"body_sha256"`
}

// New returns the API's handler.
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

// beginning keeps the first MaxBody bytes.
type beginning []byte

// Write keeps what there is room for.
func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), MaxBody-len(*b))]...)
	return len(p), nil
}
