package clusterpolicy_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/logtest"
)

// process is a proxy in a process of its own, to measure its memory.
type process struct{ cmd *exec.Cmd }

// launch starts the program, which runs until t ends, and gives p its address.
func launch(t testing.TB, p *proxy, binary string, environ map[string]string) *process {
	t.Helper()
	cmd := exec.Command(binary, "serve")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range environ {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.log = &logtest.Buffer{}
	dead := make(chan struct{})
	listening := make(chan struct{ Public, Internal string }, 1)
	go func() {
		defer close(dead)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			_, _ = p.log.Write(append(lines.Bytes(), '\n')) // never fails
			var line struct{ Msg, Public, Internal string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
				listening <- struct{ Public, Internal string }{line.Public, line.Internal}
			}
		}
		_ = cmd.Wait() // killed
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // gone is gone
		<-dead
	})
	select {
	case at := <-listening:
		p.base, p.internal = "http://"+at.Public, "http://"+at.Internal
	case <-dead:
		t.Fatalf("the proxy ended before it listened:\n%s", p.log)
	case <-time.After(time.Minute):
		t.Fatalf("the proxy does not listen:\n%s", p.log)
	}
	return &process{cmd}
}

// memory returns the process's resident memory now and at its peak, in bytes.
func (p *process) memory(t testing.TB) (now, peak int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string) (size int64) {
		for line := range strings.Lines(string(status)) {
			if _, err := fmt.Sscanf(line, name+": %d kB", &size); err == nil {
				return size << 10
			}
		}
		t.Fatalf("no %s in /proc", name)
		return 0
	}
	return of("VmRSS"), of("VmHWM")
}
