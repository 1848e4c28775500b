package kubestore_test

import (
	"net"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// relay stands between a proxy and the API server.
type relay struct {
	listener net.Listener
	to       string

	mu     sync.Mutex
	cut    bool
	paused chan struct{} // is closed when bytes may pass; nil: they may
	open   map[net.Conn]bool
	done   sync.WaitGroup
}

// newRelay returns a way to the API server of config that can be cut.
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
	r := &relay{to: address, open: map[net.Conn]bool{}}
	if r.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	r.done.Go(r.accept)
	t.Cleanup(func() {
		_ = r.listener.Close()
		r.mend()
		r.sever()
		r.done.Wait()
	})
	by := rest.CopyConfig(config)
	by.Host = "https://" + r.listener.Addr().String()
	return r, by
}

func (r *relay) accept() {
	for {
		from, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		cut := r.cut
		r.mu.Unlock()
		if cut {
			_ = from.Close()
			continue
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
		paused := r.paused
		r.mu.Unlock()
		if paused != nil {
			<-paused
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// sever ends all connections.
func (r *relay) sever() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		_ = c.Close()
		delete(r.open, c)
	}
}

// interrupt ends all connections and takes no others.
func (r *relay) interrupt() {
	r.mu.Lock()
	r.cut = true
	r.mu.Unlock()
	r.sever()
}

// pause lets nothing through, and ends nothing: as a server that hangs.
func (r *relay) pause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = make(chan struct{})
}

// mend has all pass again.
func (r *relay) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = false
	if r.paused != nil {
		close(r.paused)
		r.paused = nil
	}
}
