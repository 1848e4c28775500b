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
	"github.com/lectern-dev/lectern/shared/roots"
)

// The exit codes of the program. The help documents the codes, so the codes do not change.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitRejected    = 3
	ExitHistoryLost = 4
	ExitInterrupted = 130 // as shells count an end by SIGINT
)

// ErrRejected is the error of a command that did its work, except for some records that the API rejected. The command
// itself reports the rejected records, so no message is printed for ErrRejected. The exit code is [ExitRejected].
var ErrRejected = errors.New("some records were rejected")

// usageError marks an error in the command line that the parser does not find, such as two flags that exclude each
// other. The program ends with [ExitUsage].
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usagef returns an error in the command line that the parser does not find, with a formatted text. The command ends
// with [ExitUsage].
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Usage marks err as an error in the command line, as [Usagef] does, so that the command ends with [ExitUsage].
func Usage(err error) error { return usageError{err} }

// Advise adds advice for the user to err, in place of the standard advice for the code of err. Errors of the command
// line are printed without advice, and a refused connection keeps its standard advice.
func Advise(err error, advice string) error { return advisedError{err, advice} }

// advisedError is an error with its own advice for the user, which replaces the standard advice for the error's code.
type advisedError struct {
	error
	advice string
}

func (e advisedError) Unwrap() error { return e.error }

// fail prints err in one line to standard error, and returns the exit code. fail prints nothing for nil and for
// [ErrRejected].
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
	fmt.Fprintf(s.Err, "lectern: %s%s\n", OneLine(roots.Explain(err)), advice(err))
	if _, lost := errors.AsType[*client.HistoryLostError](err); lost {
		return ExitHistoryLost
	}
	return ExitFailure
}

// OneLine returns the text of err as one line: the distinct lines of err, separated by semicolons. After a line that
// ends with a colon, there is no semicolon.
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

// advice returns the advice for the user that is printed after err, with a semicolon before it. advice returns "" if
// there is no advice.
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
		return "; check the key or the token (LECTERN_API_KEY, LECTERN_TOKEN_FILE, or lectern login), and that it is good for this project"
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
