package proxysource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lectern-dev/lectern/proxy/manifest"
)

const (
	// readers is the number of Secrets that are read concurrently.
	readers = 16
	// readWithin is the timeout of one read.
	readWithin = 10 * time.Second
	// readAtLeast is the longest pause between retries of a failed read.
	readAtLeast = 5 * time.Second
)

// vault holds those values of Secrets that Credentials refer to, and no others. It overwrites values before it drops
// them.
type vault struct {
	ask    func(context.Context, types.NamespacedName) (*corev1.Secret, error)
	change func() // is called when values have changed
	news   func() // is called when reads of a Secret begin to fail, or succeed again
	rest   func() // is called when the result of settled may have changed

	slots   chan struct{}
	reading sync.WaitGroup

	mu      sync.Mutex
	secrets map[types.NamespacedName]*kept
}

// kept is a Secret that Credentials refer to.
type kept struct {
	keys     []string          // the names that Credentials refer to
	data     map[string][]byte // values of those keys; nil: the Secret does not exist or is not known
	uid      types.UID         // of the Secret that was read last
	revision string            // its resourceVersion
	answered bool              // the API server has answered at least once, if only with a refusal
	err      error             // why the last read failed
	stale    bool              // it must be read
	gone     bool              // the watch reported its deletion
	reading  bool              // pursue runs for it
	dropped  bool              // no Credential refers to it any more
	wake     chan struct{}     // ends the pause between retries
}

func newVault(ask func(context.Context, types.NamespacedName) (*corev1.Secret, error), change, news, rest func()) *vault {
	return &vault{ask: ask, change: change, news: news, rest: rest, slots: make(chan struct{}, readers), secrets: map[types.NamespacedName]*kept{}}
}

// want sets the keys of Secrets that Credentials refer to. It starts to read new ones, and drops values that are no
// longer referred to.
func (v *vault) want(ctx context.Context, wanted map[types.NamespacedName][]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, k := range v.secrets {
		if wanted[key] == nil {
			k.drop()
			delete(v.secrets, key)
		}
	}
	for key, keys := range wanted {
		k := v.secrets[key]
		if k == nil {
			k = &kept{stale: true, wake: make(chan struct{}, 1)}
			v.secrets[key] = k
		}
		for _, name := range keys {
			k.stale = k.stale || !slices.Contains(k.keys, name)
		}
		k.keys = keys
		for name, value := range k.data {
			if !slices.Contains(keys, name) {
				clear(value)
				delete(k.data, name)
			}
		}
		v.start(ctx, key, k)
	}
}

// secretChanged handles a watch event for a Secret. revision is its resourceVersion, or "" if it was deleted.
func (v *vault) secretChanged(ctx context.Context, key types.NamespacedName, uid types.UID, revision string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.secrets[key]
	if k == nil || k.uid == uid && k.revision == revision && !k.stale {
		return
	}
	if revision != "" {
		k.stale, k.gone = true, false
		v.start(ctx, key, k)
		return
	}
	if k.uid != "" && k.uid != uid {
		return // an earlier Secret of the same name
	}
	k.wipe()
	k.gone, k.answered = true, true
	k.stale = k.reading // a read in flight may return the deleted Secret
	v.change()
}

// secretsListed handles a complete list of the Secrets of a namespace. An empty namespace stands for all.
func (v *vault) secretsListed(ctx context.Context, namespace string, all map[types.NamespacedName]version) {
	for _, key := range v.keys() {
		if namespace != "" && namespace != key.Namespace {
			continue
		}
		is, there := all[key]
		if !there {
			v.mu.Lock()
			if k := v.secrets[key]; k != nil {
				is.uid = k.uid
			}
			v.mu.Unlock()
		}
		v.secretChanged(ctx, key, is.uid, is.revision)
	}
}

func (v *vault) keys() []types.NamespacedName {
	v.mu.Lock()
	defer v.mu.Unlock()
	keys := make([]types.NamespacedName, 0, len(v.secrets))
	for key := range v.secrets {
		keys = append(keys, key)
	}
	return keys
}

// start reads a stale Secret in the background, or wakes the goroutine that already does. The caller holds v.mu.
func (v *vault) start(ctx context.Context, key types.NamespacedName, k *kept) {
	switch {
	case !k.stale || ctx.Err() != nil:
	case k.reading:
		select {
		case k.wake <- struct{}{}:
		default:
		}
	default:
		k.reading = true
		v.reading.Go(func() { v.pursue(ctx, key, k) })
	}
}

