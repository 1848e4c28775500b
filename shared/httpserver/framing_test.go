package httpserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	framedGet  = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
	framedHead = "POST /a HTTP/1.1\r\nHost: x\r\n"
)

func TestFraming(t *testing.T) {
	long := strings.Repeat("x", 3*deciding)
	tests := []struct {
		name, in string
		requests []string // as net/http reads them behind it
		refused  error
	}{
		{"get", framedGet, []string{"GET /a"}, nil},
		{"two at once", framedGet + framedGet, []string{"GET /a", "GET /a"}, nil},
		{"a body", framedHead + "Content-Length: 5\r\n\r\nhel\nl" + framedGet, []string{"POST /a hel\nl", "GET /a"}, nil},
		{"a body that looks folded", framedHead + "Content-Length: 6\r\n\r\n\r\n a\n\n" + framedGet, []string{"POST /a \r\n a\n\n", "GET /a"}, nil},
		{"two equal lengths", framedHead + "Content-Length: 1\r\ncontent-length: 1\r\n\r\n\n" + framedGet, []string{"POST /a \n", "GET /a"}, nil},
		{"chunks", framedHead + "Transfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\na\nb\r\nA\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\n" + framedGet,
			[]string{"POST /a a\nb0123456789", "GET /a"}, nil},
		{"long lines", "GET /" + long + " HTTP/1.1\r\nHost: x\r\nX-" + long + ": " + long + "\r\n\r\n" + framedGet, []string{"GET /" + long, "GET /a"}, nil},
		{"http/1.0", "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + framedGet, []string{"GET /a", "GET /a"}, nil},

		{"both lengths", framedHead + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", nil, errTwoFramings},
		{"both the other way", framedHead + "tRANSFER-eNCODING: chunked\r\nX: y\r\ncONTENT-lENGTH: 5\r\n\r\n0\r\n\r\n", nil, errTwoFramings},
		{"both in the second request", framedGet + framedHead + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []string{"GET /a"}, errTwoFramings},
		{"chunks in http/1.0", "POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", nil, errOldCoded},
		{"chunks in http/1.0 and a long path", "POST /" + long + " HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", nil, errOldCoded},
		{"folded", framedHead + "X-K: a\r\n b\r\n\r\n", nil, errFolded},
		{"folded by a tab", framedHead + "X-K: a\r\n\tb\r\n\r\n", nil, errFolded},
		{"folded first line", "GET /a HTTP/1.1\r\n Host: x\r\n\r\n", nil, errFolded},
		{"folded coding", framedHead + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", nil, errFolded},
		{"folded trailer", framedHead + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: a\r\n b\r\n\r\n", []string{"POST /a (cut)"}, errFolded},
		{"bare lf, request line", "GET /a HTTP/1.1\nHost: x\r\n\r\n", nil, errBareLF},
		{"bare lf, field", "GET /a HTTP/1.1\r\nHost: x\n\r\n", nil, errBareLF},
		{"bare lf, end of head", "GET /a HTTP/1.1\r\nHost: x\r\n\n", nil, errBareLF},
		{"bare lf, chunk size", framedHead + "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", []string{"POST /a (cut)"}, errBareLF},
		{"a preface that goes on as HTTP/1", preface + "\r\nHost: x\r\n\r\n" + framedGet, nil, errPreface},
		{"a preface that goes on otherwise", preface + "\r\n\r\nSN\r\n\r\n" + framedGet, []string{"PRI *"}, errPreface},
		{"a preface, later", framedGet + preface + "\r\nHost: x\r\n\r\n" + framedHead + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
			[]string{"GET /a", "PRI *"}, errTwoFramings},
		{"no length", framedHead + "Content-Length: x\r\n\r\n" + framedGet, nil, errLength},
		{"two lengths", framedHead + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab" + framedGet, nil, errLength},
		{"a length behind zeros", framedHead + "Content-Length: 0000000000000000000035\r\n\r\n", nil, errLength},
		{"a large length", framedHead + "Content-Length: 1000000000000000000\r\n\r\n", nil, errLength},
		{"a length behind spaces", framedHead + "Content-Length:" + strings.Repeat(" ", deciding) + "35\r\n\r\n", nil, errLength},
		{"a length before spaces", framedHead + "Content-Length: 35" + strings.Repeat(" ", deciding) + "\r\n\r\n", nil, errLength},
		{"bare lf, chunk end", framedHead + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n", []string{"POST /a hello(cut)"}, errBareLF},
	}
	for _, tt := range tests {
		for _, step := range []int{1, 2, 3, 7, len(tt.in)} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, step), func(t *testing.T) {
				conn := newConn(said{Reader: bytes.NewReader([]byte(tt.in)), step: step}, nil, nil)
				got := requestsOf(conn)
				if diff := cmp.Diff(tt.requests, got); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				if !errors.Is(conn.framing.refused, tt.refused) {
					t.Errorf("refused for %v, want %v", conn.framing.refused, tt.refused)
				}
			})
		}
	}
}

// An empty line, which net/http passes over behind a POST, does not hide the request line from the watch.
func TestFramingBehindAnEmptyLine(t *testing.T) {
	f := newFraming()
	f.watch([]byte(framedHead + "Content-Length: 1\r\n\r\na" + "\r\n"))
	if f.isAtRequest() || f.isBetween() {
		t.Error("an empty line was read, and it is as if nothing was")
	}
	f.watch([]byte("POST /b HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"))
	if f.refused != errOldCoded {
		t.Errorf("refused for %v, want %v", f.refused, errOldCoded)
	}
	f = newFraming()
	f.watch([]byte("\r\n" + framedGet))
	if !f.isAtRequest() {
		t.Error("a request was read, and it is as if it was not")
	}
}

func TestFramingLeavesHTTP2Alone(t *testing.T) {
	in := preface + "\r\n\r\nSM\r\n\r\n\x00\n folded\n\n" + framedHead + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
	conn := newConn(said{Reader: strings.NewReader(in), step: 5}, nil, nil)
	got, err := io.ReadAll(conn)
	if err != nil || string(got) != in {
		t.Errorf("read %q, %v; want all", got, err)
	}
}

// What is not refused arrives byte for byte, however it is cut.
func TestFramingKeepsBytes(t *testing.T) {
	parts := []string{framedGet, framedHead, "\r\n", "\n", " ", ":", "Content-Length: 3\r\n", "Content-Length: x\r\n", "Transfer-Encoding: chunked\r\n",
		"3\r\nabc\r\n", "0\r\n\r\n", "abc", "ffffffffffffffff\r\n", "GET / HTTP/1.0\r\n", "\x00", preface}
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 12).Draw(t, "in"), "")
		whole := newConn(said{Reader: strings.NewReader(in), step: max(1, len(in))}, nil, nil)
		want, wantErr := io.ReadAll(whole)
		if !strings.HasPrefix(in, string(want)) || wantErr == nil && string(want) != in {
			t.Fatalf("%q became %q, %v", in, want, wantErr)
		}
		cut := newConn(said{Reader: strings.NewReader(in), step: rapid.IntRange(1, 9).Draw(t, "step")}, nil, nil)
		got, err := io.ReadAll(cut)
		if string(got) != string(want) || !errors.Is(err, wantErr) {
			t.Fatalf("%q cut otherwise became %q, %v; want %q, %v", in, got, err, want, wantErr)
		}
	})
}

