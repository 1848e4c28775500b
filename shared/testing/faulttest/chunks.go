package faulttest

import (
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"
)

// malformedSizes are chunk sizes that RFC 9112, section 7.1, does not allow. A lenient reader could treat each as the
// end of the body, and the bytes after it as a request.
var malformedSizes = []struct{ name, size string }{
	{"sign", "+0"},
	{"prefix", "0x0"},
	{"no digits", "zz"},
	{"overflow", "10000000000000000"},
	{"line too long", "0;" + strings.Repeat("x", 8<<10)},
}

// MalformedChunks sends requests with malformed chunked bodies to the server at addr. Each has its own connection, with
// a second request, GET /smuggled, after the body. MalformedChunks fails t if the server sends more than one answer on
// a connection, or keeps it open.
//
// The head is a request line and headers, without Transfer-Encoding and without the blank line at the end.
func MalformedChunks(t *testing.T, addr string, head string) {
	t.Helper()
	head = strings.TrimRight(head, "\r\n") + "\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, before := range []struct{ name, chunks string }{
		{"first", ""},
		{"after a chunk", "3\r\n{}\n\r\n"},
	} {
		for _, malformed := range malformedSizes {
			t.Run(malformed.name+" "+before.name, func(t *testing.T) {
				conn := Dial(t, addr)
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				conn.Say(head + before.chunks + malformed.size + "\r\n\r\n" + "GET /smuggled HTTP/1.1\r\nHost: smuggled.example\r\n\r\n")
				conn.endsAfterOneAnswer()
			})
		}
	}
}

// answers matches the status lines of final answers.
var answers = regexp.MustCompile(`HTTP/1\.[01] [2-5]\d\d `)

// endsAfterOneAnswer fails the test if the server answers more than once or keeps the connection open. A partial
// answer, or none, is allowed.
func (r *Raw) endsAfterOneAnswer() {
	r.t.Helper()
	all, err := io.ReadAll(r.reader)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		r.t.Errorf("the server keeps the connection open after a malformed body; it answered %.300q", all)
	}
	if n := len(answers.FindAll(all, -1)); n > 1 {
		r.t.Errorf("%d answers to a malformed body and the request after it: %.600q", n, all)
	}
}
