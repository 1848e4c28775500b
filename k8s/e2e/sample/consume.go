package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// progress is the report that consume prints each second.
type progress struct {
	Reads     int    `json:"reads"`
	Failed    int    `json:"failed"`
	Keys      int    `json:"keys"` // how many keys have been in the file so far
	LastError string `json:"last_error,omitempty"`
}

// consume reads the first page of entries repeatedly. It reads the key from LECTERN_API_KEY_FILE before each request,
// because the kubelet updates a mounted Secret after its key is rotated. The old key stays valid for the overlap.
// consume does not retry, so that each failure counts.
func consume(ctx context.Context, getenv func(string) string, out *json.Encoder) error {
	var p progress
	var key string
	var reader *client.Client
	said := time.Now()
	for ctx.Err() == nil {
		content, err := os.ReadFile(getenv("LECTERN_API_KEY_FILE"))
		if err != nil {
			return err
		}
		if now := strings.TrimSpace(string(content)); now != key {
			key = now
			p.Keys++
			reader, err = client.New(getenv("LECTERN_URL"), client.WithAPIKey(key), client.WithRetry(client.Retry{Attempts: 1}))
			if err != nil {
				return err
			}
		}
		page, err := reader.EntriesPage(ctx, getenv("LECTERN_PROJECT_ID"), client.EntryQuery{Paging: client.Paging{Limit: 1}})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			p.Failed++
			p.LastError = fmt.Sprintf("%s: %v", time.Now().UTC().Format(time.RFC3339), err)
		case len(page.Records) != 1:
			p.Failed++
			p.LastError = fmt.Sprintf("%d entries; want 1", len(page.Records))
		default:
			p.Reads++
		}
		if time.Since(said) >= time.Second {
			said = time.Now()
			if err := out.Encode(p); err != nil {
				return err
			}
		}
		wait(ctx, 50*time.Millisecond)
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
