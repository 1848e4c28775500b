package pglocal

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a postmaster, the main process of a Postgres server, that [spawn] has started.
type process struct {
	pid  int
	out  *tail
	done chan struct{} // closed after the process has ended and was reaped
	end  string        // how the process ended, such as "exit status 1"; valid after done
}

// spawn starts cmd and waits for its end in the background. On Linux, cmd also ends when this process ends. out gets the
// log of cmd.
func spawn(cmd *exec.Cmd, out *tail) (*process, error) {
	p := &process{out: out, done: make(chan struct{})}
	cmd.Stderr = out
	started := make(chan error, 1)
	go func() {
		// The kernel ties the child's death signal (PR_SET_PDEATHSIG) to the thread that forked, not to the process.
		// So this thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd.WaitDelay = time.Second // children of the postmaster must not keep the log's pipe open
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			_ = cmd.Wait() // the log has the reason for its end
			p.end = cmd.ProcessState.String()
			close(p.done)
		}
	}()
	return p, <-started
}

// run runs cmd to its end. On Linux, cmd also ends when this process ends.
func run(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.Run()
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) signal(sig syscall.Signal) {
	if !p.ended() {
		_ = syscall.Kill(p.pid, sig) // the process may have ended just now
	}
}

// signalAll signals the postmaster and its children. The postmaster is paused before its children are listed, so that
// the postmaster starts no more children meanwhile.
func (p *process) signalAll(f *folder, sig syscall.Signal) {
	if p.ended() {
		return
	}
	_ = syscall.Kill(p.pid, syscall.SIGSTOP)
	for _, child := range childrenOf(p.pid, f.data()) {
		_ = syscall.Kill(child, sig)
	}
	_ = syscall.Kill(p.pid, sig)
}

// kill kills the postmaster and all its children and waits for their end, for up to killTimeout.
func (p *process) kill(f *folder) error {
	p.signalAll(f, syscall.SIGKILL)
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	select {
	case <-p.done:
	case <-ctx.Done():
		return errors.New("postgres cannot be killed")
	}
	return until(ctx, func() bool { return len(processesIn(f.data())) == 0 })
}

// tail is a writer that passes output on to next and keeps the last tailBytes of the output, for the text of errors.
type tail struct {
	next io.Writer   // may be nil
	full chan string // gets the first line that says that the disk is full; may be nil

	mu   sync.Mutex
	kept []byte
}

const tailBytes = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.kept = append(t.kept, b...)
	if extra := len(t.kept) - tailBytes; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	t.mu.Unlock()
	for line := range strings.Lines(string(b)) {
		// A segment of shared memory that does not fit fails one query alone.
		if strings.Contains(line, "No space left on device") && !strings.Contains(line, "shared memory") {
			select {
			case t.full <- strings.TrimSpace(line):
			default:
			}
		}
	}
	if t.next != nil {
		_, _ = t.next.Write(b) // an error would end the pipe, and the server's last words would be lost
	}
	return len(b), nil
}

// last returns the last three lines of the output.
func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(t.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "\n")
}

// String returns the last part of the output, up to tailBytes.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
