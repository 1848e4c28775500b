package proxysource

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// The first and the longest pause between retries of requests to the API server. After an outage, a change arrives
// within the longest pause.
const (
	retryAfter   = 100 * time.Millisecond
	retryAtLeast = 2 * time.Second
)

// Interval and timeout of the probe of the API server. The watches alone would notice a server that hangs only after
// most of a minute.
const (
	probeEvery  = 5 * time.Second
	probeAgain  = time.Second // after a failed probe
	probeWithin = 3 * time.Second
)

// link is the state of one kind of request to the API server: a watch of a resource, or the probe.
type link struct {
	what string // for error messages, such as "credentials of team-a"
	news func() // is called when requests begin to fail, or succeed again

	mu     sync.Mutex
	filled bool
	err    error
}

// state reports whether all objects were read once, and returns the error of the last request.
func (l *link) state() (filled bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.filled, l.err
}

// fill records that all objects were read.
func (l *link) fill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filled = true
}

// record records the result of a request.
func (l *link) record(ctx context.Context, err error) {
	if ctx.Err() != nil && err != nil {
		return // the caller cancelled the request, so the error is not the server's
	}
	l.mu.Lock()
	turned := (err == nil) != (l.err == nil)
	if l.err = err; err != nil {
		l.err = fmt.Errorf("%s: %w", l.what, err)
	}
	l.mu.Unlock()
	if turned {
		l.news()
	}
}

// follow keeps store up to date with the API server until ctx ends.
func (l *link) follow(ctx context.Context, list lister, begin watcher, store cache.ReflectorStore) {
	// state reports errors. The library would log each of them again and again.
	silent := logr.Discard()
	reflector := cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			objects, err := list(ctx, o)
			if err != nil && !expired(err) {
				l.record(ctx, err)
			}
			return objects, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := begin(ctx, o)
			// A server without streamed lists returns Invalid, and the reflector then lists.
			if !expired(err) && !(o.SendInitialEvents != nil && apierrors.IsInvalid(err)) {
				l.record(ctx, err)
			}
			return w, err
		},
	}, nil, store, cache.ReflectorOptions{
		Logger: &silent, Name: l.what, TypeDescription: l.what,
		Backoff: &wait.Backoff{Duration: retryAfter, Factor: 2, Jitter: 0.5, Steps: 10, Cap: retryAtLeast},
	})
	reflector.RunWithContext(klog.NewContext(ctx, silent))
}

// expired reports whether the resource version is too old, so that the reflector lists again. It is no failure.
func expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// probe checks every few seconds that the API server answers. After two timeouts in a row it calls redial, which ends all
// connections: the server may have vanished without closing them.
func (l *link) probe(ctx context.Context, ask func(context.Context) error, redial func()) {
	silent := 0
	for {
		within, cancel := context.WithTimeout(ctx, probeWithin)
		err := ask(within)
		silent++
		if err == nil || within.Err() == nil {
			silent = 0
		}
		cancel()
		l.record(ctx, err)
		if silent == 2 {
			redial()
			silent = 0
		}
		pause := probeEvery
		if err != nil {
			pause = probeAgain
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// sleep waits for d. It reports whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
