package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// The exit codes. They are documented in the help and do not change.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitRejected    = 3
	ExitInterrupted = 130 // as shells count an end by SIGINT
)

// ErrRejected ends a command that did its work, except for rejected records. The command has printed them.
var ErrRejected = errors.New("some records were rejected")

// usageError is a fault of the command line beyond its syntax.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usagef returns a fault of the command line beyond its syntax. The command ends with [ExitUsage].
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Usage makes err a fault of the command line, as [Usagef] does.
func Usage(err error) error { return usageError{err} }

// Advise adds to err what to do about it, in place of the advice for its code.
func Advise(err error, advice string) error { return advisedError{err, advice} }

// advisedError has better advice than that for its code.
type advisedError struct {
	error
	advice string
}

func (e advisedError) Unwrap() error { return e.error }

// fail prints the error in one line, and returns the exit code.
func (s *Session) fail(err error) int {
	switch _, usage := errors.AsType[usageError](err); {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrRejected):
		return ExitRejected
	case s.Context.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(s.Err, "lectern: interrupted")
		return ExitInterrupted
	case usage:
		fmt.Fprintf(s.Err, "lectern: %s\n", OneLine(err))
		return ExitUsage
	}
	fmt.Fprintf(s.Err, "lectern: %s%s\n", OneLine(err), advice(err))
	return ExitFailure
}

// OneLine returns the text of err as one line, with each distinct line of err.
func OneLine(err error) string {
	var lines []string
	for _, line := range strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }) {
		// pgx tries an address with TLS and without, and reports the same line for both.
		if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}

// advice returns what to do about an error of the API.
func advice(err error) string {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "; nothing listens there: is it running, and the address right?"
	}
	if a, ok := errors.AsType[advisedError](err); ok {
		return "; " + a.advice
	}
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return ""
	}
	switch e.Code {
	case "unauthorized":
		return "; check the key (LECTERN_API_KEY, or lectern login) and that it is one of this project"
	case "insufficient_scope":
		return "; mint a key with that scope: lectern keys mint --scope"
	case "unavailable", "rate_limited":
		if e.RetryAfter < time.Hour { // otherwise the message says what to do
			return "; try again later"
		}
	case "":
		return "; check the URL"
	}
	return ""
}
