package clienttest_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/client/clienttest"
)

// TestCloseEndsWaits checks that the fake can be closed while a follower waits for changes.
func TestCloseEndsWaits(t *testing.T) {
	api := clienttest.New(clienttest.Data{})
	asked := make(chan struct{}, 1)
	fake := api.Config.Handler
	api.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		fake.ServeHTTP(w, r)
	})
	c, err := client.New(api.URL, client.WithTimeouts(client.Timeouts{Answer: time.Hour}), client.WithRetry(client.Retry{Attempts: 1}))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, err := range c.Follow(t.Context(), "pr_1", client.ChangeQuery{Wait: time.Hour}) {
			if err != nil {
				return
			}
		}
	}()
	<-asked
	go api.Close()
	select {
	case <-ended:
		api.Close()
	case <-time.After(4 * time.Minute):
		t.Fatal("the follower still waits")
	}
}

// TestOrderedAnswers checks that a request gets the answers that were ordered for its path, one after the other.
func TestOrderedAnswers(t *testing.T) {
	api := clienttest.New(clienttest.Data{})
	defer api.Close()
	api.AddChanges(client.Change{Type: client.EntryChanged, Entry: &client.Entry{EntryID: "en_1", Data: "{}"}})
	c, err := client.New(api.URL, client.WithRetry(client.Retry{Attempts: 1}))
	if err != nil {
		t.Fatal(err)
	}
	api.Order(clienttest.Answer{Path: "/experiments", Status: 500}, clienttest.Answer{CutAfter: 9}, clienttest.Answer{Path: "-changes", Status: 429, Code: client.CodeRateLimited, RetryAfter: 7})
	page, err := c.ChangesPage(t.Context(), "pr_1", client.ChangeQuery{})
	if !errors.Is(err, client.ErrIncomplete) {
		t.Errorf("%+v, %v; want an answer that is cut off", page, err)
	}
	_, err = c.ChangesPage(t.Context(), "pr_1", client.ChangeQuery{})
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Status != 429 || refused.Code != client.CodeRateLimited || refused.RetryAfter != 7*time.Second {
		t.Errorf("%v; want 429", err)
	}
	page, err = c.ChangesPage(t.Context(), "pr_1", client.ChangeQuery{})
	if err != nil || len(page.Changes) != 1 || page.LastSeq != page.Changes[0].Seq {
		t.Errorf("%+v, %v; want the change", page, err)
	}
}