// pursue reads a Secret, and retries until the Secret is no longer stale.
func (v *vault) pursue(ctx context.Context, key types.NamespacedName, k *kept) {
	pause := retryAfter
	for {
		v.mu.Lock()
		if !k.stale || k.dropped || ctx.Err() != nil {
			k.reading = false
			v.mu.Unlock()
			v.rest()
			return
		}
		k.stale = false
		v.mu.Unlock()

		s, err := v.read(ctx, key)
		if !v.take(ctx, k, s, err) {
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-k.wake:
		case <-timer.C:
		}
		timer.Stop()
		pause = min(2*pause, readAtLeast)
	}
}

func (v *vault) read(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	select {
	case v.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-v.slots }()
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	return v.ask(ctx, key)
}

// take stores the result of reading a Secret. It reports whether the read failed and must be retried after a pause.
func (v *vault) take(ctx context.Context, k *kept, s *corev1.Secret, err error) (again bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s != nil {
		defer wipe(s.Data)
	}
	if k.dropped || ctx.Err() != nil {
		return false
	}
	failed := k.err != nil
	changed := !k.answered
	switch {
	case err == nil && k.gone:
		// The Secret was deleted during the read. stale is set, so it is read again.
	case err == nil:
		changed = k.keep(s) || changed
		k.answered, k.err = true, nil
	case apierrors.IsNotFound(err):
		changed = changed || k.data != nil
		k.wipe()
		k.answered, k.err = true, nil
	default:
		k.stale = true
		k.answered = k.answered || refused(err)
		k.err = err
	}
	if changed {
		v.change()
	}
	if failed != (k.err != nil) {
		v.news()
		v.rest()
	}
	return k.err != nil
}

// refused reports whether the API server answered with an error other than 429 or 503. An immediate retry is unlikely to
// help then.
func refused(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTooManyRequests(err)
}

// keep stores the values that Credentials refer to. It reports whether they have changed.
func (k *kept) keep(s *corev1.Secret) (changed bool) {
	changed = k.data == nil
	if changed {
		k.data = map[string][]byte{}
	}
	k.uid, k.revision = s.UID, s.ResourceVersion
	for _, name := range k.keys {
		value, there := s.Data[name]
		old, known := k.data[name]
		if there == known && bytes.Equal(value, old) {
			continue
		}
		changed = true
		clear(old)
		delete(k.data, name)
		if there {
			k.data[name] = bytes.Clone(value)
		}
	}
	return changed
}

func (k *kept) wipe() {
	wipe(k.data)
	k.data, k.uid, k.revision = nil, "", ""
}

func (k *kept) drop() {
	k.wipe()
	k.dropped = true
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func wipe(data map[string][]byte) {
	for _, value := range data {
		clear(value)
	}
}

// settled reports whether each Secret is up to date or fails. answered reports whether the
// API server has answered at least once for every Secret, if only with a refusal.
func (v *vault) settled() (settled, answered bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	settled, answered = true, true
	for _, k := range v.secrets {
		settled = settled && (k.err != nil || !k.stale && !k.reading)
		answered = answered && k.answered
	}
	return settled, answered
}

// copies returns the Secrets with copies of their values, and the errors of the Secrets whose values are unknown.
func (v *vault) copies() (secrets []manifest.Secret, unknown map[types.NamespacedName]error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, k := range v.secrets {
		switch {
		case k.data != nil:
			s := manifest.Secret{Metadata: manifest.Metadata{Namespace: key.Namespace, Name: key.Name}, Data: map[string][]byte{}}
			for name, value := range k.data {
				s.Data[name] = bytes.Clone(value)
			}
			secrets = append(secrets, s)
		case k.err != nil || !k.answered:
			if unknown == nil {
				unknown = map[types.NamespacedName]error{}
			}
			unknown[key] = k.err
		}
	}
	return secrets, unknown
}

// failing returns an error that names one Secret that cannot be read, or nil if all can.
func (v *vault) failing() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var first types.NamespacedName
	var err error
	count := 0
	for key, k := range v.secrets {
		if k.err == nil {
			continue
		}
		if count++; err == nil || key.String() < first.String() {
			first, err = key, k.err
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("the Secret %s, of %d that cannot be read: %w", first, count, err)
}

// close waits for all reads, then overwrites all values. The context of the reads must be cancelled.
func (v *vault) close() {
	v.reading.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, k := range v.secrets {
		k.drop()
		delete(v.secrets, key)
	}
}
