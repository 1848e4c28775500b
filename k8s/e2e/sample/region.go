package main

import (
	"context"
	"encoding/json"

	"github.com/lectern-dev/lectern/services/region/client"
)

// region asks once which region LECTERN_PROJECT_ID is in. LECTERN_REGION_URL is the service's name in the
// cluster, such as http://lectern-region.lectern.svc.cluster.local.
func region(ctx context.Context, getenv func(string) string, out *json.Encoder) error {
	regions, err := client.New(getenv("LECTERN_REGION_URL"), getenv("LECTERN_INTERNAL_API_KEY"), client.Options{})
	if err != nil {
		return err
	}
	defer regions.Close()
	where, err := regions.Lookup(ctx, getenv("LECTERN_PROJECT_ID"))
	if err != nil {
		return err
	}
	return out.Encode(map[string]any{"region": where.Name, "offset_minutes": where.OffsetMinutes})
}
