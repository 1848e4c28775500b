package httpserver

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// act is a step of a handler.
type act struct {
	What  string // header, status, write, flush, panic
	Name  string
	Value string
	N     int
}

func (a act) do(w http.ResponseWriter) {
	switch a.What {
	case "header":
		if a.Name == "Content-Length" || a.Name == "Connection" { // of two, net/http makes what no client understands
			w.Header().Del(a.Name)
		}
		w.Header().Add(a.Name, a.Value)
	case "none":
		w.Header()[a.Name] = nil
	case "status":
		w.WriteHeader(a.N)
	case "write":
		b := []byte(strings.Repeat(a.Value, a.N))
		_, _ = w.Write(b)
		clear(b) // a writer keeps nothing of it
	case "flush":
		_ = http.NewResponseController(w).Flush()
	case "panic":
		panic(http.ErrAbortHandler)
	}
}

// twins are two servers of one handler.
type twins struct {
	acts      atomic.Pointer[[]act] // of the handler
	addresses []string              // of net/http alone, and of direct before it
	direct    atomic.Int64          // how often direct answered
}

// twin is the listener of one of them.
type twin struct {
	net.Listener
	departures *departures
	direct     *direct
}

func (l twin) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c.(*net.TCPConn), l.departures, l.direct), nil
}

// pair starts both, whose handler does the acts of the moment.
func pair(t *testing.T) *twins {
	t.Helper()
	p := &twins{}
	for _, direct := range []bool{false, true} {
		server := &http.Server{
			ConnContext: withConn, ErrorLog: log.New(io.Discard, "", 0), MaxHeaderBytes: 8 << 10, IdleTimeout: time.Minute,
			ReadHeaderTimeout: time.Minute,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, is := w.(*reply); is {
					p.direct.Add(1)
				}
				saw := fmt.Sprint(r.Method, r.URL, r.RequestURI, r.Proto, r.ProtoMajor, r.ProtoMinor, r.Host, r.Header, r.ContentLength,
					r.TransferEncoding, r.Close, r.Body == http.NoBody, r.RemoteAddr != "", r.Context().Value(http.LocalAddrContextKey) != nil,
					r.Context().Value(http.ServerContextKey) != nil)
				w.Header().Set("Saw", saw)
				_, _ = io.Copy(io.Discard, r.Body)
				for _, a := range *p.acts.Load() {
					a.do(w)
				}
			}),
		}
		opened, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		departures, err := watchDepartures()
		if err != nil {
			t.Fatal(err)
		}
		l := twin{Listener: opened, departures: departures}
		if direct {
			l.direct = newDirect(server, slog.New(slog.DiscardHandler))
			l.direct.departures = departures
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = server.Serve(l)
		}()
		t.Cleanup(func() {
			_ = server.Close()
			<-served
			departures.stop()
		})
		p.addresses = append(p.addresses, opened.Addr().String())
	}
	return p
}

