package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lectern-dev/lectern/proxy/internal/target"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/limits"
)

// TestManyPlaceholders sends one credential in 40,000 placeholders. The policy must check the credential once, because a
// slow pattern takes about a millisecond.
func TestManyPlaceholders(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-K", strings.Repeat("{{cred_slow}}", 40_000))
	to, err := target.Parse("https://api.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	d, err := decide(r, incoming{target: to}, &policy.Scope{}, false, nil, limits.Holder{})
	if err == nil || len(d.request.Uses) != 1 {
		t.Errorf("%d uses, %v", len(d.request.Uses), err)
	}
}

// TestCallerGoneBeforeTheExamination fills all places of examiners. A caller that disconnects must give its memory back.
func TestCallerGoneBeforeTheExamination(t *testing.T) {
	const memory = 256 << 10 // one body of a client
	bodies := newHeldBodies(10<<20, memory)
	hold := func(ctx context.Context) error {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("text"))
		r.Header.Set("Content-Type", "text/plain")
		_, err := bodies.hold(r, limits.Endpoint("web"), limits.Network("192.0.2.1"))
		return err
	}
	for range maxExamining {
		bodies.examining <- struct{}{}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := hold(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that left got %v", err)
	}
	<-bodies.examining
	if err := hold(t.Context()); err != nil {
		t.Errorf("the next caller got %v", err)
	}
}

// trickle is a body that never stalls and never ends.
type trickle struct{}

func (trickle) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	p[0] = 'x'
	return 1, nil
}

func TestTemplatedBodyThatTrickles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(trickle{}))
		r.Header.Set("Content-Type", "text/plain")
		start := time.Now()
		_, err := newHeldBodies(10<<20, 1<<30).hold(r, limits.Endpoint("web"), limits.Network("192.0.2.1"))
		if refusal, ok := errors.AsType[*apierr.Error](err); !ok || refusal.Code() != apierr.InvalidBody || time.Since(start) > bodyTimeout+time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
