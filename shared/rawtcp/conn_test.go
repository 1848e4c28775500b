package rawtcp

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// pair returns the two ends of a connection, the first of package net.
func pair(t interface {
	Helper()
	Fatal(...any)
	Cleanup(func())
}) (*net.TCPConn, *Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ours, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours.(*net.TCPConn), New(theirs.(*net.TCPConn))
}

// What is written in parts of any size arrives, both ways at the same time, in reads of any size.
func TestBytesArrive(t *testing.T) {
	sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(1, 200<<10), rapid.Just(16<<10), rapid.Just(16<<10+1)), 1, 20)
	rapid.Check(t, func(rt *rapid.T) {
		peer, conn := pair(rt)
		parts, reads := sizes.Draw(rt, "parts"), sizes.Draw(rt, "reads")
		total := 0
		for _, n := range parts {
			total += n
		}
		data := make([]byte, total)
		_, _ = rand.Read(data)
		carry := func(from, to net.Conn) {
			var writing sync.WaitGroup
			writing.Go(func() {
				rest := data
				for _, n := range parts {
					if wrote, err := from.Write(rest[:n]); wrote != n || err != nil {
						t.Errorf("wrote %d of %d: %v", wrote, n, err)
					}
					rest = rest[n:]
				}
			})
			got := make([]byte, 0, total)
			for i := 0; len(got) < total; i++ {
				p := make([]byte, reads[i%len(reads)])
				n, err := to.Read(p)
				if err != nil {
					t.Errorf("read %d of %d: %v", len(got), total, err)
					break
				}
				got = append(got, p[:n]...)
			}
			writing.Wait()
			if !bytes.Equal(got, data) {
				t.Errorf("%d bytes arrived, and are not the %d that were sent", len(got), total)
			}
		}
		var both sync.WaitGroup
		both.Go(func() { carry(peer, conn) })
		both.Go(func() { carry(conn, peer) })
		both.Wait()
	})
}

func TestTryRead(t *testing.T) {
	peer, conn := pair(t)
	p := make([]byte, 10)
	for range 3 {
		if n, err := conn.TryRead(p); n != 0 || err != error(ErrNothing) {
			t.Fatalf("nothing was sent: %d, %v", n, err)
		}
	}
	if n, err := conn.TryRead(nil); n != 0 || err != nil {
		t.Errorf("nothing was asked for: %d, %v", n, err)
	}
	if !ErrNothing.Timeout() || !ErrNothing.Temporary() { //nolint:staticcheck // crypto/tls asks it
		t.Error("crypto/tls would not go on after ErrNothing")
	}
	if _, err := peer.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	var n int
	var err error
	for deadline := time.Now().Add(10 * time.Second); err == nil && n == 0 || err == error(ErrNothing) && time.Now().Before(deadline); {
		n, err = conn.TryRead(p)
	}
	if n != 5 || err != nil || string(p[:n]) != "hello" {
		t.Fatalf("%q, %v", p[:n], err)
	}
	_ = peer.CloseWrite()
	if n, err := conn.Read(p); n != 0 || err != io.EOF {
		t.Errorf("the other side closed: %d, %v", n, err)
	}
	if n, err := conn.TryRead(p); n != 0 || err != io.EOF {
		t.Errorf("the other side closed: %d, %v", n, err)
	}
}

// The faults are those of package net: their kind, what was called, and where.
func TestFaults(t *testing.T) {
	long := make([]byte, 8<<10)
	for name, tt := range map[string]struct {
		do   func(peer *net.TCPConn, conn *Conn) (op string, err error)
		want error
	}{
		"read, closed here": {func(_ *net.TCPConn, c *Conn) (string, error) {
			_ = c.Close()
			_, err := c.Read(long)
			return "read", err
		}, net.ErrClosed},
		"read, closed here while it waits": {func(_ *net.TCPConn, c *Conn) (string, error) {
			time.AfterFunc(20*time.Millisecond, func() { _ = c.Close() })
			_, err := c.Read(long)
			return "read", err
		}, net.ErrClosed},
		"write, closed here": {func(_ *net.TCPConn, c *Conn) (string, error) {
			_ = c.Close()
			_, err := c.Write(long)
			return "write", err
		}, net.ErrClosed},
		"read, out of time": {func(_ *net.TCPConn, c *Conn) (string, error) {
			_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			_, err := c.Read(long)
			return "read", err
		}, os.ErrDeadlineExceeded},
		"write, out of time": {func(_ *net.TCPConn, c *Conn) (string, error) {
			_ = c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			for {
				if n, err := c.Write(long); err != nil {
					if n == len(long) {
						err = errors.New("all was written, and yet: " + err.Error())
					}
					return "write", err
				}
			}
		}, os.ErrDeadlineExceeded},
		"read, reset": {func(peer *net.TCPConn, c *Conn) (string, error) {
			_ = peer.SetLinger(0)
			_ = peer.Close()
			_, err := c.Read(long)
			return "read", err
		}, syscall.ECONNRESET},
		"write, reset": {func(peer *net.TCPConn, c *Conn) (string, error) {
			_ = peer.SetLinger(0)
			_ = peer.Close()
			_, _ = c.Read(long) // has taken notice
			_, err := c.Write(long)
			return "write", err
		}, syscall.EPIPE},
	} {
		t.Run(name, func(t *testing.T) {
			peer, conn := pair(t)
			op, err := tt.do(peer, conn)
			var failed *net.OpError
			if !errors.Is(err, tt.want) || !errors.As(err, &failed) || failed.Op != op || failed.Addr == nil {
				t.Errorf("%#v: %v; want %v of %s", err, err, tt.want, op)
			}
		})
	}
}

// A write whose reader is slow waits for it, and all of it arrives.
func TestSlowReader(t *testing.T) {
	peer, conn := pair(t)
	_ = conn.SetWriteBuffer(8 << 10)
	_ = peer.SetReadBuffer(8 << 10)
	const parts, each = 64, 16 << 10
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range parts {
			if n, err := conn.Write(bytes.Repeat([]byte{byte(i)}, each)); n != each || err != nil {
				t.Errorf("part %d: %d, %v", i, n, err)
			}
		}
		_ = conn.CloseWrite()
	})
	time.Sleep(50 * time.Millisecond) // until it waits
	got, err := io.ReadAll(peer)
	writing.Wait()
	if err != nil || len(got) != parts*each {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for i, b := range got {
		if b != byte(i/each) {
			t.Fatalf("byte %d is of part %d", i, b)
		}
	}
}
