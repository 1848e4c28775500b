package h1

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestFlowing has a target send a part of a body, and wait. Reads do not wait for as long as the body flows.
func TestFlowing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells how much has arrived")
	}
	each(t, func(t *testing.T, secure bool) {
		const part, rest = 100 << 10, 10
		goOn := make(chan struct{})
		s := newTarget(t, secure, func(c net.Conn, _ request) bool {
			says(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			says(c, "19000\r\n"+strings.Repeat("x", part)+"\r\n")
			<-goOn
			says(c, "a\r\n"+strings.Repeat("y", rest)+"\r\n0\r\n\r\n")
			return true
		})
		res, err := s.transport(nil).RoundTrip(s.ask(t.Context(), http.MethodGet, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		b := res.Body.(*body)
		until(t, "the body flows", func() bool { return b.c.socket.arrived() >= 40<<10 })
		read, p := 0, make([]byte, 32<<10)
		began := time.Now()
		for b.Flowing() {
			n, err := b.Read(p)
			if err != nil {
				t.Fatal(err)
			}
			read += n
		}
		if read < 20<<10 || read > part || time.Since(began) > patience/2 {
			t.Errorf("%d bytes flowed of %d, in %s", read, part, time.Since(began))
		}
		close(goOn)
		last, err := io.ReadAll(b)
		if read += len(last); err != nil || read != part+rest {
			t.Errorf("%d bytes, %v", read, err)
		}
		if b.Flowing() {
			t.Error("it flows behind its end")
		}
	})
}
