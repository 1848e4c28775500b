package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// The memory limits of the pods, by the chart's defaults.
const (
	entriesMemory = 256 << 20
	edgeMemory    = 512 << 20
)

const (
	hostile        = "pr_hostile"
	hostileNetwork = "192.0.2.1"

	// retryRefused is how long a hostile client waits after a refusal. Otherwise it would take the machine from the others
	// by the number of its requests alone.
	retryRefused = 5 * time.Second
)

// pods are the edge and the service behind it, with the limits of their pods.
type pods struct {
	t             testing.TB
	entries, edge *servicetest.Process
	key           string // of the hostile project
}

func startPods(t testing.TB) *pods {
	t.Helper()
	const edgeKey = "edge-key-0123456789abcdef"
	limit := func(bytes int64) string { return fmt.Sprint(bytes / 10 * 9) } // as the chart sets it
	p := &pods{t: t}
	b := servicetest.NewBacking(t, store.Schema())
	p.entries = servicetest.StartProcess(t, b, servicetest.Self(t), map[string]string{
		"GOMEMLIMIT": limit(entriesMemory), "GOMAXPROCS": "2", "EDGE_KEYS": edgeKey, "RATE_LIMIT": "1000", "ANON_RATE_LIMIT": "200", "LOG_LEVEL": "info",
		"DATABASE_ACQUIRE_TIMEOUT": "1m", // a busy machine is no failure
	})
	p.edge = servicetest.StartProcess(t, b, servicetest.Build(t, "../../edge/cmd/edge"), map[string]string{
		"GOMEMLIMIT": limit(edgeMemory), "GOMAXPROCS": "2", "EDGE_KEYS": edgeKey, "MAX_IN_FLIGHT": "4096", "EDGE_HTTP2": "true",
		"TRUSTED_PROXIES": "127.0.0.0/8", "EDGE_SERVICES": "entries=" + strings.TrimPrefix(p.entries.URL, "http://"), "LOG_LEVEL": "info",
	})
	// The hostile project has records of 8 KiB, as a form with long answers.
	p.entries.Exec(t, `
		INSERT INTO entries
		SELECT $1, 'en_' || lpad(i::text, 7, '0'), 'gr_1', 'emb_1', 'co_1', '2022-01-01Z', '2022-01-01Z'::timestamptz + i * interval '1 s',
		       '{"n":"' || repeat(md5(i::text), 245) || '"}', i
		FROM generate_series(1, 5000) i`, hostile)
	p.entries.Exec(t, `INSERT INTO project_changes (project_id, last_seq) VALUES ($1, 5000)`, hostile)
	p.key = b.Keys.Key(hostile)
	return p
}

// visitor is a client of another project. It asks for a list or a record at fixed times, however long answers take. As the
// clients of Lectern do, it asks again if there is no answer.
type visitor struct {
	mu        sync.Mutex
	statuses  map[int]int // 0: no whole answer
	latencies []time.Duration
	faults    []error // of requests without a whole answer
	row       int     // good answers in a row
	cancel    context.CancelFunc
	asking    sync.WaitGroup
}

func (p *pods) visit(project, network string, every time.Duration) *visitor {
	ctx, cancel := context.WithCancel(context.Background())
	v := &visitor{statuses: map[int]int{}, cancel: cancel}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	client := &http.Client{Transport: transport, Timeout: 2 * time.Minute}
	key := p.entries.Keys.Key(project)
	ticker := time.NewTicker(every)
	v.asking.Go(func() {
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			path := "/projects/" + project + "/entries?limit=10"
			if i%2 == 0 {
				path = fmt.Sprintf("/projects/%s/entries/en_%07d", project, 1+i%100)
			}
			v.asking.Go(func() {
				begin := time.Now()
				status, err := ask(context.Background(), client, p.edge.URL+path, key, network)
				// On a busy machine, a connection may not be accepted, or its request not be read, in the time that the edge allows.
				for try := 1; try < 3 && (err != nil || status == http.StatusServiceUnavailable); try++ {
					status, err = ask(context.Background(), client, p.edge.URL+path, key, network)
				}
				v.mu.Lock()
				defer v.mu.Unlock()
				if err != nil {
					v.faults = append(v.faults, err)
				}
				v.statuses[status]++
				v.latencies = append(v.latencies, time.Since(begin))
				if v.row++; status != 200 {
					v.row = 0
				}
			})
		}
	})
	p.t.Cleanup(func() { v.stop(); transport.CloseIdleConnections() })
	return v
}

