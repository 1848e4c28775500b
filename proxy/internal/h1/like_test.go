package h1

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// outcome is all that a caller sees of an answer.
type outcome struct {
	Status           string
	Code             int
	Proto            string
	Header, Trailer  http.Header
	Length           int64
	TransferEncoding []string
	Close            bool
	Body             string
	Failed, Broken   bool // no answer, and one that broke off
}

func seen(res *http.Response, err error) outcome {
	if err != nil {
		return outcome{Failed: true}
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	o := outcome{
		Status: res.Status, Code: res.StatusCode, Proto: res.Proto, Header: res.Header, Length: res.ContentLength,
		TransferEncoding: res.TransferEncoding, Close: res.Close, Body: string(body), Broken: err != nil,
	}
	if err == nil {
		o.Trailer = res.Trailer // else nobody may look at them
	}
	return o
}

// answers generates what targets say: mostly right, often odd, at times wrong.
func answers() *rapid.Generator[string] {
	pick := func(t *rapid.T, label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		end := pick(t, "end of lines", "\r\n", "\r\n", "\r\n", "\n")
		for range rapid.IntRange(0, 2).Draw(t, "interim") {
			b.WriteString(pick(t, "interim answer", "HTTP/1.1 100 Continue", "HTTP/1.1 103 Early Hints\r\nLink: </a>", "HTTP/1.1 102 Processing\r\nContent-Length: 3") + end + end)
		}
		b.WriteString(pick(t, "version", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "http/1.1", "") + " ")
		b.WriteString(pick(t, "status", "200 OK", "200 OK", "200", "204 No Content", "304 Not Modified", "404 Not: Found", "999 x", "600", "20 OK", "abc", "") + end)
		body := rapid.StringMatching(`[a-z]{0,40}`).Draw(t, "body")
		if rapid.IntRange(0, 9).Draw(t, "large") == 0 {
			body = strings.Repeat("large", 10000)
		}
		var fields []string
		sent := body
		framing := pick(t, "framing", "length", "length", "chunks", "chunks", "none", "both", "wrong length", "two lengths", "odd")
		switch framing {
		case "length":
			fields = append(fields, fmt.Sprintf("Content-Length: %d", len(body)))
		case "wrong length":
			fields = append(fields, fmt.Sprintf("Content-Length: %d", len(body)+rapid.IntRange(-3, 3).Draw(t, "off")))
		case "two lengths":
			fields = append(fields, fmt.Sprintf("Content-Length: %d", len(body)), fmt.Sprintf("content-length: %d", len(body)+rapid.IntRange(0, 1).Draw(t, "more")))
		case "odd":
			fields = append(fields, pick(t, "odd field", "Content-Length: +3", "Content-Length: 3, 3", "Content-Length:", "Content-Length : 3", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity", "Transfer-Encoding: \x0bchunked"))
		}
		if framing == "chunks" || framing == "both" {
			if framing == "both" {
				fields = append(fields, fmt.Sprintf("Content-Length: %d", rapid.IntRange(0, 50).Draw(t, "other length")))
			}
			fields = append(fields, pick(t, "coding", "Transfer-Encoding: chunked", "transfer-encoding: Chunked"))
			var c strings.Builder
			for left := body; left != ""; {
				n := rapid.IntRange(1, len(left)).Draw(t, "chunk")
				fmt.Fprintf(&c, "%x%s\r\n%s%s", n, pick(t, "extension", "", "", ";a=b"), left[:n], pick(t, "end of chunk", "\r\n", "\r\n", "\r\n", "\r\n", "\n", ""))
				left = left[n:]
			}
			if rapid.Bool().Draw(t, "announced") {
				fields = append(fields, "Trailer: X-After")
			}
			c.WriteString(pick(t, "last chunk", "0\r\n\r\n", "0\r\n\r\n", "0\r\nX-After: b\r\n\r\n", "0\r\nX-Other: b\r\n\r\n", "0\r\nX-After: b", "0\r\n", "", "-1\r\n\r\n"))
			sent = c.String()
		}
		for range rapid.IntRange(0, 3).Draw(t, "fields") {
			fields = append(fields, pick(t, "field", "X-A: b", "x-a: c", "X-Empty:", "Connection: close", "Connection: keep-alive", "Pragma: no-cache",
				"X-Folded: a\r\n b", "X-Bytes: \xff\xfe", "no colon", ": no name", "X-Space : a", "X-Long: "+strings.Repeat("l", 9000), "Set-Cookie: a=b"))
		}
		for _, f := range rapid.Permutation(fields).Draw(t, "order") {
			b.WriteString(f + end)
		}
		b.WriteString(end + sent)
		b.WriteString(pick(t, "behind", "", "", "", "x", "\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny"))
		all := b.String()
		if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
			all = all[:rapid.IntRange(0, len(all)).Draw(t, "at")]
		}
		return all
	})
}

// speaks returns the caller's end of a connection whose other end says something, in pieces, and ends.
func speaks(text string, cuts []int) net.Conn {
	near, far := net.Pipe()
	go func() {
		defer func() { _ = far.Close() }()
		_ = far.SetDeadline(time.Now().Add(patience))
		if _, err := http.ReadRequest(bufio.NewReader(far)); err != nil {
			return
		}
		from := 0
		for _, to := range slices.Concat(cuts, []int{len(text)}) {
			if _, err := io.WriteString(far, text[from:to]); err != nil {
				return
			}
			from = to
		}
	}()
	return near
}

// TestLikeNetHTTP has net/http's own transport read the same answers.
func TestLikeNetHTTP(t *testing.T) {
	log.SetOutput(io.Discard) // it complains there of what comes behind an answer
	defer log.SetOutput(os.Stderr)
	rapid.Check(t, func(t *rapid.T) {
		text := answers().Draw(t, "answer")
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(text)), 0, 5).Draw(t, "cuts")
		slices.Sort(cuts)
		method := rapid.SampledFrom([]string{"GET", "GET", "HEAD", "POST"}).Draw(t, "method")
		ask := func() *http.Request {
			r, err := http.NewRequest(method, "http://target.test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		ours := New(Options{
			Dial:           func(ctx context.Context, _, _ string) (*Conn, error) { return NewConn(ctx, speaks(text, cuts), nil) },
			MaxHeaderBytes: 40 << 10, MaxIdle: 1, MaxIdlePerHost: 1, IdleTimeout: time.Minute,
		})
		defer ours.Close()
		theirs := &http.Transport{
			DialContext:        func(context.Context, string, string) (net.Conn, error) { return speaks(text, cuts), nil },
			DisableCompression: true, MaxResponseHeaderBytes: 40 << 10, ReadBufferSize: readBuffer,
		}
		defer theirs.CloseIdleConnections()
		got, want := seen(ours.RoundTrip(ask())), seen(theirs.RoundTrip(ask()))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -net/http +ours\n%s", text, diff)
		}
	})
}
