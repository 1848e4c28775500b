package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// testClientAddresses checks that the edge distinguishes clients by the gateway's forwarding headers. Each client has
// an anonymous rate of its own at a service. A client that sends addresses or a key itself gains nothing.
func (r *release) testClientAddresses(t *testing.T) {
	// A forwarded port reaches the edge from its own pod's loopback addresses, which stand for the gateway here.
	r.upgrade(t, "--set-string", "region.config.ANON_RATE_LIMIT=1", "--set", "trustedProxies={127.0.0.1/32,::1/128}")
	r.awaitReplaced(t) // a forwarded port could reach a pod that has the configuration of before
	r.awaitRoute(t, r.url[len("http://"):])
	edge, region := r.forward(t, "service/lectern-edge", 80), r.forward(t, "service/lectern-region", 80)

	first := r.askRepeatedly(t, edge, func(int) []string { return []string{"X-Forwarded-For", "203.0.113.1"} })
	second := r.askRepeatedly(t, edge, func(int) []string { return []string{"X-Forwarded-For", "203.0.113.2"} })
	if first[200] == 0 || first[429] == 0 || second[200] == 0 || second[429] == 0 {
		t.Errorf("two clients got %v and %v; want a rate for each: some answers of 200, then 429", first, second)
	}
	if each := r.askRepeatedly(t, edge, func(i int) []string { return []string{"X-Forwarded-For", fmt.Sprintf("203.0.113.%d", 100+i)} }); each[200] != requests {
		t.Errorf("%d clients with one request each got %v; want all 200", requests, each)
	}

	forged := func(i int) []string {
		return []string{"X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i), "Lectern-Edge-Key", "a-key-that-a-client-made-up"}
	}
	for name, url := range map[string]string{"the gateway": r.url, "a service itself": region} {
		if got := r.askRepeatedly(t, url, forged); got[429] == 0 {
			t.Errorf("through %s, a client that names other addresses and a key got %v; want 429 as for one client", name, got)
		}
	}
	own := func(int) []string {
		return []string{"X-Forwarded-For", "203.0.113.3", "Lectern-Edge-Key", "a-key-that-a-client-made-up"}
	}
	if got := r.askRepeatedly(t, edge, own); got[200] == 0 || got[429] == 0 {
		t.Errorf("a client that sends a key of its own to the edge got %v; want its own rate, as without", got)
	}
}

// requests is the number of requests of each client of testClientAddresses.
const requests = 60

// askRepeatedly sends requests without a key as fast as possible, and returns the number of answers by status.
func (r *release) askRepeatedly(t *testing.T, url string, headers func(i int) []string) map[int]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	to := *r
	to.url = url
	statuses := map[int]int{}
	for i := range requests {
		status, _, body, err := to.get(ctx, "/projects/pr_demo", "", headers(i)...)
		if err != nil || status != http.StatusOK && status != http.StatusTooManyRequests {
			t.Fatalf("%d, %v: %.200s", status, err, body)
		}
		statuses[status]++
	}
	return statuses
}
