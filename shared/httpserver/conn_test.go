package httpserver

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

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
