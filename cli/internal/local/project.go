package local

import (
	"context"
	"fmt"
	"io"

	"github.com/lectern-dev/lectern/cli/internal/csvrow"
	"github.com/lectern-dev/lectern/cli/internal/demo"
	"github.com/lectern-dev/lectern/cli/internal/load"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/keyring"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
)

// demoKey returns a key of the demo project: the one of the run before, if it is still accepted.
func (r *run) demoKey(ctx context.Context, url string, environ map[string]string) (string, error) {
	if key := r.state.APIKey; key != "" {
		reader, err := client.New(url, client.WithAPIKey(key))
		if err != nil {
			return "", err
		}
		_, err = reader.EntriesPage(ctx, demo.ProjectID, client.EntryQuery{Paging: client.Paging{Limit: 1}})
		if err == nil {
			return key, nil
		}
		if client.Code(err) != "unauthorized" {
			return "", err
		}
	}
	var cfg auth.Config
	if err := config.Load(&cfg, environ); err != nil {
		return "", err
	}
	admin, err := keyring.OpenAdmin(ctx, cfg, keyring.Options{Now: r.Now})
	if err != nil {
		return "", err
	}
	defer admin.Close()
	key, _, err := admin.Mint(ctx, pgkeys.MintOptions{ProjectID: demo.ProjectID, Name: "demo"})
	if err != nil {
		return "", err
	}
	r.state.APIKey = key.Reveal()
	return key.Reveal(), r.state.save()
}

// demoData loads the demo project where it is not there yet, through the front door of all data, and
// returns the id of its newest entry.
func (r *run) demoData(ctx context.Context, d Demo) (string, error) {
	reader, err := client.New(d.URL, client.WithAPIKey(d.APIKey))
	if err != nil {
		return "", err
	}
	newest := func() (string, error) {
		page, err := reader.EntriesPage(ctx, demo.ProjectID, client.EntryQuery{
			Paging: client.Paging{Limit: 1}, Sort: client.ByCreatedAt, UpdatedBefore: demo.End(),
		})
		if err != nil || len(page.Records) == 0 {
			return "", err
		}
		return page.Records[0].EntryID, nil
	}
	if r.state.DemoLoaded {
		// The database may have been removed since.
		if id, err := newest(); id != "" || err != nil {
			return id, err
		}
	}
	r.Note("Loading the demo project: %d entries with %d events.", demo.EntryCount, demo.EventCount)
	ingester, err := client.NewIngester(d.InternalURL, client.WithAPIKey(d.InternalAPIKey))
	if err != nil {
		return "", err
	}
	for _, part := range []struct {
		shape csvrow.Shape
		write func(io.Writer) error
		want  int
	}{
		{csvrow.Entries(), demo.WriteEntries, demo.EntryCount},
		{csvrow.Events(), demo.WriteEvents, demo.EventCount},
	} {
		result, err := load.Run(ctx, load.Options{
			Inputs: []load.Input{{Name: part.shape.Resource, Open: func() (io.ReadCloser, error) { return stream(part.write), nil }}},
			Format: load.NDJSON,
			Shape:  part.shape,
			Send: func(ctx context.Context, ndjson []byte) (client.Receipt, error) {
				return ingester.Send(ctx, part.shape.Resource, ndjson)
			},
		})
		if err != nil {
			return "", err
		}
		if result.Rejected > 0 || result.Stored+result.Existing != part.want {
			return "", fmt.Errorf("%s: %d stored, %d existing, %d rejected; want %d in all", part.shape.Resource, result.Stored, result.Existing, result.Rejected, part.want)
		}
	}
	r.state.DemoLoaded = true
	if err := r.state.save(); err != nil {
		return "", err
	}
	return newest()
}

// stream gives what write writes to be read.
func stream(write func(io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(write(w)) }()
	return r
}
