// Package shell has the parts that commands share: the session, the contexts, the flags that lead to the API, and the
// output. Package shell also has the parser with its errors and its completion. The package knows no command: the
// packages of commands import shell.
package shell

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/lectern-dev/lectern/cli/internal/screen"
)

// Session is the environment of a command: its input, output, variables and settings. Text that a command writes to
// Out and Err may come from other people: see package screen.
type Session struct {
	Context context.Context
	In      io.Reader
	Out     io.Writer // results only
	Err     io.Writer // all other messages
	Environ map[string]string
	Width   int  // the columns of the terminal that Out is, at least 40; 0: it is none
	Quiet   bool // Err gets no notes and no progress bars; the flag --quiet sets it

	// ReadSecret reads a line from the terminal without showing the typed text. ReadSecret is nil if In is not a
	// terminal.
	ReadSecret func() (string, error)
	// ConfigFolder is the folder of the user's settings; "" if there is none.
	ConfigFolder string
	Now          func() time.Time
	token        func(context.Context) (string, error) // of the login of the context that applies; nil for none
}

// ProcessSession returns the session of this process. ProcessSession unsets empty variables that begin with LECTERN_,
// so that a default or --env-file applies.
func ProcessSession(ctx context.Context) *Session {
	s := &Session{Context: ctx, In: input{ctx, os.Stdin}, Out: screen.Of(os.Stdout), Err: screen.Of(os.Stderr), Environ: map[string]string{}, Now: time.Now}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if value == "" && strings.HasPrefix(name, "LECTERN_") { // kong refuses it, before --env-file is read
			_ = os.Unsetenv(name)
			continue
		}
		s.Environ[name] = value
	}
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		s.Width = max(width, 40)
	}
	in := int(os.Stdin.Fd())
	if state, err := term.GetState(in); err == nil {
		s.ReadSecret = func() (string, error) {
			// An interrupt does not end the read in the background. So the terminal is restored, and shows typed text again.
			defer func() { _ = term.Restore(in, state) }()
			secret, err := await(ctx, func() ([]byte, error) { return term.ReadPassword(in) })
			return string(secret), err
		}
	}
	if folder, err := os.UserConfigDir(); err == nil {
		s.ConfigFolder = filepath.Join(folder, "lectern")
	}
	return s
}

// input is the standard input of the process. An interrupt ends a Read of it, which would wait for a line otherwise.
type input struct {
	ctx context.Context
	in  io.Reader
}

// Read reads into p, or returns the error of the context when the context ends.
func (i input) Read(p []byte) (int, error) {
	b, err := await(i.ctx, func() ([]byte, error) {
		b := make([]byte, len(p)) // not p, which the caller has again after an interrupt
		n, err := i.in.Read(b)
		return b[:n], err
	})
	return copy(p, b), err
}

// await calls read and returns its results. If ctx ends first, await returns the error of ctx at once, while read
// continues in the background.
func await(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type outcome struct {
		b   []byte
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		b, err := read()
		done <- outcome{b, err}
	}()
	select {
	case o := <-done:
		return o.b, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// NoteEvery is the minimum time between two lines about the progress of a command without a progress bar, or about a
// fault that lasts.
const NoteEvery = time.Minute

// Note prints a formatted message as a line on standard error, unless --quiet is set.
func (s *Session) Note(format string, args ...any) {
	if !s.Quiet {
		fmt.Fprintf(s.Err, format+"\n", args...)
	}
}
