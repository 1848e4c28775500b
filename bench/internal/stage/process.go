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
)

// stopWithin bounds the stop of a process.
const stopWithin = 20 * time.Second

// Process is a program that runs for the benchmarks. Its output goes into a file.
type Process struct {
	cmd    *exec.Cmd
	output string
	ended  chan struct{}
}

// start runs cmd, which ends with this process at the latest.
func start(cmd *exec.Cmd, output string) (*Process, error) {
	f, err := os.Create(output)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	bindLife(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, output: output, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the log has the reason
		close(p.ended)
	}()
	return p, nil
}

// Stop asks the process to end, and kills it if it does not.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopWithin):
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	return fmt.Errorf("%s did not end and was killed", p.cmd.Path)
}

func (p *Process) stopIfRunning() error {
	select {
	case <-p.ended:
		return nil
	default:
		return p.Stop()
	}
}

// until waits until done returns true.
func (p *Process) until(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
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

// CPU returns the processor time of the process, its own and the kernel's for it.
func (p *Process) CPU() (time.Duration, error) {
	own, _, err := processorTime(p.cmd.Process.Pid)
	return own, err
}

// Memory returns the process's resident memory now and at its peak, in bytes.
func (p *Process) Memory() (now, peak int64, err error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		return 0, 0, err
	}
	of := func(name string) int64 {
		for line := range bytes.Lines(status) {
			if rest, ok := strings.CutPrefix(string(line), name+":"); ok {
				n, e := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
				err = errors.Join(err, e)
				return n << 10
			}
		}
		err = errors.Join(err, fmt.Errorf("no %s in /proc", name))
		return 0
	}
	return of("VmRSS"), of("VmHWM"), err
}