func (v *visitor) stop() { v.cancel(); v.asking.Wait() }

// ask requests url and reads the answer. ask returns the status, or why there was no whole answer.
func ask(ctx context.Context, client *http.Client, url, key, network string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("X-Api-Key", key)
	r.Header.Set("X-Forwarded-For", network)
	resp, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, err
	}
	return resp.StatusCode, nil
}

// many runs f n times at once and repeatedly, until ctx ends, with a pause between. They begin one after the other within
// a pause.
func many(ctx context.Context, n int, pause time.Duration, f func(i int)) {
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			for next := pause * time.Duration(i) / time.Duration(n); ; next = pause {
				select {
				case <-ctx.Done():
					return
				case <-time.After(next):
					f(i)
				}
			}
		})
	}
	running.Wait()
}

// clients returns n clients that each have their own connections.
func clients(n int, version2 bool) []*http.Client {
	all := make([]*http.Client, n)
	for i := range all {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(!version2)
		protocols.SetUnencryptedHTTP2(version2)
		all[i] = &http.Client{Transport: &http.Transport{Protocols: protocols, DisableCompression: true, MaxIdleConnsPerHost: 64}}
	}
	return all
}

func (p *pods) feed(more string) string {
	return p.edge.URL + "/projects/" + hostile + "/entries-changes?after=now&" + more
}

// waitsAfterLists reads 200 long lists at once, then waits 200 times, over and over.
func (p *pods) waitsAfterLists(ctx context.Context) {
	all := clients(200, false)
	for ctx.Err() == nil {
		var lists sync.WaitGroup
		for _, c := range all {
			lists.Go(func() {
				_, _ = ask(ctx, c, p.edge.URL+"/projects/"+hostile+"/entries?limit=500", p.key, hostileNetwork)
			})
		}
		lists.Wait()
		waiting, cancel := context.WithTimeout(ctx, 3*time.Second)
		many(waiting, len(all), time.Second, func(i int) { _, _ = ask(waiting, all[i], p.feed("wait=60"), p.key, hostileNetwork) })
		cancel()
	}
}

// waits tries to hold 4,352 waits over 17 connections.
func (p *pods) waits(ctx context.Context) {
	all := clients(17, true)
	many(ctx, 17*256, retryRefused, func(i int) { _, _ = ask(ctx, all[i%17], p.feed("wait=60"), p.key, hostileNetwork) })
}

// wakes has 2,000 requests wait for changes, half of them for kinds that do not come, and sends a change each 200 ms.
func (p *pods) wakes(ctx context.Context) {
	var changing sync.WaitGroup
	changing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			p.entries.MustIngest(p.t, "entries", newEntry(hostile, "en_wake", time.Now().Add(time.Duration(i))))
			time.Sleep(200 * time.Millisecond) // the rate of this attack, and no wait for a state
		}
	})
	all := clients(20, true)
	many(ctx, 2000, 100*time.Millisecond, func(i int) {
		if status, _ := ask(ctx, all[i%20], p.feed("wait=60&types="+[]string{"entry", "entry_removed"}[i%2]), p.key, hostileNetwork); status != 200 {
			select { // as a client does, see there
			case <-ctx.Done():
			case <-time.After(retryRefused):
			}
		}
	})
	changing.Wait()
}

