package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/eventually"

	edge "github.com/lectern-dev/lectern/services/edge/app"
)

// TestEachClientOfTheEdgeHasItsRate checks that each client behind the edge has a rate of its own, which the client's
// own headers cannot change. The service recognises the edge by its key, not by its address.
func TestEachClientOfTheEdgeHasItsRate(t *testing.T) {
	t.Parallel()
	const key = "edge-key-0123456789abcdef"
	s := start(t, map[string]string{"ANON_RATE_LIMIT": "2", "EDGE_KEYS": "an-older-key-0123456," + key})
	put(t, s, "pr_1", "One", nil)
	url := startEdge(t, map[string]string{"EDGE_SERVICES": "region=" + strings.TrimPrefix(s.URL, "http://"), "EDGE_KEYS": key})

	// ask sends requests from an address of this machine, and returns the number of answers with 429.
	ask := func(url, from string, requests int, headers ...string) (limited int) {
		t.Helper()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		transport := &http.Transport{DialContext: dialer.DialContext}
		defer transport.CloseIdleConnections()
		for i := range requests {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/projects/pr_1", nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, header := range headers {
				name, value, _ := strings.Cut(header, ": ")
				req.Header.Set(name, strings.ReplaceAll(value, "#", fmt.Sprint(i)))
			}
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			switch resp.StatusCode {
			case http.StatusTooManyRequests:
				limited++
			case http.StatusOK:
			default:
				t.Fatalf("status %d", resp.StatusCode)
			}
		}
		return limited
	}
	// limited waits until most of 20 requests in a row are over the rate. On a busy machine the requests may come slowly, or Redis
	// may answer too late to count them.
	limited := func(name, url, from string, headers ...string) {
		t.Helper()
		eventually.True(t, name+": 10 of 20 requests are over a rate of 2 a second", func() bool { return ask(url, from, 20, headers...) >= 10 })
	}
	limited("one client", url, "127.0.0.2")
	if got := ask(url, "127.0.0.3", 4); got != 0 {
		t.Errorf("%d of the first 4 requests of another client were over its rate", got)
	}
	for i, liar := range []struct {
		name, url string
		headers   []string
	}{
		{"an address made up", url, []string{"X-Forwarded-For: 10.0.0.#"}},
		{"a key and an address made up", url, []string{"X-Forwarded-For: 10.0.1.#", "Lectern-Edge-Key: edge-key-0000000000000000"}},
		{"the key itself, sent to the edge", url, []string{"X-Forwarded-For: 10.0.2.#", "Lectern-Edge-Key: " + key}},
		{"a key made up, past the edge", s.URL, []string{"X-Forwarded-For: 10.0.3.#", "Lectern-Edge-Key: edge-key-0000000000000000"}},
	} {
		limited(liar.name, liar.url, fmt.Sprintf("127.0.1.%d", i+1), liar.headers...)
	}
	if strings.Contains(s.Log(), key) {
		t.Error("the key is in the log of the service")
	}
}

// startEdge runs an edge until t ends, and returns its URL.
func startEdge(t *testing.T, environ map[string]string) string {
	t.Helper()
	environ["LISTEN_PUBLIC"], environ["LISTEN_INTERNAL"], environ["DRAIN_DELAY"] = "127.0.0.1:0", "127.0.0.1:0", "0s"
	var cfg edge.Config
	if err := config.Load(&cfg, environ); err != nil {
		t.Fatal(err)
	}
	cfg.LogOutput = t.Output()
	ready := make(chan string, 1)
	cfg.HTTP.Ready = func(public, _ net.Addr) { ready <- "http://" + public.String() }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- edge.Run(ctx, cfg) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the edge: %v", err)
		}
	})
	select {
	case url := <-ready:
		return url
	case err := <-ended:
		ended <- err
		t.Fatal("the edge did not start")
		return ""
	}
}
