package credential

import (
	"errors"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/k8s/internal/tokenendpoint"
)

// TestNextRequest checks when the next request for a token is sent after one that was sent now.
func TestNextRequest(t *testing.T) {
	now := time.Now()
	refused, failed := &tokenendpoint.Fault{Refused: true}, errors.New("no connection")
	for name, tt := range map[string]struct {
		left     time.Duration // of the present token's life
		failures int
		life     time.Duration // of the fetched token
		err      error
		want     time.Duration
	}{
		"a token of an hour":                   {0, 3, time.Hour, nil, 40 * time.Minute},
		"a token of 12 s":                      {0, 0, 12 * time.Second, nil, 10 * time.Second},
		"failed":                               {0, 0, 0, failed, 10 * time.Second},
		"failed for the third time":            {0, 2, 0, failed, 40 * time.Second},
		"failed often":                         {0, 20, 0, failed, 10 * time.Minute},
		"failed often, 4 minutes left":         {4 * time.Minute, 20, 0, failed, time.Minute},
		"refused":                              {0, 0, 0, refused, 10 * time.Minute},
		"refused, 20 s of a life of 60 s left": {20 * time.Second, 0, 0, refused, 10 * time.Second},
		"refused, 100 s of 300 s left":         {100 * time.Second, 0, 0, refused, 25 * time.Second},
		"refused, an hour left":                {time.Hour, 0, 0, refused, 10 * time.Minute},
	} {
		s := tokenState{ExpiresAt: now.Add(tt.left), Failures: tt.failures}
		if got := s.next(now, tokenendpoint.Token{Life: tt.life}, tt.err).NextAt.Sub(now); got != tt.want {
			t.Errorf("%s: after %v, want %v", name, got, tt.want)
		}
	}
}