// say sends what is said to one of the two, and returns what of the answers a client can tell apart: each in turn, and
// whether the connection goes on.
func (p *twins) say(ctx context.Context, which int, said []byte, methods []string) (string, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", p.addresses[which])
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write(said); err != nil {
		return "", err
	}
	var heard strings.Builder
	in := bufio.NewReader(c)
	for _, method := range methods {
		for {
			res, err := http.ReadResponse(in, &http.Request{Method: method})
			if err != nil {
				fmt.Fprintf(&heard, "ended: %t", err == io.EOF || err == io.ErrUnexpectedEOF)
				return heard.String(), nil
			}
			body, err := io.ReadAll(res.Body)
			date := res.Header["Date"]
			if len(date) == 1 && len(date[0]) == len(http.TimeFormat) {
				res.Header["Date"] = []string{"now"}
			}
			fmt.Fprintln(&heard, res.Status, res.Proto, res.Header, res.ContentLength, res.TransferEncoding, res.Close, len(body),
				bytes.Count(body, []byte("a")), err, res.Trailer)
			if err != nil {
				return heard.String(), nil
			}
			if res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols {
				break
			}
		}
	}
	// Another request tells whether there is a connection still.
	_, _ = io.WriteString(c, "GET /next HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(in, nil)
	fmt.Fprint(&heard, "goes on: ", err == nil && res.Header.Get("Saw") != "")
	return heard.String(), nil
}

// atEnd returns whether the connection goes on.
func atEnd(heard string) string {
	if strings.HasSuffix(heard, "goes on: true") {
		return "goes on"
	}
	return "ended"
}

// TestDirectAnswersAsNetHTTPDoes generates handlers and requests, and holds direct to what net/http alone makes of
// them.
func TestDirectAnswersAsNetHTTPDoes(t *testing.T) {
	p := pair(t)
	names := []string{
		"Content-Type", "Content-Length", "Date", "Connection", "Trailer", "Content-Encoding", "X-A", "x-b", "X-C",
		http.TrailerPrefix + "X-D", "Bad Name", "Vary",
	}
	values := map[string][]string{
		"Content-Length": {"0", "3", "5", "100", "5000"}, "Connection": {"close", "keep-alive"},
		"Trailer": {"X-C", "X-A, X-C", "x-c", "Content-Length", ""}, "Content-Encoding": {"gzip", ""},
	}
	header := rapid.Custom(func(t *rapid.T) act {
		name := rapid.SampledFrom(names).Draw(t, "name")
		if rapid.IntRange(0, 9).Draw(t, "none") == 0 {
			return act{What: "none", Name: name}
		}
		of := values[name]
		if of == nil {
			of = []string{"a", "", " b ", "text/plain", "x\r\nY: z"}
		}
		return act{What: "header", Name: name, Value: rapid.SampledFrom(of).Draw(t, "value")}
	})
	step := rapid.Custom(func(t *rapid.T) act {
		switch rapid.SampledFrom([]string{"header", "status", "write", "write", "write", "flush", "panic"}).Draw(t, "what") {
		case "header":
			return header.Draw(t, "header")
		case "status":
			return act{What: "status", N: rapid.SampledFrom([]int{200, 204, 304, 404, 503, 599, 103, 102, 206}).Draw(t, "status")}
		case "write":
			return act{What: "write", Value: rapid.SampledFrom([]string{"a", "<a>", "<", "html>", "%PDF-", "\x00"}).Draw(t, "text"),
				N: rapid.SampledFrom([]int{0, 1, 3, 5, 100, 600, 1024, 2047, 2048, 2049, 4096, 5000, copied, 40000}).Draw(t, "bytes")}
		case "panic":
			if rapid.IntRange(0, 9).Draw(t, "really") > 0 {
				return act{What: "flush"}
			}
			return act{What: "panic"}
		}
		return act{What: "flush"}
	})
	// Half of the requests are for direct, the others may be anything.
	request := rapid.Custom(func(t *rapid.T) [2]string {
		plain := rapid.Bool().Draw(t, "plain")
		of := func(name string, plainly int, from ...string) string {
			if plain {
				from = from[:plainly]
			}
			return rapid.SampledFrom(from).Draw(t, name)
		}
		method := of("method", 4, "GET", "HEAD", "OPTIONS", "DELETE", "POST", "get", "CONNECT")
		target := of("target", 4, "/", "/a?b=c", "/%61/%2F", "//x", "/a b", "*", "http://y/z", "/%zz", "/a#b", "/\x80")
		version := of("version", 1, "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/1.2", "http/1.1")
		head := method + " " + target + " " + version + "\r\n" +
			of("host", 4, "Host: x\r\n", "host:x:1\r\n", "Host: [::1]\r\n", "HOST: \tx \r\n", "Host: a b\r\n", "Host:\r\n", "")
		body := ""
		for range rapid.IntRange(0, 3).Draw(t, "fields") {
			field := of("field", 6, "A: b", "a: c", "Accept:\tx ", "Connection: keep-alive", "TE: trailers", "Cookie: a=b; c=d",
				"Connection: close", "Connection: A", "Upgrade: x", "Expect: 100-continue", "Expect: y", "Content-Length: 0",
				"Content-Length: 3", "Transfer-Encoding: chunked", "Trailer: a", "Host: y", "B : c", " c: d", "C", ": d", "D: \x01",
				"E: é", "F: \r", "G: a\nH: b")
			switch field {
			case "Content-Length: 3":
				body = "abc"
			case "Transfer-Encoding: chunked":
				body = "3\r\nabc\r\n0\r\n\r\n"
			}
			head += field + "\r\n"
		}
		return [2]string{method, head + "\r\n" + body}
	})
	rapid.Check(t, func(rt *rapid.T) {
		acts := append(rapid.SliceOfN(header, 0, 4).Draw(rt, "headers"), rapid.SliceOfN(step, 0, 5).Draw(rt, "steps")...)
		p.acts.Store(&acts)
		var said []byte
		var methods []string
		for _, r := range rapid.SliceOfN(request, 1, 3).Draw(rt, "requests") {
			methods = append(methods, r[0])
			said = append(said, r[1]...)
		}
		want, err := p.say(t.Context(), 0, said, methods)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := p.say(t.Context(), 1, said, methods)
		if err != nil {
			rt.Fatal(err)
		}
		if slices.ContainsFunc(acts, func(a act) bool { return a.What == "panic" }) {
			got, want = atEnd(got), atEnd(want) // how much goes out before it is a matter of buffers
		}
		if got != want {
			rt.Errorf("%q, %v\ngot  %s\nwant %s", said, acts, got, want)
		}
	})
	if n := p.direct.Load(); n < 50 {
		t.Errorf("%d requests of all were answered by direct", n)
	}
}
