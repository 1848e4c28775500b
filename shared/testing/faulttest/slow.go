package faulttest

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// ReadSlowly gets path from the server at url as a slow and steady client: at 1 MB/s, four times the slowest rate that is
// promised. ReadSlowly returns how many bytes came, and in what time.
func ReadSlowly(t testing.TB, url, path string) (bytes int, took time.Duration) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(32 << 10)
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path)
	begin := time.Now()
	tick := time.NewTicker(60 * time.Millisecond)
	defer tick.Stop()
	for buffer := make([]byte, 64<<10); ; <-tick.C {
		n, err := io.ReadFull(conn, buffer)
		bytes += n
		if err != nil { // the end, or a broken connection
			return bytes, time.Since(begin)
		}
	}
}
