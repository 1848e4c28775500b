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

// How often an API server that does not answer is asked again: from the first to the second, growing. The longest
// is what a change may take to come through once the server is back.
const (
	retryAfter   = 100 * time.Millisecond
	retryAtLeast = 2 * time.Second
)

// How the API server is asked whether it is there, beside what is followed: a server that hangs would be missed
// for most of a minute otherwise.
const (
	probeEvery  = 5 * time.Second
	probeAgain  = time.Second // after one that failed
	probeWithin = 3 * time.Second
)

// link is a way of hearing from the API server, with what was heard last.
type link struct {
	what string // for people: "credentials", "credentials of team-a"
	news func() // is called when what state returns has changed

	mu     sync.Mutex
	filled bool
	err    error
}

// state reports whether all was heard once, and returns why nothing is heard now.
func (l *link) state() (filled bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.filled, l.err
}

// fill notes that all was heard.
func (l *link) fill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filled = true
}

// heard notes how a request ended.
func (l *link) heard(ctx context.Context, err error) {
	if ctx.Err() != nil && err != nil {
		return // it is over, and says nothing of the server
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

// follow keeps store equal to what the API server has, until ctx ends.
func (l *link) follow(ctx context.Context, list lister, begin watcher, store cache.ReflectorStore) {
	// What goes wrong is told by state, and once: these libraries tell it again and again.
	silent := logr.Discard()
	reflector := cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			objects, err := list(ctx, o)
			if err != nil && !expired(err) {
				l.heard(ctx, err)
			}
			return objects, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := begin(ctx, o)
			// A server that knows no streamed lists says so, and is asked for the list next.
			if !expired(err) && !(o.SendInitialEvents != nil && apierrors.IsInvalid(err)) {
				l.heard(ctx, err)
			}
			return w, err
		},
	}, nil, store, cache.ReflectorOptions{
		Logger: &silent, Name: l.what, TypeDescription: l.what,
		Backoff: &wait.Backoff{Duration: retryAfter, Factor: 2, Jitter: 0.5, Steps: 10, Cap: retryAtLeast},
	})
	reflector.RunWithContext(klog.NewContext(ctx, silent))
}

// expired reports whether a server only says that too much has happened since, and is asked for all again.
func expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// probe asks the API server every few seconds whether it is there. When it twice did not answer, nor refuse, it is
// asked anew: it may have vanished without a word, and the next to connect to may be another.
func (l *link) probe(ctx context.Context, ask func(context.Context) error, anew func()) {
	silent := 0
	for {
		within, cancel := context.WithTimeout(ctx, probeWithin)
		err := ask(within)
		silent++
		if err == nil || within.Err() == nil {
			silent = 0
		}
		cancel()
		l.heard(ctx, err)
		if silent == 2 {
			anew()
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

// sleep is false when ctx ended before.
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
