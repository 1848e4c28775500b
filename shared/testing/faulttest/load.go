package faulttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// Load repeats the same requests to a service from several clients. It compares every answer with the one that the
// service sent without a fault. An answer is good if it is 200 with exactly that body. It is refused if it is 503 or
// 429 in the API's error format with Retry-After, and contains no address. A 422 of a question that took too long is
// refused, too: the service cannot know whether the question is large or the database hangs. An answer is broken if there
// was no connection, or the connection ended before the answer was complete. Any other answer is wrong: another status,
// another body, half a body that looked complete.
type Load struct {
	t      testing.TB
	url    string
	o      LoadOptions
	want   map[string][]byte // bodies by path
	client *http.Client

	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	report Report
	last   time.Time // when the last good answer arrived
	marks  int       // good answers since the last Mark
}

// LoadOptions configures a Load.
type LoadOptions struct {
	Key     string
	Paths   []string
	Method  string        // GET when empty
	Body    string        // of each request; JSON
	Clients int           // at once; 4 when 0
	Pause   time.Duration // between a client's answers; 10 ms when 0, none when negative

	// Timeout is the time-out of a client, 2 min when 0. A time-out is a wrong answer.
	Timeout time.Duration
}

// Report is the summary of the answers to all clients.
type Report struct {
	Good, Refused, Broken int
	Statuses              map[int]int
	Wrong                 []string        // descriptions of the first wrong answers
	Gap                   time.Duration   // the longest time without a good answer
	Latencies             []time.Duration // of good answers, ascending
	Refusals              []time.Duration // the durations of refusals, ascending
}

// Quantile returns a quantile of durations in ascending order, or 0 if there are none.
func Quantile(ascending []time.Duration, q float64) time.Duration {
	if len(ascending) == 0 {
		return 0
	}
	return ascending[min(int(q*float64(len(ascending))), len(ascending)-1)]
}

// String returns the report in one line.
func (r Report) String() string {
	return fmt.Sprintf("%d good (p50 %v, p99 %v, max %v), %d refused (max %v), %d broken, statuses %v, longest gap %v",
		r.Good, Quantile(r.Latencies, 0.5), Quantile(r.Latencies, 0.99), Quantile(r.Latencies, 1),
		r.Refused, Quantile(r.Refusals, 1), r.Broken, r.Statuses, r.Gap)
}

// loopback is the address of all servers of tests. No answer may contain it.
const loopback = "127.0.0.1"

