package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/postgres/lists"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
	"github.com/lectern-dev/lectern/services/entries/internal/watch"
)

// quiet is a store without changes, and a Watch that notes how long a request would wait.
type quiet struct {
	Reader
	waits time.Duration
}

func (*quiet) Changes(ctx context.Context, ask change.Ask) (*change.Page, error) {
	list, err := lists.Open(ctx, nothing{}, lists.Page{Limit: ask.Limit, Format: ask.Format})
	return &change.Page{List: list}, err
}

func (q *quiet) Wait(ctx context.Context, _ change.Ask) (watch.Answer, error) {
	end, _ := ctx.Deadline()
	q.waits = time.Until(end).Round(time.Second)
	return watch.Answer{}, errors.New("the time is over")
}

type nothing struct{}

func (nothing) Chunk(context.Context, *lists.Sink, lists.Position, lists.Position, int) error {
	return nil
}

func (nothing) Settle(context.Context, lists.Position, lists.Position, int) (lists.Position, bool, bool, error) {
	return lists.Position{}, false, false, nil
}

// TestLongestWait checks that a wait ends before gateways end its request.
func TestLongestWait(t *testing.T) {
	store := &quiet{}
	a := &API{cfg: Config{Limits: httpapi.Limits{MaxLimit: 1000}}, store: store, watch: store, waits: limits.WaitOptions{}.Pool(), stopping: t.Context()}
	rt := httpapi.NewRouter()
	rt.Get("/projects/{projectId}/entries-changes", a.listChanges)
	for seconds, want := range map[int]time.Duration{1: time.Second, 54: 54 * time.Second, 55: 55 * time.Second, 60: 55 * time.Second} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, fmt.Sprintf("/projects/p/entries-changes?wait=%d", seconds), nil)
		rt.ServeHTTP(w, r.WithContext(httpapi.WithInfo(t.Context(), &httpapi.Info{})))
		if w.Code != http.StatusOK || store.waits > want || store.waits < want-30*time.Second {
			t.Errorf("wait=%d waits %v, and answers %d %s; want %v", seconds, store.waits, w.Code, w.Body, want)
		}
	}
}
