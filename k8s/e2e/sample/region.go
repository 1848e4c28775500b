package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// region asks the region service once for the region of LECTERN_PROJECT_ID, and writes the answer to out.
// LECTERN_REGION_URL is the service's name in the cluster, such as http://lectern-region.lectern.svc.cluster.local.
func region(ctx context.Context, getenv func(string) string, out *json.Encoder) error {
	c, err := client.New(getenv("LECTERN_REGION_URL"), client.WithAPIKey(getenv("LECTERN_INTERNAL_API_KEY")))
	if err != nil {
		return err
	}
	where, err := c.Region(ctx, getenv("LECTERN_PROJECT_ID"), time.Time{})
	if err != nil {
		return err
	}
	return out.Encode(map[string]any{"region": where.Name, "offset_minutes": where.OffsetMinutes})
}
