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

// progress counts the reads of consume so far. About every second, consume prints its progress as JSON.
type progress struct {
	Reads     int    `json:"reads"`
	Failed    int    `json:"failed"`
	Keys      int    `json:"keys"` // how many keys or tokens have been in the file so far
	LastError string `json:"last_error,omitempty"`
}

// consume reads the first entry of a project repeatedly until ctx ends, with the key in LECTERN_API_KEY_FILE or the token in
// LECTERN_TOKEN_FILE. The kubelet updates both files. With LECTERN_REGION_URL, consume also looks up the project's region before
// each read. It tries each request up to twice, because a busy node may ask clients to retry.
func consume(ctx context.Context, getenv func(string) string, out *json.Encoder) error {
	var p progress
	var last string
	file, credential := getenv("LECTERN_API_KEY_FILE"), client.WithAPIKeyFunc
	if token := getenv("LECTERN_TOKEN_FILE"); token != "" {
		file, credential = token, client.WithTokenFunc
	}
	current := func(context.Context) (string, error) {
		content, err := os.ReadFile(file)
		now := strings.TrimSpace(string(content))
		if err == nil && now != last {
			last = now
			p.Keys++
		}
		return now, err
	}
	retry := client.WithRetry(client.Retry{Attempts: 2})
	reader, err := client.New(getenv("LECTERN_URL"), credential(current), retry)
	if err != nil {
		return err
	}
	lookUp := func() error { return nil }
	if url := getenv("LECTERN_REGION_URL"); url != "" {
		regions, err := client.New(url, credential(current), retry)
		if err != nil {
			return err
		}
		lookUp = func() error {
			_, err := regions.Region(ctx, getenv("LECTERN_PROJECT_ID"), time.Time{})
			return err
		}
	}
	said := time.Now()
	for ctx.Err() == nil {
		page, err := client.Page[client.Entry]{}, lookUp()
		if err == nil {
			page, err = reader.EntriesPage(ctx, getenv("LECTERN_PROJECT_ID"), client.EntryQuery{Paging: client.Paging{Limit: 1}})
		}
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
