package pagelist

import "context"

// Limiter bounds how many lists of several chunks are read at once, and how many of them query the database at the
// same time.
type Limiter interface {
	// Enter admits a list that continues after its first chunk, and returns the semaphore of its queries. The error
	// is the answer to the list's request.
	Enter(ctx context.Context) (Semaphore, error)
}

// Semaphore is acquired for each statement of a list after its first chunk. One goroutine uses it at a time.
type Semaphore interface {
	// Acquire waits until the list may run a statement. Its error is that of ctx.
	Acquire(ctx context.Context) error

	// Release ends the statement.
	Release()

	// Leave ends the list.
	Leave()
}

type limiterKey struct{}

// WithLimiter returns ctx with the limiter of the lists that are read in it. The server calls it for all public
// requests (Options.Exports of package httpserver), so that no store has to pass a limiter on.
func WithLimiter(ctx context.Context, l Limiter) context.Context {
	return context.WithValue(ctx, limiterKey{}, l)
}

// enter asks the limiter, if there is one, to admit the list.
func (l *List) enter() (err error) {
	limiter, ok := l.ctx.Value(limiterKey{}).(Limiter)
	if !ok {
		return nil
	}
	l.semaphore, err = limiter.Enter(l.ctx)
	return err
}

// limited runs a statement after it has acquired the semaphore.
func (l *List) limited(ctx context.Context, run func() error) error {
	if l.semaphore == nil {
		return run()
	}
	if err := l.semaphore.Acquire(ctx); err != nil {
		return err
	}
	defer l.semaphore.Release()
	return run()
}
