package clusterpolicy_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// While the API server is unreachable, the last policy stays in force, and the log and metrics show the outage. Changes
// of that time take effect after it.
func TestOutage(t *testing.T) {
	c := newCluster(t)
	way, kube := newRelay(t, c.asProxy(t))
	p := startProxy(t, c, kube, nil)
	token := secret("stripe", canary)
	c.create(t, token, credential("stripe", p.project, "cred_stripe"), p.third.endpoint("shop", p.project, "/a", "cred_stripe"))
	p.awaitReady(t)
	p.awaitSent(t, "/a", "cred_stripe", canary)

	way.interrupt()
	eventually.True(t, "/readyz says so", func() bool { _, checks := p.ready(t); return checks["policy"] == "failing" })
	if status, checks := p.ready(t); status != http.StatusOK || checks["loaded"] != "ok" {
		t.Errorf("with the last policy in force /readyz says %d %v", status, checks)
	}
	eventually.True(t, "the metrics say so", func() bool {
		return p.metric(t, "lectern_proxy_policy_current") == 0 && p.metric(t, "lectern_proxy_policy_behind_seconds") > 0
	})
	change(t, c, token, func(s *corev1.Secret) { s.Data["token"] = []byte(second) })
	for range 50 {
		if _, sent, code, err := p.call("/a", "cred_stripe"); err != nil || code != "" || sent != canary {
			t.Fatalf("without the API server: %q, %v", code, err)
		}
	}
	way.mend(t)
	back := time.Now()
	p.awaitSent(t, "/a", "cred_stripe", second)
	t.Logf("the API server back, the change was there after %v", time.Since(back).Round(time.Millisecond))
	eventually.True(t, "all is well", func() bool {
		_, checks := p.ready(t)
		return checks["policy"] == "ok" && p.metric(t, "lectern_proxy_policy_current") == 1 && p.metric(t, "lectern_proxy_policy_behind_seconds") == 0
	})
	eventually.True(t, "the log says so", func() bool { return strings.Contains(p.log.String(), "changes in the cluster can be read again") })
	for _, said := range []string{"changes in the cluster cannot be read; the last policy stays in force", "changes in the cluster can be read again"} {
		if n := strings.Count(p.log.String(), said); n != 1 {
			t.Errorf("%q was said %d times", said, n)
		}
	}
}

// If a server vanishes without closing its connections, the proxy uses another one within a minute, long before TCP times
// out.
func TestLongVanishedServer(t *testing.T) {
	long(t)
	c := newCluster(t)
	way, kube := newRelay(t, c.asProxy(t))
	p := startProxy(t, c, kube, nil)
	token := secret("stripe", canary)
	c.create(t, token, credential("stripe", p.project, "cred_stripe"), p.third.endpoint("shop", p.project, "/a", "cred_stripe"))
	p.awaitReady(t)
	p.awaitSent(t, "/a", "cred_stripe", canary)
	way.forget()
	began := time.Now()
	change(t, c, token, func(s *corev1.Secret) { s.Data["token"] = []byte(second) })
	p.awaitSent(t, "/a", "cred_stripe", second)
	took := time.Since(began)
	t.Logf("a change was there %v after the server had vanished", took.Round(time.Millisecond))
	if took > time.Minute {
		t.Errorf("it took %v", took)
	}
	eventually.True(t, "all is well", func() bool { return p.metric(t, "lectern_proxy_policy_current") == 1 })
}

// apiServer is the process of a cluster's API server.
type apiServer struct {
	pid  int
	args []string
}

// find returns the API server that this process started for c.
func (c *cluster) find(t testing.TB) *apiServer {
	t.Helper()
	host := c.env.Config.Host
	if at, err := url.Parse(host); err == nil && at.Host != "" {
		host = at.Host
	}
	port := "--secure-port=" + host[strings.LastIndexByte(host, ':')+1:]
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it ended
		}
		args := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
		status, err := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		if err != nil || !strings.Contains(string(status), fmt.Sprintf("PPid:\t%d\n", os.Getpid())) {
			continue
		}
		for _, arg := range args {
			if arg == port {
				s := &apiServer{args: args}
				if _, err := fmt.Sscanf(file, "/proc/%d/cmdline", &s.pid); err != nil {
					t.Fatal(err)
				}
				return s
			}
		}
	}
	t.Fatalf("there is no API server with %s", port)
	return nil
}

