package lists

import "context"

// Limiter bounds how many statements that may read many records run at once. The statements of a page after its first
// chunk wait for a turn. The statement of the first chunk also waits if the page has more than 100 records, or its
// filter has no index.
type Limiter interface {
	// Acquire waits until the request may run a statement. The caller calls release after the statement. If ctx ends
	// first, Acquire returns the error of ctx.
	Acquire(ctx context.Context) (release func(), err error)
}

type limiterKey struct{}

// WithLimiter returns ctx with the limiter of the lists that are read in ctx. Package service calls WithLimiter for public
// requests, so that no store has to pass a limiter on.
func WithLimiter(ctx context.Context, l Limiter) context.Context {
	return context.WithValue(ctx, limiterKey{}, l)
}

// Limited calls run, which runs a statement. If ctx has a [Limiter], Limited waits for a turn first. The error is that
// of run, or of ctx if ctx ends before the turn.
func Limited(ctx context.Context, run func() error) error {
	if limiter, ok := ctx.Value(limiterKey{}).(Limiter); ok {
		release, err := limiter.Acquire(ctx)
		if err != nil {
			return err
		}
		defer release()
	}
	return run()
}
