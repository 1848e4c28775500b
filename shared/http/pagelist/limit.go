package pagelist

import "context"

// Limiter gives turns to statements that may read much: those of a page after its first chunk. Of a page of more than 100
// records, or of one that scans, these are all.
type Limiter interface {
	// Acquire waits until the request may run a statement, which the caller ends by release. The error is that of ctx.
	Acquire(ctx context.Context) (release func(), err error)
}

type limiterKey struct{}

// WithLimiter returns ctx with the limiter of the lists that are read in it. The server calls it for all public
// requests (Options.Reads of package httpserver), so that no store has to pass a limiter on.
func WithLimiter(ctx context.Context, l Limiter) context.Context {
	return context.WithValue(ctx, limiterKey{}, l)
}

// Limited runs a statement in its turn, if ctx has a limiter. The error is that of ctx or of run.
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
