package preflight

import (
	"context"
	"errors"

	"github.com/lectern-dev/lectern/copies/files"
)

// checkBucket checks that the store honours conditional writes and lists its objects, as copies need.
func (in *inputs) checkBucket(ctx context.Context) []finding {
	if in.Bucket == nil {
		return nil
	}
	err := files.Probe(ctx, in.Bucket.Host, in.Bucket.Path, in.Environ)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("the store does not answer in time: correct AWS_ENDPOINT_URL, or the network")
	}
	return []finding{{"--to", err}}
}
