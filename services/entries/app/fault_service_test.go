package app

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// process runs the service as a process with 20,000 entries.
func process(t *testing.T, environ map[string]string) (*servicetest.Process, string) {
	t.Helper()
	p := servicetest.StartProcess(t, servicetest.NewBacking(t, store.Schema()), servicetest.Self(t), environ)
	fill(t, &p.Service, project, 20_000)
	return p, p.Keys.Key(project)
}

// TestTerminateUnderLoad sends SIGTERM to a service under load. During the drain delay the service serves as before. It
// also completes a long list for a slow reader, and exits with code 0. The load ends within the delay, as in a cluster,
// which routes clients to other pods by then. The delay is long, so that a busy machine sends enough requests.
func TestTerminateUnderLoad(t *testing.T) {
	t.Parallel()
	p, key := process(t, map[string]string{"DRAIN_DELAY": "10s", "DRAIN_TIMEOUT": "5m"})
	load := faulttest.Start(t, p.URL, faulttest.LoadOptions{Key: key, Paths: underLoad})
	load.Await(20)
	slow := faulttest.Dial(t, p.URL)
	_ = slow.SetReadBuffer(64 << 10)
	slow.Say("GET /projects/pr_1/entries?limit=20000 HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + key + "\r\n\r\n")
	begun := make([]byte, 1000)
	if _, err := io.ReadFull(slow, begun); err != nil || !strings.HasPrefix(string(begun), "HTTP/1.1 200") {
		t.Fatalf("%q, %v", begun, err)
	}
	code := make(chan int, 1)
	go func() { code <- p.Terminate() }()
	eventually.True(t, "it reports that it is draining", func() bool {
		return p.DoInternal(t, servicetest.Request{Path: "/readyz"}).Status == 503
	})
	load.Await(5)
	report := load.Stop()
	report.Check(t, "SIGTERM")
	if report.Broken > 0 || report.Refused > 0 {
		t.Errorf("requests were lost: %v", report)
	}
	eventually.True(t, "no new connections are taken", func() bool {
		return strings.Contains(p.Log(), `"msg":"stopped"`) || !answers(p.URL)
	})
	rest, err := io.ReadAll(slow)
	if err != nil || !strings.HasSuffix(string(rest), "]\n\r\n0\r\n\r\n") {
		t.Errorf("the slow reader's list: %d bytes, %v", len(rest), err)
	}
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
}

// answers reports whether a connection is accepted.
func answers(url string) bool {
	c, err := dialOnce(url)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// TestOutOfFiles checks that a service without free file descriptors still serves connected clients. It serves all
// clients once descriptors are free again.
func TestOutOfFiles(t *testing.T) {
	t.Parallel()
	p, key := process(t, nil)
	load := faulttest.Start(t, p.URL, faulttest.LoadOptions{Key: key, Paths: underLoad, Clients: 2})
	load.Await(50)
	undo := faulttest.LimitFiles(t, p.PID(), uint64(faulttest.OpenFiles(t, p.PID())+10))
	var idle []*faulttest.Raw
	for range 40 { // the kernel completes these connections, but the service cannot accept them
		idle = append(idle, faulttest.Dial(t, p.URL))
	}
	eventually.True(t, "it runs out of files", func() bool {
		return strings.Contains(p.Log(), "too many open files")
	})
	load.Await(50)
	for _, c := range idle {
		c.Close()
	}
	undo()
	eventually.True(t, "newcomers are served", func() bool {
		a := p.Get(t, p.Keys.Key(project), underLoad[0])
		return a.Status == 200
	})
	report := load.Stop()
	report.Check(t, "out of files")
	if report.Broken > 0 {
		t.Errorf("who was connected saw it: %v", report)
	}
}

// TestLongMemoryLimit runs sixteen slow exports at once, with the memory limit close to what the service needs. Memory
// stays bounded, other clients are served, and every export is complete.
func TestLongMemoryLimit(t *testing.T) {
	needs.Long(t)
	p, key := process(t, map[string]string{"GOMEMLIMIT": "80MiB", "ANSWER_MEMORY": "0"})
	whole := p.Get(t, key, "/projects/pr_1/entries?limit=100000")
	if whole.Err != nil || whole.Status != 200 {
		t.Fatalf("%d, %v", whole.Status, whole.Err)
	}
	const readers = 16
	var exports [readers]*faulttest.Raw
	for i := range exports {
		exports[i] = faulttest.Dial(t, p.URL)
		_ = exports[i].SetReadBuffer(64 << 10)
		exports[i].Say("GET /projects/pr_1/entries?limit=100000 HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + key + "\r\n\r\n")
	}
	load := faulttest.Start(t, p.URL, faulttest.LoadOptions{Key: key, Paths: underLoad, Clients: 2})
	load.Await(100)
	var reading sync.WaitGroup
	for i, c := range exports {
		reading.Go(func() {
			_, _, body, err := c.Answer("GET")
			if err != nil || body != string(whole.Body) {
				t.Errorf("export %d: %d bytes of %d, %v", i, len(body), len(whole.Body), err)
			}
		})
	}
	reading.Wait()
	report := load.Stop()
	report.Check(t, "memory limit")
	if report.Broken > 0 || report.Refused > 0 {
		t.Errorf("others saw it: %v", report)
	}
	_, peak := p.Memory(t)
	t.Logf("peak %d MiB", peak>>20)
	if peak > 128<<20 {
		t.Errorf("peak memory %d MiB, with a limit of 80", peak>>20)
	}
}

// TestLongOverload runs ten times as many clients as the service can serve. All admitted requests are served, the
// others are refused, and /healthz answers. After the overload the service works as before.
func TestLongOverload(t *testing.T) {
	needs.Long(t)
	const slots = 16 // of the project, which has an eighth of all
	// Admitted requests must succeed, even if the machine stops for a second.
	p, key := process(t, map[string]string{"MAX_IN_FLIGHT": fmt.Sprint(8 * slots), "DATABASE_MAX_CONNS": "4", "DATABASE_ACQUIRE_TIMEOUT": "10s"})
	paths := underLoad[:4]
	before := faulttest.Start(t, p.URL, faulttest.LoadOptions{Key: key, Paths: paths, Clients: slots, Pause: -1})
	before.Await(500)
	calm := before.Stop()
	calm.Check(t, "as much as it can take")
	if calm.Refused > 0 {
		t.Errorf("%d refused within the limit", calm.Refused)
	}
	load := faulttest.Start(t, p.URL, faulttest.LoadOptions{Key: key, Paths: paths, Clients: 10 * slots, Pause: -1})
	eventually.True(t, "there are enough answers", func() bool { good, refused, _ := load.Seen(); return good > 500 && refused > 500 })
	for range 5 {
		checkHealth(t, &p.Service, "under overload")
	}
	report := load.Stop()
	report.Check(t, "ten times as much")
	if report.Broken > 0 {
		t.Errorf("%d were broken off", report.Broken)
	}
	after := faulttest.Start(t, p.URL, faulttest.LoadOptions{Key: key, Paths: paths, Clients: 4})
	took := after.Await(100)
	again := after.Stop()
	again.Check(t, "afterwards")
	if again.Refused > 0 || again.Broken > 0 {
		t.Errorf("afterwards: %v", again)
	}
	t.Logf("100 good answers %v after the overload", took)
}
