// Package must stops a measurement at its first error. Its functions panic, and [Recover] returns the error to the
// caller of the measurement. They belong into the goroutine of Recover.
package must

// failure is the panic's value.
type failure struct{ error }

// Do stops if err is not nil.
func Do(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Get returns v, and stops if err is not nil.
func Get[T any](v T, err error) T {
	Do(err)
	return v
}

// Recover is deferred. It sets *err to the error of Do or Get that has stopped the function.
func Recover(err *error) {
	switch v := recover().(type) {
	case nil:
	case failure:
		*err = v.error
	default:
		panic(v)
	}
}
