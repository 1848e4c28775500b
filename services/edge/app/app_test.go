package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/services/edge/app"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

func TestConfig(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   map[string]string
		want []string // parts of the error; none: the configuration is valid
	}{
		{"good", map[string]string{"EDGE_SERVICES": "entries=lectern-entries:80, region=[::1]:80", "EDGE_KEYS": key + ",another-key-0123456", "EDGE_EXCLUDE": "getReference, listEntries"}, nil},
		{"nothing", nil, []string{"EDGE_SERVICES is not set, and is required", "EDGE_KEYS is not set, and is required"}},
		{
			"bad", map[string]string{"EDGE_SERVICES": "entries=:80", "EDGE_KEYS": "short", "EDGE_EXCLUDE": "listTables", "EDGE_ANSWER_TIMEOUT": "-1s"},
			[]string{
				`EDGE_SERVICES is "entries=:80"; allowed: name=host:port`,
				`EDGE_KEYS is "[redacted]"; allowed: keys of 16`, `EDGE_EXCLUDE is "listTables"; allowed: a list of listEntries`, "EDGE_ANSWER_TIMEOUT",
			},
		},
		{"an unknown service", map[string]string{"EDGE_SERVICES": "tables=a:80"}, []string{`EDGE_SERVICES is "tables=a:80"`}},
		{"no port", map[string]string{"EDGE_SERVICES": "region=a"}, []string{`EDGE_SERVICES is "region=a"`}},
		{"twice", map[string]string{"EDGE_SERVICES": "proxy=a:1,proxy=b:1"}, []string{`EDGE_SERVICES is "proxy=b:1"`}},
		{"a key with a space", map[string]string{"EDGE_KEYS": key + ",a key of two words"}, []string{`EDGE_KEYS is "[redacted]"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var cfg app.Config
			err := config.Load(&cfg, tt.in)
			if len(tt.want) == 0 && err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), "\n  "+want) {
					t.Errorf("%q is not reported in: %v", want, err)
				}
			}
		})
	}
}

// TestServicesSeeTheClient checks that the edge tells services the client's address, scheme and host, as the edge
// determined them.
func TestServicesSeeTheClient(t *testing.T) {
	var got http.Header
	var host string
	see := func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		got, host = r.Header, r.Host
		w.Header().Set("X-Request-Id", r.Header.Get("X-Request-Id"))
	}
	outside := start(t, nil, see, routes.Entries)
	behind := start(t, map[string]string{"TRUSTED_PROXIES": "127.0.0.0/8", "EDGE_KEYS": key + ",a-further-key-012345"}, see, routes.Entries)
	named := start(t, map[string]string{"PUBLIC_URL": "https://api.example.com/base"}, see, routes.Entries)
	for _, tt := range []struct {
		name                     string
		edge                     running
		address, proto, sentHost string
	}{
		{"direct", outside, "127.0.0.1", "https", "api.internal"}, // anyone may raise the scheme
		{"behind a trusted proxy", behind, "6.6.6.6", "https", "evil.example"},
		{"with a public URL", named, "127.0.0.1", "https", "api.example.com"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := newRequest(t, http.MethodGet, tt.edge.url+"/projects/p/entries", nil)
			req.Host = "api.internal"
			for name, value := range map[string]string{
				"X-Forwarded-For": "1.1.1.1, 6.6.6.6", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https",
				"Lectern-Edge-Key": key, "X-Request-Id": "abc-1", "X-Api-Key": "rk_1", "Accept-Encoding": "br",
				"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
			} {
				req.Header.Set(name, value)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			want := http.Header{
				"X-Forwarded-For": {tt.address}, "X-Forwarded-Host": {tt.sentHost}, "X-Forwarded-Proto": {tt.proto},
				"Lectern-Edge-Key": {key}, "X-Request-Id": {"abc-1"}, "X-Api-Key": {"rk_1"}, "Accept-Encoding": {"br"},
				"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "User-Agent": {"Go-http-client/1.1"},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if host != "api.internal" {
				t.Errorf("Host %q", host)
			}
			if ids := resp.Header["X-Request-Id"]; len(ids) != 1 || ids[0] != "abc-1" {
				t.Errorf("X-Request-Id %q", ids)
			}
		})
	}
	if log := behind.log.String() + outside.log.String(); strings.Contains(log, key) {
		t.Errorf("the key is in the log:\n%s", log)
	}
}

func TestStreamsAndCuts(t *testing.T) {
	proceed := make(chan struct{})
	r := start(t, nil, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		w.(http.Flusher).Flush()
		<-proceed
		panic(http.ErrAbortHandler)
	}, routes.Entries)
	resp, err := http.Get(r.url + "/projects/pr_1/entries?secret=canary")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer := bufio.NewReader(resp.Body)
	// The service continues only after this line was read, so the edge must not buffer it.
	if line, err := answer.ReadString('\n'); err != nil || line != "first\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	// In HTTP/1.0 the end of the connection is the end of the body, so only a reset shows the fault.
	old := faulttest.Dial(t, r.url)
	old.Say("GET /projects/pr_1/entries HTTP/1.0\r\n\r\n")
	close(proceed)
	if rest, err := io.ReadAll(answer); err == nil {
		t.Errorf("a broken answer looks complete; the rest was %q", rest)
	}
	if all, err := io.ReadAll(old); err == nil {
		t.Errorf("a broken answer looks complete in HTTP/1.0: %q", all)
	}
	_ = r.stop()
	if line := r.log.String(); !strings.Contains(line, `"aborted":true`) || !strings.Contains(line, `"route":"/projects/{projectId}/entries"`) || strings.Contains(line, "canary") {
		t.Errorf("logged %s", line)
	}
}

// TestClientDisconnects checks that the service's request is cancelled when the client disconnects.
func TestClientDisconnects(t *testing.T) {
	for _, begun := range []bool{false, true} {
		ended := make(chan struct{})
		entered := make(chan struct{})
		r := start(t, nil, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
			if begun {
				_ = http.NewResponseController(w).Flush()
			}
			close(entered)
			<-r.Context().Done()
			close(ended)
		}, routes.Entries)
		conn := faulttest.Dial(t, r.url)
		conn.Say("GET /projects/p/entries HTTP/1.1\r\nHost: x\r\n\r\n")
		<-entered
		_ = conn.Close()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Errorf("answer begun: %v: the service goes on", begun)
		}
		_ = r.stop()
		if log := r.log.String(); strings.Contains(log, "request failed") || !strings.Contains(log, `"aborted":true`) {
			t.Errorf("answer begun: %v: the log: %s", begun, log)
		}
	}
}

func TestServiceGivesNoAnswer(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	defer close(hang)
	dying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	}))
	defer dying.Close()
	hanging := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer hanging.Close()
	r := run(t, map[string]string{"EDGE_ANSWER_TIMEOUT": "2s"}, map[routes.Service]string{
		routes.Entries: needs.Address(t), routes.Embeddables: dying.Listener.Addr().String(), routes.Proxy: dying.Listener.Addr().String(),
		routes.Experiments: hanging.Listener.Addr().String(),
	})
	const away = "The service cannot answer right now. Try again shortly."
	for _, tt := range []struct {
		name, method, path string
		status             int
		body               string
		retry              string
	}{
		{"it does not listen", "GET", "/projects/pr_1/entries", 503, body("unavailable", away, `,"projectId":"pr_1"`), "1"},
		{"it ends the connection", "GET", "/projects/pr_1/embeddables", 503, body("unavailable", away, `,"projectId":"pr_1"`), "1"},
		{"it does not answer", "GET", "/projects/pr_1/experiments", 504, body("upstream_timeout", "The service did not answer in time.", ""), ""},
		// The target may have received the request, so a retry may repeat its effect.
		{"the proxy ends the connection", "POST", "/proxy?url=a", 502, body("upstream_unreachable", "The proxy ended the connection before it answered. The target may have received the request.", ""), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, err := http.DefaultClient.Do(newRequest(t, tt.method, r.url+tt.path, nil))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != tt.status || string(got) != tt.body || resp.Header.Get("Retry-After") != tt.retry {
				t.Errorf("got %d %v %s", resp.StatusCode, resp.Header, got)
			}
			if ids := resp.Header["X-Request-Id"]; len(ids) != 1 {
				t.Errorf("X-Request-Id: %q", ids)
			}
			if success := resp.Header.Get("X-Proxy-Worker-Success"); (success == "false") != (tt.status == 502) {
				t.Errorf("X-Proxy-Worker-Success: %q", success)
			}
		})
	}
	if resp, _ := get(t, r.internal+"/readyz"); resp.StatusCode != http.StatusOK {
		t.Errorf("/readyz: %d; an unreachable service must not make the edge unready", resp.StatusCode)
	}
	_, metrics := get(t, r.internal+"/metrics")
	for service, want := range map[string]int{"entries": 1, "embeddables": 1, "proxy": 1, "experiments": 0} {
		if got := strings.Contains(metrics, fmt.Sprintf(`lectern_edge_unreachable_total{service=%q} 1`, service)); got != (want == 1) {
			t.Errorf("%s is not counted %d times:\n%s", service, want, metrics)
		}
	}
	if !strings.Contains(metrics, `http_route="/projects/{projectId}/entries"`) {
		t.Error("the metrics do not name the route")
	}
}

// TestAnswersMayTakeLong checks that EDGE_ANSWER_TIMEOUT only limits the wait for headers. A body may take longer in
// both directions.
func TestAnswersMayTakeLong(t *testing.T) {
	t.Parallel()
	const part = 1100 * time.Millisecond // two parts take longer than the time-out: only time shows that it does not end them
	r := start(t, map[string]string{"EDGE_ANSWER_TIMEOUT": "2s"}, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for range 2 {
			_, _ = io.WriteString(w, "part\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(part)
		}
	}, routes.Region)
	upload, write := io.Pipe()
	go func() {
		for range 2 {
			_, _ = io.WriteString(write, "part\n")
			time.Sleep(part)
		}
		_ = write.Close()
	}()
	resp, err := http.DefaultClient.Do(newRequest(t, http.MethodPost, r.url+"/api/projects/region", upload))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != strings.Repeat("part\n", 2) {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestWaitsHaveAPlaceOfTheirOwn checks that requests that wait for changes do not count in MAX_IN_FLIGHT. One client network
// cannot take the places of others, whatever project is in its paths.
func TestWaitsHaveAPlaceOfTheirOwn(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	r := start(t, map[string]string{"MAX_IN_FLIGHT": "1", "MAX_WAITING": "16", "TRUSTED_PROXIES": "private"}, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("wait") {
			entered <- struct{}{}
			<-leave
		}
	}, routes.Entries)
	gateway := r.gateway(t)
	var waiting sync.WaitGroup
	wait := func(client, project string) {
		waiting.Go(func() {
			if status, text := gateway(client, "/projects/"+project+"/entries-changes?wait=60"); status != http.StatusOK {
				t.Errorf("a wait of %s: %d %s", client, status, text)
			}
		})
		<-entered
	}
	wait("203.0.113.1", "pr_1")
	wait("203.0.113.1", "pr_2")
	if status, text := gateway("203.0.113.1", "/projects/pr_3/entries-changes?wait=60"); status != http.StatusTooManyRequests || !strings.Contains(text, "this client") {
		t.Errorf("a third wait of one client: %d %s", status, text)
	}
	wait("203.0.113.2", "pr_1")
	if status, text := gateway("203.0.113.1", "/projects/pr_1/entries"); status != http.StatusOK {
		t.Errorf("a request next to the waits: %d %s", status, text)
	}
	close(leave)
	waiting.Wait()
}

// TestStopEndsWaits checks that a stopping edge answers requests that wait for changes, and cuts none. The answer has the cursor
// of a request that does not wait.
func TestStopEndsWaits(t *testing.T) {
	entered := make(chan struct{})
	r := start(t, nil, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("wait") == "60" {
			entered <- struct{}{}
			<-r.Context().Done()
			return
		}
		w.Header().Set("X-Next-Cursor", "next of "+r.URL.Query().Get("cursor"))
		_, _ = io.WriteString(w, "[]")
	}, routes.Entries)
	var waiting sync.WaitGroup
	for range 20 {
		waiting.Go(func() {
			resp, text := get(t, r.url+"/projects/pr_1/entries-changes?cursor=c+1&wait=60")
			if resp.StatusCode != http.StatusOK || text != "[]" || resp.Header.Get("X-Next-Cursor") != "next of c 1" {
				t.Errorf("%d %v %s", resp.StatusCode, resp.Header, text)
			}
		})
		<-entered
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	waiting.Wait()
}

// TestOneNetwork checks that one client network has an eighth of the requests in flight. A trusted proxy names it; a
// client of internal paths is its own peer.
func TestOneNetwork(t *testing.T) {
	for _, tt := range []struct {
		name    string
		environ map[string]string
		path    string
		same    [3]string // addresses of one network
		another string
	}{
		{"public", map[string]string{"TRUSTED_PROXIES": "127.0.0.0/8"}, "/projects/pr_1/entries", [3]string{"2001:db8::1", "2001:db8::2", "2001:db8::3"}, "2001:db8:0:1::1"},
		{"behind a gateway in a private network", map[string]string{"TRUSTED_PROXIES": "private"}, "/projects/pr_1/entries", [3]string{"203.0.113.1", "203.0.113.1", "203.0.113.1"}, "203.0.113.2"},
		{"internal", map[string]string{"EDGE_PATHS": "internal"}, "/internal/entries", [3]string{"127.0.0.1", "127.0.0.1", "127.0.0.1"}, "127.0.0.2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			entered, leave := make(chan struct{}), make(chan struct{})
			tt.environ["MAX_IN_FLIGHT"], tt.environ["PUBLIC_URL"] = "16", "https://api.example.com"
			r := start(t, tt.environ, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("slow") {
					entered <- struct{}{}
					<-leave
				}
			}, routes.Entries)
			from := func(address, query string) int {
				transport := &http.Transport{DisableKeepAlives: true}
				req := newRequest(t, http.MethodPost, r.url+tt.path+query, nil)
				if ip := net.ParseIP(address); ip.IsLoopback() {
					transport.DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: ip}}).DialContext
				} else {
					req.Header.Set("X-Forwarded-For", address)
					if tt.environ["TRUSTED_PROXIES"] == "private" {
						transport.DialContext = r.peers.Dialer("10.0.0.5").DialContext
					}
				}
				resp, err := transport.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return 0
				}
				_ = resp.Body.Close()
				return resp.StatusCode
			}
			var running sync.WaitGroup
			for _, address := range tt.same[:2] {
				running.Go(func() {
					if status := from(address, "?slow"); status != http.StatusOK {
						t.Errorf("a request within the share: %d", status)
					}
				})
				<-entered
			}
			if status := from(tt.same[2], ""); status != http.StatusTooManyRequests {
				t.Errorf("a third of the same network: %d", status)
			}
			if status := from(tt.another, ""); status != http.StatusOK {
				t.Errorf("another network: %d", status)
			}
			close(leave)
			running.Wait()
			if log := r.log.String(); strings.Contains(log, "TRUSTED_PROXIES is not") {
				t.Errorf("it warns that it does not know its clients: %s", log)
			}
		})
	}
}
