package app_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// TestLongOneClientLeavesRoom lets one client without a key open 1,100 connections through the gateway, with the settings that
// the chart has by default. Meanwhile another client gets all of its answers, and memory stays flat.
func TestLongOneClientLeavesRoom(t *testing.T) {
	needs.Long(t)
	const key, connections = "rk_good", 1100
	service := serve(t, map[string]string{}, func(rt *httpapi.Router) {
		answer := func(w http.ResponseWriter, r *http.Request) error {
			if r.Header.Get("X-Api-Key") != key {
				return apierr.NotAuthorized(apierr.RefusedUnknown)
			}
			return httpapi.WriteBody(w, r, "application/json", []byte("[]"), "")
		}
		rt.Get("/projects/{projectId}/entries", answer)
		rt.Get("/projects/{projectId}/entries-changes", answer)
		description := []byte(strings.Repeat("description ", 15_000))
		rt.Get("/openapi.json", func(w http.ResponseWriter, r *http.Request) error {
			return httpapi.WriteBody(w, r, "application/json", description, "")
		})
	})
	const address = "X-Forwarded-For: %s\r\nHost: x\r\nX-Api-Key: x\r\n"
	unread := strings.Repeat("GET /openapi.json HTTP/1.1\r\n"+address+"\r\n", 8)
	for _, tt := range []struct {
		name, request string
		client        func(n int) string
	}{
		{
			"a body that does not come, with a wrong key", "GET /projects/pr_1/entries HTTP/1.1\r\n" + address + "Content-Length: 200000\r\n\r\n",
			func(int) string { return "203.0.113.1" },
		},
		{
			"the same from an IPv6 /60", "GET /projects/pr_1/entries HTTP/1.1\r\n" + address + "Content-Length: 200000\r\n\r\n",
			func(n int) string { return fmt.Sprintf("2001:db8:0:%x::1", n%16) },
		},
		{
			"the same from a pod, which has no share", "GET /projects/pr_1/entries HTTP/1.1\r\nHost: x\r\nX-Api-Key: x\r\nContent-Length: 200000\r\n\r\n",
			func(int) string { return "" },
		},
		{
			"a body that does not come, to an unknown path", "POST /unknown HTTP/1.1\r\n" + address + "Content-Length: 200000\r\n\r\n",
			func(int) string { return "203.0.113.1" },
		},
		{
			"waits with a wrong key and a body", "GET /projects/pr_1/entries-changes?wait=60 HTTP/1.1\r\n" + address + "Content-Length: 200000\r\n\r\n",
			func(int) string { return "203.0.113.1" },
		},
		{"public answers that are not read", unread, func(int) string { return "203.0.113.1" }},
		{"public answers that an IPv6 /48 does not read", unread, func(n int) string { return fmt.Sprintf("2001:db8:0:%x::1", n) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			slots := "4096" // charts/charttest holds that these settings are the chart's
			if tt.client(0) == "" {
				slots = "1024" // fewer than connections, as no share bounds them
			}
			r := run(t, map[string]string{"TRUSTED_PROXIES": "private", "MAX_IN_FLIGHT": slots}, map[routes.Service]string{routes.Entries: service, routes.Region: service})
			gateway := r.gateway(t)
			dialer := r.peers.Dialer("10.0.0.6")
			before := heap()
			var opened sync.WaitGroup
			ask := func(stage string) {
				for range 50 {
					for _, path := range []string{"/projects/pr_2/entries", "/projects/pr_1/entries-changes?wait=60"} {
						if status, text := gateway("203.0.113.2", path, "X-Api-Key", key); status != http.StatusOK {
							t.Fatalf("%s: another client gets %d %s", stage, status, text)
						}
					}
				}
			}
			for n := range connections {
				conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(r.url, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				opened.Go(func() {
					_, _ = io.WriteString(conn, strings.ReplaceAll(tt.request, "%s", tt.client(n)))
				})
			}
			ask("while they send")
			opened.Wait()
			ask("while they wait")
			if grown := heap() - before; grown > connections*(64<<10) {
				t.Errorf("memory grew by %d KiB for each connection", grown/connections>>10)
			} else {
				t.Logf("memory grew by %d KiB for each connection", grown/connections>>10)
			}
		})
	}
}

// heap returns the bytes of live memory and of stacks.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
