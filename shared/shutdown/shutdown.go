// Package shutdown stops the parts of a process in the reverse order of their start. The caller decides when a process
// stops.
package shutdown

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Timeout is how long the parts of a service may take to stop after its last request.
const Timeout = 10 * time.Second

// Stack holds the functions that stop the parts of a process that are started so far. The zero value is empty. Only one
// goroutine may use a Stack at a time.
type Stack struct {
	stops []func(context.Context) error
}

// Add adds the function that stops the part started last. The function must return when its context ends.
func (s *Stack) Add(stop func(context.Context) error) { s.stops = append(s.stops, stop) }

// AddFunc adds a function that stops a part and cannot fail. [Within] bounds the time of stop.
func (s *Stack) AddFunc(stop func()) {
	s.Add(func(ctx context.Context) error { return Within(ctx, stop) })
}

// Within calls stop and waits until stop returns or ctx ends. If ctx ends first, Within returns the error of ctx, and
// stop continues in the background.
func Within(ctx context.Context, stop func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		stop()
	}()
	return await(ctx, done)
}

func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Go runs a part in the background. To stop the part, the stack cancels the context of run and waits until run returns.
func (s *Stack) Go(run func(context.Context)) {
	background, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(background)
	}()
	s.Add(func(ctx context.Context) error {
		cancel()
		return await(ctx, done)
	})
}

// Stop stops all parts, the last part first, and empties the stack. If a part fails, Stop still stops the other parts,
// and the error joins all errors. timeout bounds the whole stop. A part that takes longer is abandoned, which is an
// error.
func (s *Stack) Stop(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var errs []error
	for _, stop := range slices.Backward(s.stops) {
		errs = append(errs, stop(ctx))
	}
	s.stops = nil
	return errors.Join(errs...)
}
