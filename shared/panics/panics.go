// Package panics carries a panic from one goroutine to another. A panic that no function recovers ends the process,
// whichever goroutine it is in. A panic that is carried to the goroutine that serves a request ends only that request.
package panics

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// caught is the error for a recovered panic: its value, and the stack of the goroutine that panicked.
type caught struct {
	value any
	stack []byte
}

// Error returns the value of the panic, and the stack of the goroutine that panicked.
func (c *caught) Error() string { return fmt.Sprintf("panic: %v\n%s", c.value, c.stack) }

// Unwrap returns the value of the panic if the value is an error, and otherwise nil. So errors.Is still finds
// http.ErrAbortHandler.
func (c *caught) Unwrap() error {
	err, _ := c.value.(error)
	return err
}

// Catch recovers from a panic, and sets *err to an error for [Rethrow]. Without a panic, Catch leaves *err unchanged. A
// function that runs in a goroutine of its own defers Catch and returns *err.
func Catch(err *error) {
	if value := recover(); value != nil {
		*err = &caught{value, debug.Stack()}
	}
}

// Rethrow panics again if err is or wraps the error of a panic that [Catch] recovered. Otherwise Rethrow does nothing.
func Rethrow(err error) {
	if c, ok := errors.AsType[*caught](err); ok {
		panic(c)
	}
}