// untaken requests path on HTTP/2 streams whose answers it never takes, and requests it again for each that is cut.
func (p *pods) untaken(ctx context.Context, connections, streams int, path, key string) {
	many(ctx, connections, 100*time.Millisecond, func(int) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.edge.URL, "http://"))
		if err != nil {
			return
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		var head bytes.Buffer
		encoder := hpack.NewEncoder(&head)
		framer := http2.NewFramer(conn, conn)
		id := uint32(1)
		open := func() {
			head.Reset()
			for _, f := range [][2]string{
				{":method", "GET"}, {":scheme", "http"}, {":authority", "x"}, {":path", path}, {"x-api-key", key}, {"x-forwarded-for", hostileNetwork},
			} {
				_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
			}
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true})
			id += 2
		}
		_, _ = io.WriteString(conn, http2.ClientPreface)
		_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for range streams {
			open()
		}
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				return
			}
			switch f := frame.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					_ = framer.WriteSettingsAck()
				}
			case *http2.PingFrame:
				if !f.IsAck() {
					_ = framer.WritePing(true, f.Data)
				}
			case *http2.RSTStreamFrame:
				open()
			case *http2.GoAwayFrame:
				return
			}
		}
	})
}

func (p *pods) untakenRefusals(ctx context.Context) {
	p.untaken(ctx, 10, 240, "/projects/"+hostile+"/entries", "nobody's")
}

func (p *pods) untakenPages(ctx context.Context) {
	p.untaken(ctx, 2, 200, "/projects/"+hostile+"/entries?limit=100", p.key)
}

// fiveAtOnce has five projects misbehave at once, each in another way. They have exports that nobody reads, waits,
// filters that select little, wrong keys, and slow uploads.
func (p *pods) fiveAtOnce(ctx context.Context) {
	var running sync.WaitGroup
	raw := func(n int, url, request, drip string) {
		running.Go(func() {
			many(ctx, n, time.Second, func(int) {
				conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
				if err != nil {
					return
				}
				defer conn.Close()
				_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
				for say := request; ctx.Err() == nil; say = drip { // until the server ends the connection
					if _, err := io.WriteString(conn, say); err != nil {
						return
					}
					select {
					case <-ctx.Done():
					case <-time.After(time.Second):
					}
				}
			})
		})
	}
	head := func(path, key, network string) string {
		return path + " HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + key + "\r\nX-Forwarded-For: " + network + "\r\n"
	}
	raw(20, p.edge.URL, head("GET /projects/"+hostile+"/entries?limit=5000", p.key, hostileNetwork)+"\r\n", "")
	raw(200, p.edge.URL, head("GET /projects/pr_2/entries", p.entries.Keys.Key("pr_2"), "192.0.2.12")+"Content-Length: 1000000\r\n\r\n", "x")
	raw(20, p.entries.InternalURL, head("POST /internal/entries", servicetest.IngestKey, "192.0.2.12")+"Content-Length: 1000000\r\n\r\n", "\n")
	repeat := func(n int, pause time.Duration, path, network string, key func() string) {
		running.Go(func() {
			all := clients(20, false)
			many(ctx, n, pause, func(i int) { _, _ = ask(ctx, all[i%20], p.edge.URL+path, key(), network) })
		})
	}
	three, four := p.entries.Keys.Key("pr_3"), p.entries.Keys.Key("pr_4")
	repeat(700, time.Second, "/projects/pr_3/entries-changes?after=now&wait=60", "192.0.2.13", func() string { return three })
	repeat(20, 0, "/projects/pr_4/entries?group_id=nobody", "192.0.2.14", func() string { return four })
	repeat(20, 10*time.Millisecond, "/projects/pr_5/entries", "192.0.2.15", func() string { key, _ := auth.Mint(); return key.Reveal() })
	running.Wait()
}

// anonymous returns the memory of a process in bytes, without the pages of its program, which the kernel can drop.
func (p *pods) anonymous(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		p.t.Error(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	var kilobytes int64
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		p.t.Error(err)
	}
	return kilobytes << 10
}

// peaks samples the memory of both processes until its function is called, and returns the highest.
func (p *pods) peaks() func() (entries, edge int64) {
	done, ended := make(chan struct{}), make(chan [2]int64)
	go func() {
		var most [2]int64
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-done:
				tick.Stop()
				ended <- most
				return
			case <-tick.C:
				for i, process := range []*servicetest.Process{p.entries, p.edge} {
					most[i] = max(most[i], p.anonymous(process.PID()))
				}
			}
		}
	}()
	return func() (int64, int64) { close(done); most := <-ended; return most[0], most[1] }
}

