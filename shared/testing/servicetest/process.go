package servicetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/logtest"
)

// Log is the buffer of a process's output.
type Log = logtest.Buffer

// Process is a service in a separate process. It is for tests that measure memory or kill the service.
type Process struct {
	Service
	cmd  *exec.Cmd
	dead chan struct{}
}

// asService is the variable of the environment that makes a test binary run its service.
const asService = "LECTERN_TEST_SERVICE"

// Self is the test binary, for [StartProcess]. It needs a TestMain that calls [Main].
func Self(t testing.TB) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// Build compiles the command in the folder pkg of the module that the test is in, and returns its path.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	return BuildOf(t, ".", pkg)
}

// BuildOf compiles the command in the folder pkg of the module in another folder and returns its path. Both folders
// have the form "./…" or "../…". The command has no symbols, like that of an image, which links in two thirds of the time.
func BuildOf(t testing.TB, module, pkg string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), filepath.Base(pkg))
	build(t, module, binary, pkg)
	return binary
}

// BuildAll compiles the commands in some folders of a module as [BuildOf] does, but all at once. It returns the folder in
// which they are by the names of their folders.
func BuildAll(t testing.TB, module string, pkgs ...string) string {
	t.Helper()
	folder := t.TempDir()
	build(t, module, folder+"/", pkgs...)
	return folder
}

func build(t testing.TB, module, to string, pkgs ...string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"build", "-ldflags=-s -w", "-o", to}, pkgs...)...)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %v of %s: %v\n%s", pkgs, module, err, out)
	}
}

// StartProcess runs a built service on b until t ends. environ overrides [Backing.Environ].
func StartProcess(t testing.TB, b *Backing, binary string, environ map[string]string) *Process {
	t.Helper()
	cmd := exec.Command(binary, "serve")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), asService + "=1"}
	for _, from := range []map[string]string{b.Environ(), environ} {
		for name, value := range from {
			cmd.Env = append(cmd.Env, name+"="+value) // the last value of a name is used
		}
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Process{Service: Service{Backing: b, t: t, log: &logtest.Buffer{}}, cmd: cmd, dead: make(chan struct{})}
	listening := make(chan struct{ Public, Internal string }, 1)
	go func() {
		defer close(p.dead)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			_, _ = p.log.Write(append(lines.Bytes(), '\n')) // never fails
			var line struct{ Msg, Public, Internal string }
			if bytes.Contains(lines.Bytes(), []byte(`"listening"`)) && json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
				listening <- struct{ Public, Internal string }{line.Public, line.Internal}
			}
		}
		_ = cmd.Wait() // the test reads the exit code
	}()
	p.log.ReportErrors(t, filepath.Base(binary))
	t.Cleanup(p.Kill)
	select {
	case at := <-listening:
		p.URL, p.InternalURL = "http://"+at.Public, "http://"+at.Internal
	case <-p.dead:
		t.Fatalf("%s ended before it listened:\n%s", binary, p.log.Errors(t))
	case <-time.After(5 * time.Minute):
		t.Fatalf("%s does not listen:\n%s", binary, p.log.Errors(t))
	}
	return p
}

// Kill kills the process and waits for its end.
func (p *Process) Kill() { p.Signal(syscall.SIGKILL); <-p.dead }

// Terminate sends SIGTERM, waits for the end of the process and returns its exit code.
func (p *Process) Terminate() int {
	p.Signal(syscall.SIGTERM)
	<-p.dead
	return p.cmd.ProcessState.ExitCode()
}

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal to the process.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) } // the process may have ended

// Memory returns the process's resident memory now and at its peak, in bytes.
func (p *Process) Memory(t testing.TB) (now, peak int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string) int64 {
		for line := range bytes.Lines(status) {
			if rest, ok := strings.CutPrefix(string(line), name+":"); ok {
				n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				return n << 10
			}
		}
		t.Fatalf("no %s in /proc", name)
		return 0
	}
	return of("VmRSS"), of("VmHWM")
}
