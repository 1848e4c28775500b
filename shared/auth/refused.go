package auth

import (
	"context"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/limits"
)

// networkOf returns the network of the client of a request, by which refused credentials of all kinds are counted.
func networkOf(ctx context.Context) string {
	return limits.NetworkOf(httpapi.InfoFrom(ctx).ClientAddress)
}
