package api

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/pagelist"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
)

// Watch waits for changes of projects.
type Watch interface {
	// Wait returns nil when the project has a change after the number, or an error if ctx ends first.
	Wait(ctx context.Context, projectID string, after int64) error
}

const (
	// defaultChanges is the limit of a request for changes that sets none.
	defaultChanges = 1000

	// maxWait is the greatest value of the parameter wait, in seconds.
	maxWait = 60
)

// listChanges is the change feed.
func (a *API) listChanges(w http.ResponseWriter, r *http.Request) error {
	project, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, "cursor", "limit", "types", "wait")
	types := change.All
	if q.Has("types") {
		if types, err = change.ParseTypes(q.Text("types")); err != nil {
			q.Fail("types", err.Error())
		}
	}
	wait := time.Duration(q.Int("wait", 0, 0, maxWait)) * time.Second
	l, err := q.List(r, httpapi.Binding{
		Project: project, List: "entries-changes", Filters: []string{types.String()}, Least: 0, Most: math.MaxInt64,
	}, pagelist.Position{}, pagelist.Position{}, q.Int("limit", min(defaultChanges, a.cfg.MaxLimit), 1, a.cfg.MaxLimit))
	if err != nil {
		return err
	}
	ask := change.Ask{
		ProjectID: project, Types: types, After: l.Page.After.Key, Limit: l.Page.Limit, Format: l.Page.Format,
	}
	page, err := a.store.Changes(r.Context(), ask)
	if err != nil {
		return err
	}
	if wait > 0 && r.Method != http.MethodHead && page.Empty() && !page.More {
		if page, err = a.waitForChanges(r, ask, page, wait); err != nil {
			return err
		}
	}
	h := w.Header()
	h["X-Last-Seq"] = []string{strconv.FormatInt(page.Last, 10)}
	return l.WriteFeed(w, r, page.List, pagelist.Position{Key: page.Examined}, page.More)
}

// errWaiting is the fault of a request that may not wait because too many do.
var errWaiting = errors.New("as many requests as MAX_WAITING are waiting for changes")

// waitForChanges waits until the page after an empty one has a change, the time is over or the service shuts down. It
// returns the last page that it read. While it waits, the request does not count against MAX_IN_FLIGHT.
func (a *API) waitForChanges(r *http.Request, ask change.Ask, page *change.Page, wait time.Duration) (*change.Page, error) {
	if a.waiting.Add(1) > int64(a.cfg.MaxWaiting) {
		a.waiting.Add(-1)
		page.Close()
		return nil, apierr.NotAvailable(errWaiting)
	}
	defer a.waiting.Add(-1)
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	defer context.AfterFunc(a.stopping, cancel)()
	for page.Empty() && !page.More {
		resume := httpapi.InfoFrom(r.Context()).Park()
		err := a.watch.Wait(ctx, ask.ProjectID, page.Examined)
		resume()
		switch {
		case r.Context().Err() != nil:
			page.Close()
			return nil, r.Context().Err()
		case err != nil: // the time is over, or the service shuts down
			return page, nil
		}
		page.Close()
		ask.After = page.Examined
		if page, err = a.store.Changes(r.Context(), ask); err != nil {
			return nil, err
		}
	}
	return page, nil
}