// Start requests each path until the answer is 200, and then all of them until [Load.Stop].
func Start(t testing.TB, url string, o LoadOptions) *Load {
	t.Helper()
	if o.Method == "" {
		o.Method = http.MethodGet
	}
	if o.Clients == 0 {
		o.Clients = 4
	}
	if o.Pause == 0 {
		o.Pause = 10 * time.Millisecond
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: o.Clients}
	l := &Load{
		t: t, url: url, o: o, want: map[string][]byte{},
		client: &http.Client{Transport: transport, Timeout: o.Timeout},
		report: Report{Statuses: map[int]int{}}, last: time.Now(),
	}
	for _, path := range o.Paths {
		eventually.Succeeds(t, path+" is answered before the fault", func() error {
			status, _, body, err := l.get(t.Context(), path)
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("%d: %.200q", status, body)
			}
			l.want[path] = body
			return err
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	for i := range o.Clients {
		l.running.Go(func() { l.run(ctx, i) })
	}
	t.Cleanup(func() { cancel(); l.running.Wait(); transport.CloseIdleConnections() })
	return l
}

// Stop ends the load when the requests in flight are answered, and returns the report.
func (l *Load) Stop() Report {
	l.cancel()
	l.running.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report.Gap = max(l.report.Gap, time.Since(l.last))
	slices.Sort(l.report.Latencies)
	slices.Sort(l.report.Refusals)
	return l.report
}

// Await waits until the next n answers in a row of all clients are good, and returns the elapsed time.
func (l *Load) Await(n int) time.Duration {
	l.t.Helper()
	l.mu.Lock()
	l.marks = 0
	l.mu.Unlock()
	return eventually.True(l.t, fmt.Sprintf("%d good answers in a row", n), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.marks >= n
	})
}

// Seen returns the counts so far.
func (l *Load) Seen() (good, refused, broken int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.report.Good, l.report.Refused, l.report.Broken
}

func (l *Load) run(ctx context.Context, first int) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := first; ctx.Err() == nil; i++ {
		l.ask(l.o.Paths[i%len(l.o.Paths)])
		if l.o.Pause > 0 {
			timer.Reset(l.o.Pause)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
	}
}

// ask sends one request. The end of the load does not cancel it.
func (l *Load) ask(path string) {
	begin := time.Now()
	status, header, body, err := l.get(context.Background(), path)
	took := time.Since(begin)
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.report
	wrong := func(format string, args ...any) {
		l.marks = 0
		if len(r.Wrong) < 10 {
			r.Wrong = append(r.Wrong, path+": "+fmt.Sprintf(format, args...))
		}
	}
	var timeout interface{ Timeout() bool }
	if err != nil {
		if errors.As(err, &timeout) && timeout.Timeout() {
			wrong("no answer within %v", l.o.Timeout)
			return
		}
		r.Broken++
		l.marks = 0
		return
	}
	r.Statuses[status]++
	switch status {
	case http.StatusOK:
		if !bytes.Equal(body, l.want[path]) {
			wrong("another body, of %d bytes for %d: %.200q", len(body), len(l.want[path]), body)
			return
		}
		r.Good++
		l.marks++
		r.Latencies = append(r.Latencies, took)
		now := time.Now()
		r.Gap = max(r.Gap, now.Sub(l.last))
		l.last = now
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusUnprocessableEntity:
		var e struct {
			Error struct{ Code, Message string }
		}
		tooLarge := status == http.StatusUnprocessableEntity
		if json.Unmarshal(body, &e) != nil || e.Error.Code == "" || e.Error.Message == "" || tooLarge != (header.Get("Retry-After") == "") ||
			tooLarge && e.Error.Code != string(apierr.QuestionTooLarge) {
			wrong("%d without Retry-After or the error shape: %.200q", status, body)
			return
		}
		if bytes.Contains(body, []byte(loopback)) {
			wrong("%d says too much: %.200q", status, body)
			return
		}
		r.Refused++
		l.marks = 0
		r.Refusals = append(r.Refusals, took)
	default:
		wrong("%d: %.200q", status, body)
	}
}

func (l *Load) get(ctx context.Context, path string) (status int, header http.Header, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, l.o.Method, l.url+path, strings.NewReader(l.o.Body))
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("X-Api-Key", l.o.Key)
	if l.o.Body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, body, err
}

// Merge returns one report of several loads that ran at the same time. Its gap is the longest of all.
func Merge(reports ...Report) Report {
	all := Report{Statuses: map[int]int{}}
	for _, r := range reports {
		all.Good, all.Refused, all.Broken = all.Good+r.Good, all.Refused+r.Refused, all.Broken+r.Broken
		all.Wrong = append(all.Wrong, r.Wrong...)
		all.Gap = max(all.Gap, r.Gap)
		all.Latencies, all.Refusals = append(all.Latencies, r.Latencies...), append(all.Refusals, r.Refusals...)
		for status, n := range r.Statuses {
			all.Statuses[status] += n
		}
	}
	slices.Sort(all.Latencies)
	slices.Sort(all.Refusals)
	return all
}

// Check fails t for wrong answers and missing good ones, which no fault excuses. It logs the report.
func (r Report) Check(t testing.TB, fault string) {
	t.Helper()
	t.Logf("%s: %v", fault, r)
	if len(r.Wrong) > 0 {
		t.Errorf("%s: wrong answers:\n%s", fault, strings.Join(r.Wrong, "\n"))
	}
	if r.Good == 0 {
		t.Errorf("%s: nothing was answered", fault)
	}
}
