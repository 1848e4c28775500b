package clienttest_test

import (
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
