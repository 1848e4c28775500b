package auth

import (
	"context"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/limits"
)

// refused counts the refused credentials of each client network, whatever their kind.
type refused struct{ counts *limits.Refusals }

func networkOf(ctx context.Context) string {
	return limits.NetworkOf(httpapi.InfoFrom(ctx).ClientAddress)
}

// within returns the apierr RateLimited if the network of the request has tried too many refused credentials, and nil
// otherwise.
func (r refused) within(ctx context.Context) error {
	return r.counts.Check(networkOf(ctx))
}

// count counts a refused credential.
func (r refused) count(ctx context.Context) { r.counts.Count(networkOf(ctx)) }

// refuse counts a refused credential. The result is the error to answer: why, or RateLimited if the network was over its
// limit before.
func (r refused) refuse(ctx context.Context, why error) error {
	if err := r.within(ctx); err != nil {
		return err
	}
	r.count(ctx)
	return why
}
