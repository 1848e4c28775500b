// Package eventually waits in tests for a state. A wait has a limit of minutes, so that a busy machine fails no test, and
// ends as soon as the state is there.
package eventually

import (
	"errors"
	"testing"
	"time"
)

const (
	// limit is how long a state may take to be there.
	limit = 5 * time.Minute
	// pause is the time after the first look at a state. Each pause is a quarter longer than the one before, up to
	// longest. So many tests that wait at once do not keep the machine busy with their looks.
	pause   = 2 * time.Millisecond
	longest = 50 * time.Millisecond
)

// True waits until ok returns true, and returns how long that took. what says for which state, as in "not within 5m0s: the
// pool is empty".
func True(t testing.TB, what string, ok func() bool) time.Duration {
	t.Helper()
	return Succeeds(t, what, func() error {
		if !ok() {
			return errors.New("it is not so")
		}
		return nil
	})
}

// Succeeds waits until try returns nil, and returns how long that took. It reports the last error if that never happens.
func Succeeds(t testing.TB, what string, try func() error) time.Duration {
	t.Helper()
	begin := time.Now()
	if err := Try(try); err != nil {
		t.Fatalf("not within %v: %s: %v", limit, what, err)
	}
	return time.Since(begin)
}

// Try is [Succeeds] for code without a test. Try returns the last error if try never returns nil.
func Try(try func() error) error {
	for begin, next := time.Now(), pause; ; next = min(next*5/4, longest) {
		if err := try(); err == nil || time.Since(begin) > limit {
			return err
		}
		time.Sleep(next)
	}
}

// Receive waits until a value can be received, and returns it.
func Receive[T any](t testing.TB, what string, values <-chan T) T {
	t.Helper()
	select {
	case value := <-values:
		return value
	case <-time.After(limit):
		t.Fatalf("not within %v: %s", limit, what)
		panic("unreachable")
	}
}
