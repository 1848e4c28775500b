package app_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// names is a name server on loopback.
type names struct {
	conn  net.PacketConn
	asked atomic.Int64

	mu      sync.Mutex
	answers map[string]func(times int) []netip.Addr
	times   map[string]int
}

func newNames(t testing.TB) *names {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{conn: conn, answers: map[string]func(int) []netip.Addr{}, times: map[string]int{}}
	done := make(chan struct{})
	go func() { defer close(done); n.serve() }()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return n
}

// set makes name resolve to addresses.
func (n *names) set(name string, addresses ...string) {
	var list []netip.Addr
	for _, a := range addresses {
		list = append(list, netip.MustParseAddr(a))
	}
	n.setFunc(name, func(int) []netip.Addr { return list })
}

// setFunc makes name resolve to the result of f for the nth lookup, from 0.
func (n *names) setFunc(name string, f func(times int) []netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[name+"."] = f
}

func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", n.conn.LocalAddr().String())
	}}
}

func (n *names) serve() {
	buf := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:size]) != nil || len(m.Questions) != 1 {
			continue
		}
		n.asked.Add(1)
		q := m.Questions[0]
		reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
		n.mu.Lock()
		name := strings.ToLower(q.Name.String())
		f, ok := n.answers[name]
		if !ok {
			reply.RCode = dnsmessage.RCodeNameError
		} else {
			times := n.times[name]
			if q.Type == dnsmessage.TypeA {
				n.times[name]++
			}
			for _, a := range f(times) {
				h := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 0}
				switch {
				case a.Is4() && q.Type == dnsmessage.TypeA:
					reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
				case a.Is6() && q.Type == dnsmessage.TypeAAAA:
					reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
				}
			}
		}
		n.mu.Unlock()
		if packed, err := reply.Pack(); err == nil {
			_, _ = n.conn.WriteTo(packed, from)
		}
	}
}
