// Package proxytest is the HTTP proxy of a network, for tests.
package proxytest

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
)

// Proxy is a running proxy on loopback. It connects to loopback, whatever name it is asked for.
type Proxy struct {
	URL string // without user and password

	mu    sync.Mutex
	asked []string
	basic string
}

// Start starts a proxy until t ends.
func Start(t testing.TB) *Proxy {
	t.Helper()
	p := &Proxy{}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	p.URL = s.URL
	return p
}

// Require has the proxy refuse requests without this user and password.
func (p *Proxy) Require(user, password string) {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.basic = r.Header.Get("Authorization")
}

// Asked returns the requests so far, each once and in their order: method and host with port.
func (p *Proxy) Asked() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, ", ")
}

// ServeHTTP serves one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if line := r.Method + " " + r.Host; len(p.asked) == 0 || p.asked[len(p.asked)-1] != line {
		p.asked = append(p.asked, line)
	}
	refused := p.basic != "" && r.Header.Get("Proxy-Authorization") != p.basic
	p.mu.Unlock()
	if refused {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	if r.Method != http.MethodConnect {
		(&httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}).ServeHTTP(w, r)
		return
	}
	_, port, _ := net.SplitHostPort(r.Host)
	target, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer target.Close()
	// The answer comes after Hijack. If the client could answer earlier, the server would read the first byte of that.
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(target, client); _ = target.Close() }()
	_, _ = io.Copy(client, target)
}
