// Package must stops a measurement at its first error. [Do] and [Get] panic, and [Recover] turns the panic into an
// error that the measurement returns. Do and Get must run in the goroutine that defers Recover.
package must

// failure is the value with which Do and Get panic. Recover distinguishes a failure from the panic of a bug.
type failure struct{ error }

// Do panics if err is not nil. Recover returns err to the caller of the function that defers Recover.
func Do(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Get returns v, or panics as [Do] does if err is not nil.
func Get[T any](v T, err error) T {
	Do(err)
	return v
}

// Recover must be deferred. Recover ends a panic of Do or Get and sets *err to the error. Recover repeats any other
// panic.
func Recover(err *error) {
	switch v := recover().(type) {
	case nil:
	case failure:
		*err = v.error
	default:
		panic(v)
	}
}