func (s *apiServer) signal(t testing.TB, what syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(s.pid, what); err != nil {
		t.Fatal(err)
	}
}

// start restarts a killed API server until t ends.
func (s *apiServer) start(t testing.TB) {
	t.Helper()
	cmd := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-apiserver"), s.args[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
}

// load calls the proxy continuously and counts failures.
type load struct {
	calls, failed atomic.Int64
	first         atomic.Pointer[string]
	slowest       atomic.Int64
	stop          context.CancelFunc
	running       sync.WaitGroup
}

func startLoad(p *proxy, callers int, pause time.Duration, path, id string) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{stop: stop}
	for range callers {
		l.running.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				status, _, code, err := p.call(path, id)
				l.calls.Add(1)
				l.slowest.Store(max(l.slowest.Load(), int64(time.Since(began))))
				if err != nil || status != http.StatusOK || code != "" {
					l.failed.Add(1)
					what := fmt.Sprintf("%d %s %v", status, code, err)
					l.first.CompareAndSwap(nil, &what)
				}
				time.Sleep(pause)
			}
		})
	}
	return l
}

// report ends the load. It fails t if a call failed.
func (l *load) report(t testing.TB) {
	t.Helper()
	l.stop()
	l.running.Wait()
	t.Logf("%d calls, %d failed, the slowest took %v", l.calls.Load(), l.failed.Load(), time.Duration(l.slowest.Load()).Round(time.Millisecond))
	if why := l.first.Load(); why != nil {
		t.Errorf("calls failed, the first one with %s", *why)
	}
}

// An API server that hangs, and one that is away for a minute, fail no request.
func TestLongOutage(t *testing.T) {
	long(t)
	c := newOwnCluster(t)
	p := startProxy(t, c, c.asProxy(t), map[string]string{"LOG_LEVEL": "warn"})
	token := secret("stripe", canary)
	c.create(t, token, credential("stripe", p.project, "cred_stripe"), p.third.endpoint("shop", p.project, "/a", "cred_stripe"))
	p.awaitReady(t)
	p.awaitSent(t, "/a", "cred_stripe", canary)
	server := c.find(t)
	l := startLoad(p, 4, 10*time.Millisecond, "/a", "cred_stripe")
	defer l.stop()
	// said waits until the proxy says whether it hears the cluster.
	said := func(current float64) time.Duration {
		began := time.Now()
		eventually.True(t, "it is said", func() bool { return p.metric(t, "lectern_proxy_policy_current") == current })
		return time.Since(began).Round(time.Millisecond)
	}
	// takes waits until a value is live that was set now.
	takes := func(value string) time.Duration {
		began := time.Now()
		eventually.True(t, "the API server takes a change", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			token.ResourceVersion, token.Data = "", map[string][]byte{"token": []byte(value)}
			return c.client.Update(ctx, token) == nil
		})
		written := time.Now()
		p.awaitSent(t, "/a", "cred_stripe", value)
		t.Logf("the API server took a change after %v, and it was live %v later",
			written.Sub(began).Round(time.Millisecond), time.Since(written).Round(time.Millisecond))
		return time.Since(written)
	}

	server.signal(t, syscall.SIGSTOP)
	t.Logf("an API server that hangs was noticed after %v", said(0))
	time.Sleep(20 * time.Second) // the test is about this time
	server.signal(t, syscall.SIGCONT)
	t.Logf("it goes on, which was noticed after %v", said(1))
	takes(second)

	server.signal(t, syscall.SIGKILL)
	t.Logf("an API server that was killed was noticed after %v", said(0))
	time.Sleep(time.Minute) // the test is about this time
	if status, checks := p.ready(t); status != http.StatusOK || checks["policy"] != "failing" {
		t.Errorf("after a minute /readyz says %d %v", status, checks)
	}
	server.start(t)
	takes(canary)
	t.Logf("all is well after another %v", said(1))
	l.report(t)
}
