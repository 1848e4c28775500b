package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/shared/admission"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/http/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/pagelist"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
	"github.com/lectern-dev/lectern/services/entries/internal/watch"
)

// Watch waits for changes of projects.
type Watch interface {
	// Wait returns the changes that ask is for as soon as there are any, or an error if ctx ends first.
	Wait(ctx context.Context, ask change.Ask) (watch.Answer, error)
}

const (
	// defaultChanges is the limit of a request for changes that sets none.
	defaultChanges = 1000

	// maxWait is the greatest value of the parameter wait, in seconds.
	maxWait = 60

	// longestWait is how long a request waits at most. Many gateways end a request after 60 s.
	longestWait = 55 * time.Second
)

// listChanges is the change feed.
func (a *API) listChanges(w http.ResponseWriter, r *http.Request) error {
	project, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, "cursor", "after", "limit", "types", "wait")
	types, filters := change.All, map[string]string{}
	if q.Has("types") {
		if types, err = change.ParseTypes(q.Text("types")); err != nil {
			q.Fail("types", err.Error())
		}
		if types != change.All {
			filters["types"] = types.String()
		}
	}
	after, now := startOf(q)
	wait := min(time.Duration(q.Int("wait", 0, 0, maxWait))*time.Second, longestWait)
	l, err := q.List(r, httpapi.Binding{
		Project: project, List: "entries-changes", Filters: filters, Least: 0, Most: math.MaxInt64,
	}, pagelist.Position{Key: after}, pagelist.Position{}, q.Int("limit", min(defaultChanges, a.cfg.MaxLimit), 1, a.cfg.MaxLimit))
	if err != nil {
		return err
	}
	if now {
		if l.Page.After.Key, err = a.store.LastSeq(r.Context(), project); err != nil {
			return err
		}
	}
	ask := change.Ask{
		ProjectID: project, Types: types, After: l.Page.After.Key, Limit: l.Page.Limit, Format: l.Page.Format,
	}
	page, err := a.store.Changes(r.Context(), ask)
	if err != nil {
		return err
	}
	if wait > 0 && r.Method != http.MethodHead && page.Empty() && !page.More {
		return a.waitForChanges(w, r, l, ask, page, wait)
	}
	defer page.Close()
	return a.writeChanges(w, r, l, page)
}

// startOf reads the parameter after: the number after which the feed starts, or now. Links to the next page omit it, because
// they have a cursor.
func startOf(q *httpapi.Query) (after int64, now bool) {
	const name = "after"
	if !q.Has(name) {
		return 0, false
	}
	defer q.Drop(name)
	now = q.Text(name) == "now"
	n, err := strconv.ParseUint(q.Text(name), 10, 63)
	switch {
	case q.Has("cursor"):
		q.Fail(name, "cursor or after, not both")
	case err != nil && !now:
		q.Fail(name, "the number of a change, or now")
	}
	return int64(n), now
}

// writeChanges answers with a page that was read.
func (a *API) writeChanges(w http.ResponseWriter, r *http.Request, l httpapi.ListRequest, page *change.Page) error {
	memory := int64(pagelist.Memory)
	if body, whole := page.Whole(); whole {
		memory = int64(len(body))
	}
	w.Header()["X-Last-Seq"] = []string{strconv.FormatInt(page.Last, 10)}
	return l.WriteFeed(w, r, page.Chunks(), memory, pagelist.Position{Key: page.Examined}, page.More)
}

// writeAnswer answers with a page that was read for several requests.
func (a *API) writeAnswer(w http.ResponseWriter, r *http.Request, l httpapi.ListRequest, answer watch.Answer) error {
	w.Header()["X-Last-Seq"] = []string{strconv.FormatInt(answer.Last, 10)}
	body := func(yield func([]byte, error) bool) { yield(answer.Body, nil) }
	// The body is small, so no memory is counted for it.
	return l.WriteFeed(w, r, body, 0, pagelist.Position{Key: answer.Examined}, answer.More)
}

// waitForChanges answers as soon as there is a change after an empty page. It answers with an empty page if the time is over
// or the service shuts down. While it waits, the request is not in flight, but has a place among those that wait. It holds
// neither a page nor a connection. The key is checked again before it gets data.
func (a *API) waitForChanges(w http.ResponseWriter, r *http.Request, l httpapi.ListRequest, ask change.Ask, page *change.Page, wait time.Duration) error {
	body, _ := page.Whole()
	nothing := watch.Answer{Body: bytes.Clone(body), Last: page.Last, Examined: page.Examined}
	page.Close()
	holder := admission.Project(ask.ProjectID)
	if err := a.waits.Take(holder, 1); errors.Is(err, admission.ErrShare) {
		return apierr.New(apierr.RateLimited, "Too many requests of this project wait for changes. Try again when some have ended.").After(time.Second)
	} else if err != nil {
		return apierr.NotAvailable(fmt.Errorf("MAX_WAITING: %w", err))
	}
	defer a.waits.Give(holder, 1)
	enter := httpapi.InfoFrom(r.Context()).Leave()
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	defer context.AfterFunc(a.stopping, cancel)()
	ask.After = nothing.Examined
	answer, err := a.watch.Wait(ctx, ask)
	if r.Context().Err() != nil {
		return r.Context().Err()
	}
	if err != nil { // the time is over, or the service shuts down
		return a.writeAnswer(w, r, l, nothing)
	}
	switch err := a.guard.Still(r, ask.ProjectID, auth.EntriesRead); {
	case apierr.From(err).Code() == apierr.Unavailable:
		return a.writeAnswer(w, r, l, nothing) // nobody can say whether the key is still valid
	case err != nil:
		return err
	case answer.Body != nil:
		return a.writeAnswer(w, r, l, answer)
	}
	// The page is large.
	if err := enter(); err != nil {
		return a.writeAnswer(w, r, l, nothing) // the client asks again at once
	}
	if page, err = a.store.Changes(r.Context(), ask); err != nil {
		return err
	}
	defer page.Close()
	return a.writeChanges(w, r, l, page)
}
