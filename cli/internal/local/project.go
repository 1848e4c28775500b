package local

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lectern-dev/lectern/cli/internal/csvrow"
	"github.com/lectern-dev/lectern/cli/internal/demo"
	"github.com/lectern-dev/lectern/cli/internal/load"
	"github.com/lectern-dev/lectern/client"
)

// demoPart is one resource of the demo project, with the count of its records.
type demoPart struct {
	resource string
	count    int
	// isThere reports whether an earlier run has loaded the resource.
	isThere func(context.Context) (bool, error)
}

// demoData loads the missing parts of the demo project through ingest, and returns the id of the project's newest
// entry. Parts may be missing because the database was removed, or because an earlier version of the program loaded
// fewer resources.
func (r *run) demoData(ctx context.Context, d Demo) (string, error) {
	reader, err := client.New(d.URL, client.WithAPIKey(d.APIKey))
	if err != nil {
		return "", err
	}
	ingester, err := client.NewIngester(d.InternalURL, client.WithAPIKey(d.IngestAPIKey))
	if err != nil {
		return "", err
	}
	// All parts are checked before the first part is loaded, because loading a part changes the results.
	var missing []demoPart
	for _, part := range r.demoParts(reader) {
		found, err := part.isThere(ctx)
		if err != nil {
			return "", err
		}
		if !found {
			missing = append(missing, part)
		}
	}
	if len(missing) > 0 {
		names := make([]string, len(missing))
		for i, part := range missing {
			names[i] = fmt.Sprintf("%d %s", part.count, part.resource)
			if part.count == 1 {
				names[i] = strings.TrimSuffix(names[i], "s")
			}
		}
		r.Note("Loading the demo project: %s.", strings.Join(names, ", "))
		if err := r.loadDemo(ctx, ingester, missing); err != nil {
			return "", err
		}
	}
	return newestEntry(ctx, reader)
}

// demoParts returns the parts in the order in which they are loaded. Entries and events take many batches, so the
// state file records when all batches were acknowledged. Each other part is one batch, which is stored completely or
// not at all, so one stored record proves that all are stored. Embeddables are loaded after their versions, so a
// stored embeddable proves both parts.
func (r *run) demoParts(reader *client.Client) []demoPart {
	many := func(ctx context.Context) (bool, error) {
		if !r.state.DemoLoaded {
			return false, nil
		}
		id, err := newestEntry(ctx, reader)
		return id != "", err
	}
	record := func(read func(context.Context) error, notFound string) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			err := read(ctx)
			if client.Code(err) == notFound {
				return false, nil
			}
			return err == nil, err
		}
	}
	embeddables, versions, experiments := demo.Embeddables(), demo.Versions(), demo.Experiments()
	embeddable := record(func(ctx context.Context) error {
		_, err := reader.Embeddable(ctx, demo.ProjectID, embeddables[0].EmbeddableID)
		return err
	}, "embeddable_does_not_exist")
	experiment := record(func(ctx context.Context) error {
		_, err := reader.Experiment(ctx, demo.ProjectID, experiments[0].ID)
		return err
	}, "experiment_not_found")
	project := record(func(ctx context.Context) error {
		_, err := reader.Project(ctx, demo.ProjectID)
		return err
	}, "project_not_found")
	return []demoPart{
		{"projects", 1, project},
		{"embeddable-versions", len(versions), embeddable},
		{"embeddables", len(embeddables), embeddable},
		{"experiments", len(experiments), experiment},
		{"entries", demo.EntryCount, many},
		{"events", demo.EventCount, many},
	}
}

// loadDemo loads parts and then marks the load as complete in the state file. If entries are among the parts,
// loadDemo first removes the mark, so that the next run repeats an interrupted load.
func (r *run) loadDemo(ctx context.Context, ingester *client.Ingester, parts []demoPart) error {
	complete := func(is bool) error {
		r.state.DemoLoaded = is
		return r.state.save()
	}
	if slices.ContainsFunc(parts, func(p demoPart) bool { return p.resource == "entries" }) {
		if err := complete(false); err != nil {
			return err
		}
	}
	for _, part := range parts {
		if err := part.load(ctx, ingester); err != nil {
			return err
		}
	}
	return complete(true)
}

// load sends all records of the part through the ingest endpoint. load returns an error unless all records are
// stored.
func (p demoPart) load(ctx context.Context, ingester *client.Ingester) error {
	result, err := load.Run(ctx, load.Options{
		Inputs: []load.Input{{Name: p.resource, Open: func() (io.ReadCloser, error) { return stream(p.resource), nil }}},
		Format: load.NDJSON,
		Shape:  csvrow.Shape{Resource: p.resource},
		Send: func(ctx context.Context, ndjson []byte) (client.Receipt, error) {
			return ingester.Send(ctx, p.resource, ndjson)
		},
	})
	if err != nil {
		return err
	}
	if result.Rejected > 0 || result.Stored+result.Existing != p.count {
		return fmt.Errorf("%s: %d stored, %d existing, %d rejected; want %d in all", p.resource, result.Stored, result.Existing, result.Rejected, p.count)
	}
	return nil
}

// newestEntry returns the id of the demo project's newest entry of those that were last updated before [demo.End], or
// "" if there is none.
func newestEntry(ctx context.Context, reader *client.Client) (string, error) {
	page, err := reader.EntriesPage(ctx, demo.ProjectID, client.EntryQuery{
		Paging: client.Paging{Limit: 1}, Sort: client.ByCreatedAt, UpdatedBefore: demo.End(),
	})
	if err != nil || len(page.Records) == 0 {
		return "", err
	}
	return page.Records[0].EntryID, nil
}

// stream returns a reader of the demo project's records of the resource.
func stream(resource string) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(demo.Write(w, resource)) }()
	return r
}
