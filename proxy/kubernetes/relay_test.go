package kubernetes_test

import (
	"net"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// relay forwards connections between a proxy and the API server.
type relay struct {
	at, to string

	mu       sync.Mutex
	listener net.Listener // nil: it refuses connections
	open     map[net.Conn]bool
	silent   map[net.Conn]bool // nothing that they send arrives any more
	done     sync.WaitGroup
}

// newRelay returns a relay to the API server of config.
func newRelay(t testing.TB, config *rest.Config) (*relay, *rest.Config) {
	t.Helper()
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	address := to.Host
	if address == "" {
		address = config.Host
	}
	r := &relay{at: "127.0.0.1:0", to: address, open: map[net.Conn]bool{}, silent: map[net.Conn]bool{}}
	r.mend(t)
	t.Cleanup(func() {
		r.interrupt()
		r.done.Wait()
	})
	by := rest.CopyConfig(config)
	by.Host = "https://" + r.at
	return r, by
}

func (r *relay) accept(listener net.Listener) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", r.to)
		if err != nil {
			_ = from.Close()
			continue
		}
		r.mu.Lock()
		r.open[from], r.open[to] = true, true
		r.mu.Unlock()
		r.done.Go(func() { r.carry(from, to) })
		r.done.Go(func() { r.carry(to, from) })
	}
}

func (r *relay) carry(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		r.mu.Lock()
		silent := r.silent[from]
		r.mu.Unlock()
		if n > 0 && !silent {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// interrupt closes all connections and refuses new ones.
func (r *relay) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		_ = r.listener.Close()
		r.listener = nil
	}
	for c := range r.open {
		_ = c.Close()
		delete(r.open, c)
	}
}

// forget drops all data of the open connections and closes none of them. So does a server that loses its power: its
// load balancer sends only new connections to another server.
func (r *relay) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		r.silent[c] = true
	}
}

// mend accepts connections again, at the same address.
func (r *relay) mend(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp", r.at)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.listener, r.at = listener, listener.Addr().String()
	r.mu.Unlock()
	r.done.Go(func() { r.accept(listener) })
}
