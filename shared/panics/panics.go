// Package panics carries a panic from one goroutine to another. A panic in a goroutine of its own ends the process. Carried
// to the goroutine that serves the request, it ends that request alone.
package panics

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// caught is a panic that was recovered.
type caught struct {
	value any
	stack []byte
}

// Error returns what was panicked, and the stack of the goroutine that did.
func (c *caught) Error() string { return fmt.Sprintf("panic: %v\n%s", c.value, c.stack) }

// Unwrap returns the value if it is an error, so that http.ErrAbortHandler is known again.
func (c *caught) Unwrap() error {
	err, _ := c.value.(error)
	return err
}

// Catch recovers from a panic, and sets *err to it. A function defers it and returns *err.
func Catch(err *error) {
	if value := recover(); value != nil {
		*err = &caught{value, debug.Stack()}
	}
}

// Rethrow panics if err is of [Catch].
func Rethrow(err error) {
	if c, ok := errors.AsType[*caught](err); ok {
		panic(c)
	}
}
