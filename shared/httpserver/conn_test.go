package httpserver

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// counting counts what is written to a connection, as system calls.
type counting struct {
	*net.TCPConn
	writes *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.TCPConn.Write(p)
}

type countingListener struct {
	net.Listener
	writes *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(counting{c.(*net.TCPConn), l.writes}, nil), nil
}

func TestWholeAnswersAreOneWrite(t *testing.T) {
	var c Config
	var tc telemetry.Config
	for _, dst := range []any{&c, &tc} {
		if err := config.Load(dst, map[string]string{}); err != nil {
			t.Fatal(err)
		}
	}
	tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "test", Config: tc, LogOutput: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tel.Shutdown(t.Context()) }()
	body := bytes.Repeat([]byte("0123456789abcdef"), wholeTo/16+1)
	router := httpapi.NewRouter()
	router.Get("/whole/{bytes}", func(w http.ResponseWriter, r *http.Request) error {
		n, err := httpapi.PathInt(r, "bytes")
		if err != nil {
			return err
		}
		return httpapi.WriteBody(w, r, "text/plain", body[:n], "")
	})
	server, err := New(Options{Service: "test", Config: c, Telemetry: tel, Public: router})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	writes := new(atomic.Int64)
	go func() { _ = server.public.server.Serve(countingListener{opened, writes}) }()
	defer server.public.server.Close()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()

	for _, tt := range []struct{ bytes, most int }{
		{0, 1}, {1, 1}, {wholeFrom - 1, 1}, {wholeFrom, 1}, {4095, 1}, {4096, 1}, {4097, 1}, {8192, 1}, {wholeTo, 1}, {wholeTo + 1, 3},
	} {
		t.Run(strconv.Itoa(tt.bytes), func(t *testing.T) {
			for range 3 { // also on a connection that was used before
				writes.Store(0)
				res, err := client.Get("http://" + opened.Addr().String() + "/whole/" + strconv.Itoa(tt.bytes))
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil || !bytes.Equal(got, body[:tt.bytes]) {
					t.Fatalf("read %d bytes, %v; want %d", len(got), err, tt.bytes)
				}
				if n := writes.Load(); n < 1 || n > int64(tt.most) {
					t.Errorf("%d writes, want 1 to %d", n, tt.most)
				}
			}
		})
	}
}

// bounded notes the write deadlines that the system is told, and the one at each write.
type bounded struct {
	transport
	told []time.Time
	at   []time.Time
}

func (b *bounded) SetWriteDeadline(t time.Time) error {
	b.told = append(b.told, t)
	return nil
}

func (b *bounded) Write(p []byte) (int, error) {
	var at time.Time
	if len(b.told) > 0 {
		at = b.told[len(b.told)-1]
	}
	b.at = append(b.at, at)
	return len(p), nil
}

// Answers one behind the other go on with a write deadline that leaves enough; nobody else is bound by it.
func TestWriteDeadlines(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	by := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	answer := func(c *conn, at, leaves int) { // as an exchange does, and net/http behind it
		if !c.goesOn(by(at), time.Duration(leaves)*time.Second) {
			_ = c.SetWriteDeadline(by(at + leaves + leaves/4))
		}
		_, _ = c.Write([]byte("answer"))
		_ = c.SetWriteDeadline(time.Time{})
	}
	write := func(c *conn) { _, _ = c.Write([]byte("of net/http")) }
	var none time.Time
	for _, tt := range []struct {
		name     string
		do       func(*conn)
		told, at []time.Time
	}{
		{"nothing is bound", write, nil, []time.Time{none}},
		{"many answers", func(c *conn) { answer(c, 0, 40); answer(c, 5, 40); answer(c, 10, 40) }, []time.Time{by(50)}, []time.Time{by(50), by(50), by(50)}},
		{"too little is left", func(c *conn) { answer(c, 0, 40); answer(c, 11, 40) }, []time.Time{by(50), by(61)}, []time.Time{by(50), by(61)}},
		{"an answer of net/http behind one", func(c *conn) { answer(c, 0, 40); write(c); write(c) }, []time.Time{by(50), none}, []time.Time{by(50), none, none}},
		{"another answer behind that", func(c *conn) { answer(c, 0, 40); write(c); answer(c, 1, 40) }, []time.Time{by(50), none, by(51)}, []time.Time{by(50), none, by(51)}},
		{"held", func(c *conn) {
			answer(c, 0, 40)
			var buffer []byte
			c.hold(&buffer)
			write(c)
			_ = c.release()
		}, []time.Time{by(50), none}, []time.Time{by(50), none}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &bounded{}
			tt.do(newConn(b, nil))
			if !slices.Equal(b.told, tt.told) || !slices.Equal(b.at, tt.at) {
				t.Errorf("told %v, writes at %v; want %v, %v", b.told, b.at, tt.told, tt.at)
			}
		})
	}
}
