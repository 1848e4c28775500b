package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/must"
)

// Process is a running program of a benchmark, such as a service. A file has the program's output.
type Process struct {
	cmd    *exec.Cmd
	output string
	ended  chan struct{}
}

// start runs cmd and waits until ready returns true, at most a minute. The program ends when the stage closes. On
// Linux, the program also ends when the benchmark is killed.
func (s *Stage) start(ctx context.Context, cmd *exec.Cmd, name string, ready func() bool) *Process {
	f := must.Get(os.CreateTemp(s.Folder, name+"-*.log"))
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	bindLife(cmd)
	must.Do(cmd.Start())
	p := &Process{cmd: cmd, output: f.Name(), ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the log has the reason
		close(p.ended)
	}()
	s.onClose(p.Stop)
	must.Do(p.until(ctx, ready))
	return p
}

// Stop sends SIGTERM to the process. If the process does not end within 20 seconds, Stop kills the process and returns
// an error.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
		return nil
	case <-time.After(20 * time.Second):
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	return fmt.Errorf("%s did not end and was killed", p.cmd.Path)
}

// until waits until done returns true, at most a minute. until returns an error if the process ends first.
func (p *Process) until(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-p.ended:
			said, _ := os.ReadFile(p.output)
			return fmt.Errorf("%s ended:\n%s", p.cmd.Path, said)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", p.cmd.Path, ctx.Err())
		case <-ticker.C:
		}
	}
	return nil
}

// tick is the unit of processor time in /proc (USER_HZ, which is 100 on every Linux).
const tick = 10 * time.Millisecond

// CPU returns the processor time of the process so far, in user mode and in the kernel. CPU works on Linux only.
func (p *Process) CPU() (time.Duration, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may contain any character. After it: state, 10 others, utime, stime.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("few fields in /proc/…/stat")
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// PeakMemory returns the greatest resident memory of the process so far, in bytes. PeakMemory works on Linux only.
func (p *Process) PeakMemory() (int64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "\nVmHWM:")
	line, _, _ := strings.Cut(rest, " kB")
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return n << 10, err
}
