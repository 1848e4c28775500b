package faulttest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Raw is a connection on which a test can send any bytes, even if they are not HTTP.
type Raw struct {
	*net.TCPConn
	t      testing.TB
	reader *bufio.Reader
}

// Dial connects to the server at url, http://host:port, until t ends. No read or write lasts longer than
// half a minute, unless the test sets another deadline.
func Dial(t testing.TB, url string) *Raw {
	t.Helper()
	c, err := net.DialTimeout("tcp", strings.TrimPrefix(url, "http://"), time.Minute)
	if err != nil {
		t.Fatalf("faulttest: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(5 * time.Minute)) // a fault shows when the connection is used
	return &Raw{TCPConn: c.(*net.TCPConn), t: t, reader: bufio.NewReader(c)}
}

// Say sends text unchanged. If the server has closed the connection, [Raw.Answer] returns the error.
func (r *Raw) Say(text string) { _, _ = io.WriteString(r.TCPConn, text) }

// Answer reads one answer with its body. It returns an error if there is no answer, or if it is incomplete.
func (r *Raw) Answer(method string) (status int, header http.Header, body string, err error) {
	resp, err := http.ReadResponse(r.reader, &http.Request{Method: method})
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(b), err
}

// Ended waits for the end of the connection, and reports whether the server ended it without sending more.
func (r *Raw) Ended() bool {
	_, err := r.reader.ReadByte()
	if err == nil {
		return false
	}
	timeout, ok := errors.AsType[net.Error](err)
	return !ok || !timeout.Timeout()
}
