package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/routes"
)

// call is one request that load repeats.
type call struct {
	operation, method, path, key, body string
	token                              func() string // in place of key, if it is not nil
	want                               int           // status
	anyBody                            bool          // answers of two versions may differ
}

// load repeats every operation from several clients, and compares each answer with the first one.
type load struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	good   int
	failed []string // the first of them, in words
	faults int
	// busy counts those faults in which a service said that it cannot answer right now.
	busy int
	// statuses counts answers by status; 0 is a connection that ended without one.
	statuses map[int]int
	counts   map[string]int // good ones by operation
	slow     time.Duration  // the slowest good one
}

// everyOperation returns a request for each public operation and each page.
func (r *release) everyOperation() []call {
	values := strings.NewReplacer("{projectId}", "pr_demo", "{entryId}", "ent_00001gzn", "{embeddableId}", "emb_solar7kq2",
		"{versionNumber}", "4", "{experimentId}", "exp_language2tz", "{asset}", "start.js", "{path...}", "entries")
	var calls []call
	for _, route := range routes.Outside() {
		c := call{operation: route.Operation, method: http.MethodGet, path: values.Replace(route.Template), want: http.StatusOK}
		switch route.Operation {
		case "getEntriesFunnel", "getEntriesAnswers":
			c.path += "?embeddable_id=emb_solar7kq2"
		}
		switch route.Auth {
		case routes.APIKey, routes.AnyKey:
			c.key = r.apiKey
		case routes.InternalKey:
			c.method, c.key, c.body = http.MethodPost, r.internalKey, `{"projectId":"pr_demo"}`
		case routes.Endpoint:
			c.want = http.StatusBadRequest // it is given no target
		}
		calls = append(calls, c)
	}
	return calls
}

// startLoad sends each of calls once, which must succeed, and then all of them until stop. pause is the time
// between two requests of a client. It leaves processors to the cluster; with 0, the load takes all that it gets.
func startLoad(t testing.TB, r *release, clients int, pause time.Duration, calls []call) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{cancel: cancel, counts: map[string]int{}, statuses: map[int]int{}}
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	t.Cleanup(func() { cancel(); l.done.Wait(); transport.CloseIdleConnections() })
	want := make([][]byte, len(calls))
	for i, c := range calls {
		status, body, err := c.do(ctx, client, r.url)
		if err != nil || status != c.want {
			t.Fatalf("before the load: %s: %d, %v: %.200s", c.operation, status, err, body)
		}
		want[i] = body
	}
	for n := range clients {
		l.done.Go(func() {
			for i := n; ctx.Err() == nil; i++ {
				c := calls[i%len(calls)]
				started := time.Now()
				status, body, err := c.do(ctx, client, r.url)
				if ctx.Err() != nil {
					return
				}
				l.note(c, status, body, want[i%len(calls)], err, time.Since(started))
				rest(ctx, pause)
			}
		})
	}
	return l
}

// do sends the request.
func (c call) do(ctx context.Context, client *http.Client, url string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, c.method, url+c.path, strings.NewReader(c.body))
	if err != nil {
		return 0, nil, err
	}
	if c.key != "" {
		req.Header.Set("X-Api-Key", c.key)
	}
	if c.token != nil {
		req.Header.Set("Authorization", "Bearer "+c.token())
	}
	if c.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

func (l *load) note(c call, status int, body, want []byte, err error, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		status = 0
	}
	l.statuses[status]++
	if err == nil && status == c.want && (c.anyBody || bytes.Equal(body, want)) {
		l.good++
		l.counts[c.operation]++
		l.slow = max(l.slow, took)
		return
	}
	l.faults++
	if status == http.StatusServiceUnavailable && bytes.Contains(body, []byte(`"code":"unavailable"`)) {
		l.busy++
	}
	if len(l.failed) < 10 {
		l.failed = append(l.failed, fmt.Sprintf("%s %s: %d, %v: %.200s", time.Now().UTC().Format(time.TimeOnly), c.operation, status, err, body))
	}
}

// answered returns the number of good answers and of others.
func (l *load) answered() (good, faults int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.good, l.faults
}

// stop ends the load.
func (l *load) stop() {
	l.cancel()
	l.done.Wait()
}

// mustBeClean ends the load. The test fails if a request failed, or if there were fewer than atLeast. A service may ask for
// another try in one request of 100. Pods that start use all processors of a small node, and a connection to the database
// may then take seconds.
func (l *load) mustBeClean(t testing.TB, atLeast int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d requests", atLeast), func() error {
		if good, faults := l.answered(); good+faults < atLeast {
			return fmt.Errorf("%d so far", good+faults)
		}
		return nil
	})
	l.stop()
	if l.faults > l.busy || l.busy*100 > l.good {
		t.Errorf("%d of %d requests failed, %d of them for now:\n%s", l.faults, l.good+l.faults, l.busy, strings.Join(l.failed, "\n"))
	}
	var fewest []int
	for _, n := range l.counts {
		fewest = append(fewest, n)
	}
	t.Logf("%d requests of %d operations, at least %d of each, %d failed, %d of them for now; the slowest took %v",
		l.good+l.faults, len(l.counts), slices.Min(fewest), l.faults, l.busy, l.slow.Round(time.Millisecond))
}

// rest pauses a client between two requests.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
