package api

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/postgres/lists"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
	"github.com/lectern-dev/lectern/services/entries/internal/watch"
)

// Watch is the part of [watch.Watch] that the change feed uses.
type Watch interface {
	// Wait returns an Answer as soon as there are changes for which ask asks, or an error if ctx ends first.
	Wait(ctx context.Context, ask change.Ask) (watch.Answer, error)
}

const (
	// defaultChanges is how many changes a page has at most if the request sets no limit.
	defaultChanges = 1000

	// maxWait is the greatest value of the parameter wait, in seconds.
	maxWait = 60

	// longestWait is how long a request waits at most. Many gateways end a request after 60 s.
	longestWait = 55 * time.Second
)

// listChanges serves GET /projects/{projectId}/entries-changes, the change feed. If the page is empty and wait is more
// than 0, the request waits for a change. A HEAD request never waits.
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
	}, lists.Position{Key: after}, lists.Position{}, q.Int("limit", min(defaultChanges, a.cfg.MaxLimit), 1, a.cfg.MaxLimit))
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

// startOf reads the parameter after: the number of the change after which the feed starts, or 0 without the parameter.
// If now is true, the feed starts after the newest change instead. startOf removes the parameter from q, because links
// to the next page have a cursor instead.
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

// writeChanges answers with a page of changes. The header X-Last-Seq has the number of the project's newest change.
func (a *API) writeChanges(w http.ResponseWriter, r *http.Request, l httpapi.ListRequest, page *change.Page) error {
	memory := int64(lists.Memory)
	if body, whole := page.Whole(); whole {
		memory = int64(len(body))
	}
	w.Header()["X-Last-Seq"] = []string{strconv.FormatInt(page.Last, 10)}
	return l.WriteFeed(w, r, page.Chunks(), memory, lists.Position{Key: page.Examined}, page.More)
}

// writeAnswer answers with a page that the [watch.Watch] has read, or with a copy of an empty page. The header
// X-Last-Seq has the number of the project's newest change.
func (a *API) writeAnswer(w http.ResponseWriter, r *http.Request, l httpapi.ListRequest, answer watch.Answer) error {
	w.Header()["X-Last-Seq"] = []string{strconv.FormatInt(answer.Last, 10)}
	body := func(yield func([]byte, error) bool) { yield(answer.Body, nil) }
	// The body is small, so no memory is counted for it.
	return l.WriteFeed(w, r, body, 0, lists.Position{Key: answer.Examined}, answer.More)
}

// waitForChanges closes the empty page, waits for a change, and answers with the change. If wait passes or the service
// shuts down first, waitForChanges answers with the empty page. No request waits longer than its key or token is valid.
//
// A waiting request holds neither a page nor a database connection, and is not in flight. Instead, the request takes
// one place in a.waits. The error is a RateLimited if the project has its share of the places, and an Unavailable if
// all places are taken. Before the client gets a change, waitForChanges checks the key again.
func (a *API) waitForChanges(w http.ResponseWriter, r *http.Request, l httpapi.ListRequest, ask change.Ask, page *change.Page, wait time.Duration) error {
	body, _ := page.Whole()
	nothing := watch.Answer{Body: bytes.Clone(body), Last: page.Last, Examined: page.Examined}
	page.Close()
	holder := limits.Project(ask.ProjectID)
	if err := a.waits.Take(holder, 1); err != nil {
		return limits.Answer(err, "Too many requests of this project wait for changes. Try again when some have ended.", "MAX_WAITING")
	}
	defer a.waits.Give(holder, 1)
	info := httpapi.InfoFrom(r.Context())
	enter := info.Leave()
	if !info.KeyExpires.IsZero() {
		wait = min(wait, time.Until(info.KeyExpires))
	}
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
	switch err := a.guard.Recheck(r, ask.ProjectID, auth.EntriesRead); {
	case apierr.From(err).Code() == apierr.Unavailable:
		return a.writeAnswer(w, r, l, nothing) // nobody can say whether the key is still valid
	case err != nil:
		return err
	case answer.Body != nil:
		return a.writeAnswer(w, r, l, answer)
	}
	// The page is too large to be shared, the position is lost, or reading panicked.
	if err := enter(); err != nil {
		return a.writeAnswer(w, r, l, nothing) // the client asks again at once
	}
	if page, err = a.store.Changes(r.Context(), ask); err != nil {
		return err
	}
	defer page.Close()
	return a.writeChanges(w, r, l, page)
}
