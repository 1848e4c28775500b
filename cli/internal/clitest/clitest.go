// Package clitest runs the command line in tests of the rooms that have its commands. A command runs in the test's process, in
// the background, or as a process that a test can kill. The package also has an API with made-up entries, and the entries
// service.
//
// A package uses it with
//
//	func TestMain(m *testing.M) { clitest.Main(m) }
//
// Production code does not import it; a test of the imports checks this.
package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/command"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// AsCommand makes a test binary be the command if the variable is in its environment.
const AsCommand = "LECTERN_TEST_AS_COMMAND"

// Main is [pgtest.Main] for a package whose tests run the command as a process. In such a process, the test binary runs the
// command instead of tests.
func Main(m *testing.M) {
	if os.Getenv(AsCommand) == "" {
		pgtest.Main(m)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(command.Main(shell.ProcessSession(ctx), os.Args[1:]))
}

// The scripts of the shells ask for completions by the first word, and get the second one where files fit.
const (
	CompleteWord = "__complete"
	FilesLine    = ":files"
)

// Result is the outcome of a command.
type Result struct {
	Code     int
	Out, Err string
}

// repeated is a note about a request that a busy machine's service refused and the command repeated.
var repeated = regexp.MustCompile(`(?m)^lectern: The service cannot answer right now.*; trying again in .*\n`)

// Run runs the command in this process, at noon of 2026-11-01. Its notes are without those about repeated requests.
func Run(t testing.TB, in string, environ map[string]string, args ...string) Result {
	t.Helper()
	r := RunIn(t, shell.Session{
		In: strings.NewReader(in), Environ: environ, Now: func() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) },
	}, args...)
	r.Err = repeated.ReplaceAllString(r.Err, "")
	return r
}

// RunIn runs the command in this process, in a session of the test. RunIn sets the context and the outputs.
func RunIn(t testing.TB, s shell.Session, args ...string) Result {
	t.Helper()
	var out, errs bytes.Buffer
	s.Context, s.Out, s.Err = t.Context(), &out, &errs
	return Result{command.Main(&s, args), out.String(), errs.String()}
}

// Machine is a user's machine with its folder of settings.
type Machine struct{ Folder string }

// Run runs the command on the machine, at the time of the test. The user types secret without an echo; "" stands for no
// terminal.
func (m Machine) Run(t testing.TB, in, secret string, environ map[string]string, args ...string) Result {
	t.Helper()
	s := shell.Session{In: strings.NewReader(in), Environ: environ, Now: time.Now, ConfigFolder: m.Folder}
	if secret != "" {
		s.ReadSecret = func() (string, error) { return secret, nil }
	}
	return RunIn(t, s, args...)
}

// Must runs a command that has to succeed, and returns what the command printed.
func Must(t testing.TB, environ map[string]string, in string, args ...string) string {
	t.Helper()
	r := Run(t, in, environ, args...)
	if r.Code != shell.ExitOK {
		t.Fatalf("lectern %s: exit code %d: %s", strings.Join(args, " "), r.Code, r.Err)
	}
	return r.Out
}

// Background is a command that runs in this process until the test stops it.
type Background struct {
	Out, Err servicetest.Log

	cancel context.CancelFunc
	ended  chan int
}

// Begin starts the command in this process, with the time of the machine. The command is stopped when t ends.
func Begin(t testing.TB, environ map[string]string, args ...string) *Background {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b := &Background{cancel: cancel, ended: make(chan int, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.ended <- command.Main(&shell.Session{Context: ctx, In: strings.NewReader(""), Out: &b.Out, Err: &b.Err, Environ: environ, Now: time.Now}, args)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return b
}

// Wait waits for the end of the command, and returns its outcome.
func (b *Background) Wait(t testing.TB) Result {
	t.Helper()
	code := eventually.Receive(t, "the end of the command", b.ended)
	return Result{code, b.Out.String(), b.Err.String()}
}

// Stop interrupts the command and waits for its end.
func (b *Background) Stop(t testing.TB) Result {
	t.Helper()
	b.cancel()
	return b.Wait(t)
}

// Ended returns a channel that receives the exit code of the command.
func (b *Background) Ended() <-chan int { return b.ended }

// Process is the command as a process of its own.
type Process struct {
	*os.Process
	Ended  chan struct{} // closed when the process has ended; the fields below are set then
	Stderr bytes.Buffer
	Code   int // -1 if the process was killed
}

// Start starts the command. The process is killed when t ends.
func Start(t testing.TB, args ...string) *Process {
	t.Helper()
	return StartTo(t, nil, args...)
}

// StartTo starts the command with a file as its standard output.
func StartTo(t testing.TB, out *os.File, args ...string) *Process {
	t.Helper()
	return start(t, out, []string{"LECTERN_API_KEY=rk_1", "LECTERN_INGEST_API_KEY=ik_1", "LECTERN_PROJECT_ID=pr_1"}, args)
}

// Start starts the command on the machine, whose folder has to have the name lectern. It needs Linux.
func (m Machine) Start(t testing.TB, args ...string) *Process {
	t.Helper()
	return start(t, nil, []string{"XDG_CONFIG_HOME=" + filepath.Dir(m.Folder)}, args)
}

func start(t testing.TB, out *os.File, environ, args []string) *Process {
	t.Helper()
	p := &Process{Ended: make(chan struct{})}
	cmd := exec.Command(servicetest.Self(t), args...)
	cmd.Env = append(append(os.Environ(), AsCommand+"=1"), environ...)
	cmd.Stderr = &p.Stderr
	if out != nil {
		cmd.Stdout = out
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Process = cmd.Process
	go func() {
		_ = cmd.Wait() // its code says as much
		p.Code = cmd.ProcessState.ExitCode()
		close(p.Ended)
	}()
	t.Cleanup(func() {
		_ = p.Kill()
		<-p.Ended
	})
	return p
}

// End sends the process a signal and waits for its end.
func (p *Process) End(t testing.TB, sig os.Signal) {
	t.Helper()
	if err := p.Signal(sig); err != nil {
		t.Fatal(err)
	}
	eventually.Receive(t, fmt.Sprint("its end after ", sig), p.Ended)
}

// Decode decodes JSON.
func Decode[T any](t testing.TB, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	return v
}

// Text returns the content of a file.
func Text(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Write writes a file that only the user can read.
func Write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// File writes a file in a folder of its own, and returns its path.
func File(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	Write(t, path, content)
	return path
}