// TestLongAttacks runs attacks of some projects, or of nobody's key, on what requests share. Meanwhile other projects get
// every answer, both processes stay within the memory of their pods, and afterwards the hostile project is served as well.
// LECTERN_ATTACK is how long each attack lasts. The log has the figures.
func TestLongAttacks(t *testing.T) {
	needs.Long(t)
	lasts := 4 * time.Second
	if text := os.Getenv("LECTERN_ATTACK"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	p := startPods(t)
	fill(t, &p.entries.Service, project, 20_000)
	fill(t, &p.entries.Service, "pr_4", 60_000)
	var others []string
	for i := range 45 {
		others = append(others, fmt.Sprintf("pr_other_%d", i))
	}
	p.entries.Exec(t, `
		INSERT INTO entries
		SELECT other, 'en_' || lpad(i::text, 7, '0'), 'gr_1', 'emb_1', 'co_1', '2022-01-01Z', '2022-01-01Z'::timestamptz + i * interval '1 s', '{}', i
		FROM unnest($1::text[]) other, generate_series(1, 200) i`, others)
	load := func() string { b, _ := os.ReadFile("/proc/loadavg"); return string(b[:min(len(b), 14)]) }
	report := func(name string, visitors []*visitor, entries, edge int64) {
		v := visitor{statuses: map[int]int{}}
		for _, one := range visitors {
			one.stop()
			v.latencies, v.faults = append(v.latencies, one.latencies...), append(v.faults, one.faults...)
			for status, n := range one.statuses {
				v.statuses[status] += n
			}
		}
		slices.Sort(v.latencies)
		t.Logf("%s: %v, p50 %v, p99 %v, max %v; entries %d MiB, edge %d MiB; load %s", name, v.statuses, faulttest.Quantile(v.latencies, 0.5),
			faulttest.Quantile(v.latencies, 0.99), faulttest.Quantile(v.latencies, 1), entries>>20, edge>>20, load())
		if good := v.statuses[200]; good != len(v.latencies) {
			t.Errorf("%s: other projects did not get all answers: %v; %v", name, v.statuses, errors.Join(v.faults...))
		}
		if entries > entriesMemory || edge > edgeMemory {
			t.Errorf("%s: memory of entries %d MiB, of the edge %d MiB", name, entries>>20, edge>>20)
		}
	}
	one := []string{project}
	for _, attack := range []struct {
		name   string
		others []string // the projects that are served meanwhile
		run    func(context.Context)
	}{
		{"nothing", one, func(ctx context.Context) { <-ctx.Done() }},
		{"waits after long lists", one, p.waitsAfterLists},
		{"waits", one, p.waits},
		{"changes that wake all", one, p.wakes},
		{"refusals that nobody takes", one, p.untakenRefusals},
		{"pages that nobody takes", one, p.untakenPages},
		{"nothing, with 45 others", others, func(ctx context.Context) { <-ctx.Done() }},
		{"five at once", others, p.fiveAtOnce},
	} {
		t.Run(attack.name, func(t *testing.T) {
			if strings.HasPrefix(attack.name, "nothing") && os.Getenv("LECTERN_ATTACK") == "" {
				t.Skip("its figures are for the comparison with the attacks'")
			}
			memory := p.peaks()
			var visitors []*visitor
			for i, other := range attack.others {
				visitors = append(visitors, p.visit(other, fmt.Sprintf("198.51.100.%d", i), max(100*time.Millisecond, time.Duration(len(attack.others))*11*time.Millisecond)))
			}
			ctx, cancel := context.WithTimeout(t.Context(), lasts)
			defer cancel()
			attack.run(ctx)
			entries, edge := memory()
			report(attack.name, visitors, entries, edge)
			begin := time.Now()
			after := p.visit(project, "192.0.2.2", 100*time.Millisecond)
			defer after.stop()
			c := clients(1, false)[0]
			eventually.True(t, "both projects are served", func() bool {
				after.mu.Lock()
				defer after.mu.Unlock()
				status, _ := ask(t.Context(), c, p.edge.URL+"/projects/"+hostile+"/entries?limit=500", p.key, hostileNetwork)
				return after.row >= 10 && status == 200
			})
			t.Logf("both are served %v after it; another project: %v", time.Since(begin).Round(time.Millisecond), after.statuses)
		})
	}
}
