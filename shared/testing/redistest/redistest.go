// Package redistest gives tests a real Redis: one server, a cluster of six, or a master with its Sentinels. Tests can
// stop, kill, pause and restart each server. If the machine has no redis-server, tests that need it are skipped, or
// fail if CI=true.
//
// Production code does not import it; the linter checks this.
package redistest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// bound is the time limit of each step in this package.
const bound = 2 * time.Minute

// Server is a redis-server for one test. It stores nothing on disk, so it is empty after a restart.
type Server struct {
	// URL is redis:// with a loopback port that stays the same after restarts.
	URL config.ServerURL

	t    testing.TB
	port int
	dir  string   // a cluster node stores its view of the cluster here
	args []string // the program and its arguments

	mu      sync.Mutex
	process *process // nil while it does not run
	frozen  bool
}

// process is one run of the server.
type process struct {
	pid    int
	done   chan struct{} // closed when the process has ended
	output *bytes.Buffer // may be read when done is closed
}

// Start starts a server, with args in addition to those of every server, and stops it when t ends.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, func(s *Server) ([]string, error) {
		return append([]string{
			"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
			"--dir", s.dir, "--daemonize", "no",
		}, args...), nil
	})
}

// start starts a server with the result of arguments, which is called once the port and folder are known.
func start(t testing.TB, arguments func(*Server) ([]string, error)) *Server {
	t.Helper()
	binary := needs.Program(t, "run scripts/setup redis", "redis-server")
	s := &Server{t: t, port: needs.Port(t), dir: t.TempDir()}
	args, err := arguments(s)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	s.args = append([]string{binary}, args...)
	if s.process, err = s.launch(); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	s.URL = config.NewServerURL("redis://127.0.0.1:" + strconv.Itoa(s.port))
	t.Cleanup(s.Kill)
	return s
}

// Patient returns url with the time limit for each step of a command. The usual limit is a quarter of a second, in which
// Redis may not answer on a busy machine.
func Patient(url config.ServerURL, limit time.Duration) config.ServerURL {
	separator := "?"
	if strings.Contains(url.Reveal(), "?") {
		separator = "&"
	}
	return config.NewServerURL(fmt.Sprintf("%s%sdial_timeout=%v&read_timeout=%[3]v&write_timeout=%[3]v&pool_timeout=%[3]v", url.Reveal(), separator, limit))
}

// Addr returns the server's host and port.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// Client returns a plain client of the server, which is closed when the test ends. Client is no method: the compiler would
// emit go-redis' 1,500 methods again in each package of tests that reaches a Server.
func Client(s *Server) *redis.Client {
	c := connect(s)
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func connect(s *Server) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: s.Addr(), DisableIdentity: true, ContextTimeoutEnabled: true, DialerRetries: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// Running reports whether the server runs and is not frozen.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil && !s.frozen
}

// Stop shuts the server down, as a deployment would.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill kills the server at once, like a crash.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Pause freezes the server. Connections stay open, but the server does not answer.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

// Restart starts the server again, empty, on the same port. It first kills a running one.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.process, err = s.launch(); err != nil {
		s.t.Fatalf("redistest: restart: %v", err)
	}
}

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		s.t.Fatalf("redistest: %v to a server that does not run", sig)
	}
	if err := syscall.Kill(s.process.pid, sig); err != nil {
		s.t.Fatalf("redistest: %v: %v", sig, err)
	}
	s.frozen = sig == syscall.SIGSTOP
}

// end stops the server, if it runs, and waits for its end.
func (s *Server) end(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return
	}
	p := s.process
	s.process, s.frozen = nil, false
	_ = syscall.Kill(p.pid, sig) // the process may have ended already
	select {
	case <-p.done:
	case <-time.After(bound):
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
		s.t.Errorf("redistest: the server did not end within %v", bound)
	}
}

// launch starts the server and waits until it, and no other server, answers on the port.
func (s *Server) launch() (*process, error) {
	p, err := run(s.args[0], s.args[1:])
	if err != nil {
		return nil, err
	}
	if err := s.await(p); err != nil {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
		<-p.done
		return nil, fmt.Errorf("%w\n%s", err, p.output)
	}
	return p, nil
}

// await waits until the process p answers on the port.
func (s *Server) await(p *process) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	client := connect(s)
	defer client.Close()
	want := "process_id:" + strconv.Itoa(p.pid)
	for {
		// Dial first without the client, which logs a line for each failed connection.
		conn, err := net.Dial("tcp", s.Addr())
		if err == nil {
			_ = conn.Close()
			var info string
			if info, err = client.Info(ctx, "server").Result(); err == nil && strings.Contains(info, want+"\r") {
				return nil
			}
		}
		select {
		case <-p.done:
			return errors.New("redis-server ended while it started")
		case <-ctx.Done():
			return fmt.Errorf("redis-server did not answer within %v: %w", bound, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// run starts a command that ends with this process. The kernel sends the signal of Pdeathsig when the thread that
// started the child ends. So that thread waits for the child and does nothing else (golang/go#27505).
func run(binary string, args []string) (*process, error) {
	p := &process{done: make(chan struct{}), output: &bytes.Buffer{}}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		cmd := exec.Command(binary, args...)
		cmd.Stdout, cmd.Stderr = p.output, p.output
		cmd.SysProcAttr = attributes()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.pid = cmd.Process.Pid
		started <- nil
		_ = cmd.Wait() // a server that is killed ends with an error
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}
