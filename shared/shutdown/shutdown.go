// Package shutdown stops the parts of a process in the reverse order of their start. It does not decide when a
// process stops.
package shutdown

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Stack holds the functions that stop the parts started so far. The zero value is empty. It is not safe
// for concurrent use.
type Stack struct {
	stops []func(context.Context) error
}

// Add adds the function that stops the part started last. The function ends when its context does.
func (s *Stack) Add(stop func(context.Context) error) { s.stops = append(s.stops, stop) }

// AddFunc adds a function that stops a part and cannot fail, bounded by [Within].
func (s *Stack) AddFunc(stop func()) {
	s.Add(func(ctx context.Context) error { return Within(ctx, stop) })
}

// Within calls stop and waits until it returns or ctx ends. The error is that of ctx. stop then continues in the
// background until the process ends.
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

// Go runs a part in the background. To stop it, the stack cancels the context of run and waits until run
// returns.
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

// Stop stops all parts, the last one first, and empties the stack. If a part fails, the others are still stopped; the
// error joins all errors. timeout bounds the whole stop. A part that takes longer is abandoned, which is an error.
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