// FuzzFraming holds that no request is seen that net/http alone would not see, and that two that are
// refused for their framing never get through.
func FuzzFraming(f *testing.F) {
	f.Add([]byte(framedGet+framedHead+"Content-Length: 2\r\n\r\nab"+framedGet), 3)
	f.Add([]byte(framedHead+"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"+framedGet), 1)
	f.Add([]byte(framedHead+"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"), 9)
	f.Fuzz(func(t *testing.T, in []byte, step int) {
		if step < 1 || step > len(in) {
			return
		}
		got := requestsOf(newConn(said{Reader: bytes.NewReader(in), step: step}, nil, nil))
		want := requestsOf(said{Reader: bytes.NewReader(in), step: step})
		for i, r := range got {
			if i >= len(want) || r != want[i] && !strings.HasSuffix(r, "(cut)") {
				t.Fatalf("request %d of %q is %q, want of %q", i, in, r, want)
			}
		}
	})
}

// requestsOf reads as net/http's server does: requests one after another, until one is malformed.
func requestsOf(conn net.Conn) (all []string) {
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return all
		}
		body, err := io.ReadAll(req.Body)
		text := strings.TrimSpace(req.Method + " " + req.URL.Path)
		if len(body) > 0 || err != nil {
			text += " " + string(body)
		}
		if err != nil {
			return append(all, text+"(cut)")
		}
		all = append(all, text)
	}
}

// said is a connection on which a client said something, of which step bytes arrive at a time.
type said struct {
	io.Reader
	step int
	transport
}

func (s said) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(s.step, len(p))]) }

func (said) Write(p []byte) (int, error) { return len(p), nil }
